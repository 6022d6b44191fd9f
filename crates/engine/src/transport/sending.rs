//! Bytes that stand to be sent in a slot are handed to the network here; the next step after a send is
//! decided.
//!
//! This module must never hand over a second container while one is in flight.

use staunch_netio::{Io, Outgoing, Slot};
use staunch_protocol::Deadline;

use super::{Transport, Wire};
use crate::connection::Phase;

/// The outcome of handing over what stood to be sent on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Handed {
    /// There was nothing, or something is in flight already.
    Nothing,
    /// A send has begun.
    Begun,
    /// Sending is not possible: the connection has to be closed.
    Broken,
}

/// The next step after a send that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Sent {
    /// All was taken: what waited for that goes on.
    All,
    /// Nothing, but what the connection holds has changed: its next piece is under way, or it is closed.
    Part,
    /// The connection has to be closed.
    Failed,
    /// The upstream in this row takes its next steps.
    Upstream(Option<u32>),
}

impl<I: Io> Transport<I> {
    /// Begins to send what stands to be sent, ends the connection if it is at its end, and sets its deadline.
    #[inline]
    pub(crate) fn hand_over(&mut self, slot: Slot) -> Handed {
        if matches!(self.connections[slot as usize].phase, Phase::Free | Phase::Closing) {
            return Handed::Nothing;
        }
        let mut handed = match self.wire(slot) {
            Wire::Secured => self.hand_over_sealed(slot),
            Wire::Plain | Wire::Upstream => self.hand_over_plain(slot),
        };
        match handed {
            Handed::Begun => self.regulate(slot),
            Handed::Nothing => {
                let connection = &self.connections[slot as usize];
                if let Phase::Ending { linger } = connection.phase
                    && !connection.sending
                {
                    handed = self.say_farewell(slot, linger);
                }
                self.regulate(slot);
                self.set_deadline(slot);
            }
            Handed::Broken => {}
        }
        handed
    }

    #[inline]
    fn hand_over_plain(&mut self, slot: Slot) -> Handed {
        let connection = &mut self.connections[slot as usize];
        let Some(mut outgoing) = connection.take_outgoing() else { return Handed::Nothing };
        if connection.behind || self.overload.memory.is_tight() {
            outgoing.shrink();
        }
        let is_last = connection.phase == (Phase::Ending { linger: false });
        if is_last {
            connection.phase = Phase::Closing;
        }
        connection.leave_container();
        connection.start_deadline(Deadline::Send, self.time.now_ms, &self.overload.timeouts);
        self.note_begun(slot, &outgoing);
        self.launch(slot, outgoing, is_last);
        Handed::Begun
    }

    /// A container of an accepted connection, or a piece of one, is about to be sent.
    #[inline]
    pub(super) fn note_begun(&mut self, slot: Slot, outgoing: &Outgoing) {
        self.connections[slot as usize].begin_piece(outgoing);
        self.deadlines.sends_begun.push(slot);
    }

    /// Gives a container to the network.
    #[inline]
    pub(super) fn launch(&mut self, slot: Slot, outgoing: Box<Outgoing>, is_last: bool) {
        self.stats.sends.bytes.add(outgoing.length_bytes());
        self.io.send(slot, outgoing, is_last);
    }

    /// A container has come back: all of it was taken, or the send has failed.
    #[inline]
    pub(crate) fn sent(&mut self, slot: Slot, outgoing: Box<Outgoing>, errno: i32) -> Sent {
        self.spare.put(outgoing);
        if errno != 0 {
            self.stats.sends.failed.add(1);
        }
        let wire = self.wire(slot);
        if wire == Wire::Upstream {
            let now_ms = self.time.now_ms;
            return Sent::Upstream(self.note_upstream(slot, |row| row.note_sent(errno, now_ms)));
        }
        let connection = &mut self.connections[slot as usize];
        connection.end_send();
        let (is_leaving, rests) = (connection.leaving, connection.marks.rests());
        if rests {
            self.await_acknowledgement(slot);
        }
        match (is_leaving, errno, wire) {
            (true, ..) => Sent::Part,
            (false, 0, Wire::Secured) => self.sent_piece(slot),
            (false, 0, _) => Sent::All,
            (false, ..) => Sent::Failed,
        }
    }

    /// Some of what is in flight was taken. Gives the row of an upstream.
    pub(crate) fn progressed(&mut self, slot: Slot, bytes: u32) -> Option<u32> {
        match self.wire(slot) {
            Wire::Upstream => {
                let now_ms = self.time.now_ms;
                return self.note_upstream(slot, |row| row.note_progress(now_ms));
            }
            Wire::Secured => {
                if let Some(wall) = self.secured.active(slot) {
                    wall.in_flight_bytes = wall.in_flight_bytes.saturating_sub(u64::from(bytes));
                }
            }
            Wire::Plain => {}
        }
        self.note_progress(slot, bytes);
        None
    }

    /// The deadline of a send moves on with what was taken.
    pub(super) fn note_progress(&mut self, slot: Slot, bytes: u32) {
        let rate_min = self.overload.capacity.pressure().send_rate_min;
        self.connections[slot as usize].progress(bytes, rate_min, self.time.now_ms, &self.overload.timeouts);
    }

    /// Pauses a peer that sends faster than it is answered, and lets it go on.
    #[inline]
    pub(super) fn regulate(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        if connection.is_full() != connection.paused && connection.phase != Phase::Closing {
            connection.paused = !connection.paused;
            if connection.paused {
                self.io.pause(slot);
            } else if !connection.marks.has_ended() {
                self.io.receive(slot);
            }
        }
    }
}
