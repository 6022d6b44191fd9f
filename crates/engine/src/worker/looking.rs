//! Peers are looked at before they are cut off: what counts is what they have acknowledged, not what the
//! kernel has taken for them.
//!
//! It must never ask about a connection twice at once, or about one that is being closed.

use staunch_netio::{Io, Slot, Taken};
use staunch_protocol::Deadline;

use super::Worker;
use crate::connection::{Marks, Phase};
use crate::handler::Handler;
use crate::limits::OPEN_GONE_MS;

impl<I: Io, H: Handler> Worker<I, H> {
    /// A deadline has passed, or the time of a first look. Whether it is no matter before the kernel has told
    /// what the peer has acknowledged.
    pub(super) fn look_first(&mut self, slot: Slot, deadline: Deadline) -> bool {
        let connection = &mut self.connections[slot as usize];
        if connection.leaving || !connection.is_to_be_asked(deadline) {
            return false;
        }
        if !connection.ask() {
            self.io.inspect(slot);
        }
        true
    }

    /// The kernel has told.
    #[cold]
    pub(super) fn looked(&mut self, slot: Slot, taken: Option<Taken>) {
        if self.outbox.upstreams().own(slot) {
            return;
        }
        let connection = &mut self.connections[slot as usize];
        connection.marks.clear(Marks::ASKED);
        if connection.leaving || connection.phase == Phase::Free {
            return;
        }
        let now_ms = self.time.now_ms;
        let (is_sending, has_streams) = (connection.sending, connection.has_streams());
        let goes_on = connection.has_exchanges() && !has_streams;
        let waits = connection.marks.has(Marks::WAITS) && (is_sending || goes_on);
        if !waits && (is_sending || has_streams) {
            let rate_min = self.overload.capacity.pressure().send_rate_min;
            connection.note_taken(taken, rate_min, now_ms, &self.overload.timeouts);
        } else if waits {
            let gone_ms = self.gone_ms();
            let connection = &mut self.connections[slot as usize];
            if connection.is_gone(taken, now_ms, gone_ms) {
                self.stats.count_timeout(Deadline::Send);
                return self.close(slot);
            }
            self.count_any(slot);
        }
        match self.due(slot) {
            Some((due_ms, deadline)) if due_ms <= now_ms => self.give_up_on(slot, deadline),
            due => self.place_deadline(slot, due),
        }
    }

    /// What was sent of an answer that goes on was taken by the kernel, which keeps little of it.
    #[cold]
    pub(super) fn await_acknowledgement(&mut self, slot: Slot) {
        let (now_ms, gone_ms) = (self.time.now_ms, self.gone_ms());
        self.connections[slot as usize].await_acknowledgement(now_ms, gone_ms);
    }

    /// How long a peer of an answer that goes on may acknowledge nothing.
    pub(super) fn gone_ms(&self) -> u32 {
        self.overload.timeouts.send_ms.max(OPEN_GONE_MS)
    }

    /// The kernel keeps little of what this connection sends from now on, or as much as of others again.
    pub(super) fn keep_little(&mut self, slot: Slot, keeps_little: bool) {
        let can_look = self.io.can_inspect();
        self.connections[slot as usize].keep_little(keeps_little && can_look);
        self.count_any(slot);
    }

    /// Counts what a connection holds, secured or not.
    fn count_any(&mut self, slot: Slot) {
        if self.secured.is_walled(slot) { self.count_sealed(slot) } else { self.count(slot) }
    }
}
