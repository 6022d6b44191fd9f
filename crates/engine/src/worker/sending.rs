//! What a connection has to send is handed to the network here, and its end follows; on a secured connection
//! `sealing` does so.
//!
//! It must never hand over a second container while one is in flight.

use staunch_netio::{Io, Slot};
use staunch_protocol::Deadline;

use super::Worker;
use crate::connection::Phase;
use crate::handler::Handler;

impl<I: Io, H: Handler> Worker<I, H> {
    /// Hands over what the connection has to send, ends it if it is at its end, sets its deadline, and counts
    /// what it holds.
    #[inline]
    pub(super) fn flush(&mut self, slot: Slot) {
        if self.secured.is_walled(slot) {
            return self.flush_sealed(slot);
        }
        self.hand_over(slot);
        self.count(slot);
    }

    #[inline]
    fn hand_over(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        if matches!(connection.phase, Phase::Free | Phase::Closing) {
            return;
        }
        if let Some(mut outgoing) = connection.take_outgoing() {
            if connection.behind || self.overload.memory.is_tight() {
                outgoing.shrink();
            }
            let last = connection.phase == (Phase::Ending { linger: false });
            if last {
                connection.phase = Phase::Closing;
            }
            connection.begin_send(&outgoing);
            connection.start_deadline(Deadline::Send, self.time.now_ms, &self.overload.timeouts);
            self.stats.sent_bytes.add(outgoing.length_bytes());
            self.io.send(slot, outgoing, last);
            self.deadlines.sends_begun.push(slot);
            return self.regulate(slot);
        }
        if let Phase::Ending { linger } = connection.phase
            && !connection.sending
        {
            self.say_farewell(slot, linger);
        }
        self.regulate(slot);
        self.set_deadline(slot);
    }

    /// The container of a connection has come back.
    #[inline]
    pub(super) fn end_send(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        connection.end_send();
        if connection.marks.rests() {
            self.await_acknowledgement(slot);
        }
    }

    /// Everything is sent and nothing more will be read.
    pub(super) fn say_farewell(&mut self, slot: Slot, linger: bool) {
        let connection = &mut self.connections[slot as usize];
        if !linger || connection.has_ended() {
            return self.close(slot);
        }
        connection.phase = Phase::Lingering;
        connection.start_deadline(Deadline::Linger, self.time.now_ms, &self.overload.timeouts);
        self.io.shutdown(slot);
    }

    /// Sets the deadline of each send that is not over a turn after it began. Most are, and cost the wheel
    /// nothing then, however long an idle time is that their node stands for.
    pub(super) fn watch_sends(&mut self, begun_before: usize) {
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
    }
}
