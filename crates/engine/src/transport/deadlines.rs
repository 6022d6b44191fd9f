//! Which deadline of a slot runs, whatever its wire, and which has passed.
//!
//! This module must never wake the worker for a deadline that was pushed back, if it can be helped.

use staunch_netio::{Io, Slot};
use staunch_protocol::Deadline;

use super::{Transport, Wire};
use crate::limits::{COLD_RETRY_MS, KEEP_ALIVE_EARLY_PART, LOOK_PART};
use crate::stats::TlsRefusal;
use crate::upstream::UpstreamDeadline;

/// A deadline that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassedDeadline {
    /// Of an accepted connection.
    Connection(Deadline),
    /// Of the upstream in this row.
    Upstream(u32, UpstreamDeadline),
}

impl<I: Io> Transport<I> {
    /// The deadline that is running on an accepted connection, secured or not, and when it ends.
    #[inline]
    pub(crate) fn due(&self, slot: Slot) -> Option<(u64, Deadline)> {
        let due = self.connections[slot as usize].due(&self.overload.timeouts);
        match self.secured.handshake_until_ms(slot) {
            Some(until_ms) if due.is_some() => Some((until_ms, Deadline::Header)),
            _ => due,
        }
    }

    /// Sets the wheel's node for the deadline that is running, if one is.
    #[inline]
    pub(crate) fn set_deadline(&mut self, slot: Slot) {
        self.place_deadline(slot, self.due(slot));
    }

    /// Sets the wheel's node for a deadline, if there is one. Deadlines come again and again, so the node is
    /// left where it is while it comes up in time; only one that would come up much before a long idle time
    /// is over is moved, so that nobody wakes for it.
    #[inline]
    pub(crate) fn place_deadline(&mut self, slot: Slot, due: Option<(u64, Deadline)>) {
        let Some((deadline_ms, deadline)) = due else { return };
        let early_ms = match deadline {
            Deadline::KeepAlive => u64::from(self.overload.timeouts.keep_alive_ms / KEEP_ALIVE_EARLY_PART),
            _ => deadline_ms,
        };
        self.deadlines.wheel.set_between(slot, deadline_ms - early_ms, deadline_ms);
    }

    /// The deadline of a slot that has passed. One that was pushed back meanwhile is only set again.
    pub(crate) fn passed(&mut self, slot: Slot) -> Option<PassedDeadline> {
        let (due_ms, passed) = match self.wire(slot) {
            Wire::Upstream => {
                let upstreams = self.outbox.upstreams();
                let index = upstreams.index_of(slot)?;
                let (due_ms, deadline) = upstreams.note(index, |row| row.due())?;
                (due_ms, PassedDeadline::Upstream(index, deadline))
            }
            Wire::Plain | Wire::Secured => {
                let (due_ms, deadline) = self.due(slot)?;
                (due_ms, PassedDeadline::Connection(deadline))
            }
        };
        if due_ms > self.time.now_ms {
            self.deadlines.wheel.set(slot, due_ms);
            return None;
        }
        Some(passed)
    }

    /// A deadline has passed. `true`: it was that of a handshake, whose connection is to be closed.
    pub(crate) fn time_out_handshake(&mut self, slot: Slot) -> bool {
        let is_shaking = self.secured.handshake_until_ms(slot).is_some();
        if is_shaking {
            self.stats.tls.count_refusal(TlsRefusal::TimedOut);
        }
        is_shaking
    }

    /// Sets the deadline of each send that is not over a turn after it began. Most are, and cost the wheel
    /// nothing then, however long an idle time is that their node stands for.
    pub(crate) fn watch_sends(&mut self, begun_before: usize) {
        for index in 0..begun_before {
            let slot = self.deadlines.sends_begun[index];
            let connection = &self.connections[slot as usize];
            if connection.sending && !connection.just_begun {
                self.set_deadline(slot);
            }
        }
        self.deadlines.sends_begun.drain(..begun_before);
        let connections = &mut self.connections;
        self.deadlines.sends_begun.retain(|slot| {
            let connection = &mut connections[*slot as usize];
            connection.just_begun = false;
            connection.sending
        });
        self.stats.connections.sending.set(self.deadlines.sends_begun.len() as u64);
    }

    /// When connections, or what they hold, are to be looked at next.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        let now_ms = self.time.now_ms;
        let is_sending = !self.deadlines.sends_begun.is_empty();
        let look_ms = u64::from(self.overload.timeouts.send_ms / LOOK_PART);
        let times_ms = [
            self.deadlines.wheel.next_ms(),
            is_sending.then_some(now_ms + look_ms),
            self.overload.valve.deadline_ms(),
            self.overload.memory.quiet_ms(),
            self.secured.has_cold().then_some(now_ms + COLD_RETRY_MS),
            self.secured.next_ms(),
        ];
        times_ms.into_iter().flatten().min()
    }
}
