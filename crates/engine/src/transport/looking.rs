//! Peers are looked at before they are cut off: what counts is what they have acknowledged, not what the
//! kernel has taken for them.
//!
//! It must never ask about a connection twice at once, or about one that is being closed.

use staunch_netio::{Io, Slot, Taken, Tuning};
use staunch_protocol::Deadline;

use super::{Transport, Wire};
use crate::connection::{Marks, Phase};
use crate::limits::{OPEN_GONE_MS, OPEN_UNSENT_BYTES};

impl<I: Io> Transport<I> {
    /// A deadline has passed, or the time of a first look. Whether it is no matter before the kernel has told
    /// what the peer has acknowledged.
    pub(crate) fn look_first(&mut self, slot: Slot, deadline: Deadline) -> bool {
        let connection = &mut self.connections[slot as usize];
        if connection.leaving || !connection.marks.want_a_look(deadline) {
            return false;
        }
        if !connection.marks.ask() {
            self.io.inspect(slot);
        }
        true
    }

    /// The kernel has told. `None`: nobody waits for that. Else, whether the peer is given up.
    #[cold]
    pub(crate) fn looked(&mut self, slot: Slot, taken: Option<Taken>) -> Option<bool> {
        if self.wire(slot) == Wire::Upstream {
            return None;
        }
        let connection = &mut self.connections[slot as usize];
        connection.marks.clear(Marks::ASKED);
        if connection.leaving || connection.phase == Phase::Free {
            return None;
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
            if self.connections[slot as usize].is_gone(taken, now_ms, gone_ms) {
                return Some(true);
            }
            self.count(slot);
        }
        Some(false)
    }

    /// What was sent of an answer that goes on was taken by the kernel, which keeps little of it.
    #[cold]
    pub(super) fn await_acknowledgement(&mut self, slot: Slot) {
        let (now_ms, gone_ms) = (self.time.now_ms, self.gone_ms());
        self.connections[slot as usize].await_acknowledgement(now_ms, gone_ms);
    }

    /// How long a peer of an answer that goes on may acknowledge nothing.
    fn gone_ms(&self) -> u32 {
        self.overload.timeouts.send_ms.max(OPEN_GONE_MS)
    }

    /// Tells the kernel how much it is to keep of what connections send.
    pub(crate) fn tune_connections(&mut self) {
        for (slot, keeps_little) in self.outbox.take_tunings() {
            if matches!(self.connections[slot as usize].phase, Phase::Free | Phase::Closing) {
                continue;
            }
            let unsent = match keeps_little {
                true => Tuning::Unsent(OPEN_UNSENT_BYTES),
                false => Tuning::UNSENT_AT_FIRST,
            };
            self.io.tune(slot, unsent);
            let can_look = self.io.can_inspect();
            if !can_look {
                // Also cuts off a peer that takes little at a time: better where nobody can look.
                let gone_ms = if keeps_little { self.gone_ms() } else { 0 };
                self.io.tune(slot, Tuning::UserTimeout(gone_ms));
            }
            self.connections[slot as usize].keep_little(keeps_little && can_look);
            self.count(slot);
        }
    }
}
