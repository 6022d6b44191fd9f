//! Connections end in order here: what is said last, who closes first, and what comes back when they are
//! gone.
//!
//! An end must never wait for a peer longer than a deadline says.

use staunch_netio::{Io, Slot};
use staunch_protocol::Deadline;
use staunch_protocol::http2::WorkerMemory;

use super::{Handed, Transport, Wire};
use crate::connection::Phase;
use crate::stats::TlsRefusal;

/// The consequence for a connection whose peer sends no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum PeerEnd {
    /// The session hears of it.
    Heard,
    /// The session knows already.
    Known,
    /// The connection has to be closed.
    Close,
    /// The upstream in this row takes its next steps.
    Upstream(Option<u32>),
}

impl<I: Io> Transport<I> {
    /// Everything is sent and nothing more will be read. A secured peer is told so within its records first.
    pub(super) fn say_farewell(&mut self, slot: Slot, linger: bool) -> Handed {
        let mut lingers = linger && !self.connections[slot as usize].marks.has_ended();
        if self.wire(slot) == Wire::Secured {
            if !self.secured.has_keys(slot) {
                lingers &= self.secured.is_given_up(slot);
            } else if self.close_records(slot, !lingers) {
                return self.begin_sealed(slot);
            }
        }
        if lingers {
            let connection = &mut self.connections[slot as usize];
            connection.phase = Phase::Lingering;
            connection.start_deadline(Deadline::Linger, self.time.now_ms, &self.overload.timeouts);
            self.io.shutdown(slot);
        } else {
            self.close(slot);
        }
        Handed::Nothing
    }

    /// Closes a connection at once. None of its exchanges is told: the worker does so before.
    pub(crate) fn close(&mut self, slot: Slot) {
        self.connections[slot as usize].phase = Phase::Closing;
        self.count_leaving(slot);
        self.io.close(slot);
    }

    /// The peer sends no more, or the connection has failed.
    pub(crate) fn ended(&mut self, slot: Slot, errno: i32) -> PeerEnd {
        match self.wire(slot) {
            Wire::Upstream => {
                return PeerEnd::Upstream(self.note_upstream(slot, |row| row.note_ended(errno)));
            }
            Wire::Secured => {
                if let Some(end) = self.ended_sealed(slot, errno) {
                    return end;
                }
            }
            Wire::Plain => {}
        }
        let is_over = errno != 0 || self.connections[slot as usize].phase == Phase::Lingering;
        if is_over { PeerEnd::Close } else { PeerEnd::Heard }
    }

    /// As [`Self::ended`] on a secured connection, where it is not dealt with as on a plain one.
    fn ended_sealed(&mut self, slot: Slot, errno: i32) -> Option<PeerEnd> {
        let connection = &self.connections[slot as usize];
        if matches!(connection.phase, Phase::Free | Phase::Closing) {
            return None;
        }
        if !self.secured.has_keys(slot) {
            // A last word is on its way.
            if errno == 0 && matches!(connection.phase, Phase::Ending { .. }) {
                return None;
            }
            if self.secured.handshake_until_ms(slot).is_some() {
                self.stats.tls.count_refusal(TlsRefusal::Left);
            }
            return Some(PeerEnd::Close);
        }
        if errno != 0 || connection.phase == Phase::Lingering {
            return None;
        }
        // The peer announced its end by an alert before, and the session knows.
        if connection.marks.has_ended() {
            return Some(PeerEnd::Known);
        }
        self.stats.tls.truncated.add(1);
        None
    }

    /// The backend has given a slot back, and all that was lent to it comes back. Gives what it was.
    pub(crate) fn retire(&mut self, slot: Slot, memory: &mut WorkerMemory) -> Wire {
        let wire = self.wire(slot);
        self.deadlines.wheel.clear(slot);
        if wire == Wire::Upstream {
            self.retire_upstream(slot);
            return wire;
        }
        self.hear(slot);
        self.count_gone(slot);
        self.connections[slot as usize].retire(&mut self.spare, memory);
        if let Some(undrawn) = self.secured.tear_down(slot) {
            self.spare.put(undrawn);
        }
        self.stats.connections.closed.add(1);
        wire
    }
}
