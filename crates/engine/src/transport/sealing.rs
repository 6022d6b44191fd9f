//! Answers on secured connections are sealed here, piece by piece.
//!
//! Sealing must never hold a sealed copy of more than a piece of an answer, and never hand over a second
//! piece while one is in flight.

use staunch_netio::{Io, Slot};
use staunch_protocol::Deadline;

use super::{Handed, Sent, Transport};
use crate::connection::Phase;
use crate::limits::{PIECE_BYTES_MAX, PIECE_TIGHT_BYTES_MAX};
use crate::secured::Drawn;

impl<I: Io> Transport<I> {
    /// Takes what a connection has to send, and begins with it.
    pub(super) fn hand_over_sealed(&mut self, slot: Slot) -> Handed {
        let connection = &mut self.connections[slot as usize];
        if connection.sending {
            return Handed::Nothing;
        }
        // Before there are keys it stays where it is.
        if self.secured.has_keys(slot)
            && let Some(outgoing) = connection.take_outgoing()
            && let Some(wall) = self.secured.wake(slot, self.time.now_ms)
        {
            wall.begin_drawing(outgoing);
            connection.leave_container();
            if connection.phase == (Phase::Ending { linger: false }) {
                connection.phase = Phase::Closing;
                wall.is_last = true;
            }
        }
        if self.secured.active(slot).is_some_and(|wall| wall.has_something()) {
            self.begin_sealed(slot)
        } else {
            Handed::Nothing
        }
    }

    /// A send begins, of one or several pieces.
    pub(crate) fn begin_sealed(&mut self, slot: Slot) -> Handed {
        let connection = &mut self.connections[slot as usize];
        connection.start_deadline(Deadline::Send, self.time.now_ms, &self.overload.timeouts);
        self.send_piece(slot)
    }

    /// Seals the next piece and hands it over, or waits for a disk.
    pub(crate) fn send_piece(&mut self, slot: Slot) -> Handed {
        let is_tight = self.overload.memory.is_tight();
        let bytes_max = if is_tight { PIECE_TIGHT_BYTES_MAX } else { PIECE_BYTES_MAX };
        let mut sealed = self.spare.take();
        let drawn = self.secured.fill(slot, bytes_max, sealed.bytes());
        let wall = match self.secured.active(slot) {
            Some(wall) if drawn != Drawn::Failed => wall,
            _ => {
                self.spare.put(sealed);
                self.stats.sends.failed.add(1);
                return Handed::Broken;
            }
        };
        if drawn == Drawn::All {
            if let Some(outgoing) = wall.take_drawing() {
                self.spare.put(outgoing);
            }
            let connection = &self.connections[slot as usize];
            // A last word may stand in another container behind the one that is drawn.
            if matches!(connection.phase, Phase::Ending { .. } | Phase::Closing) && !connection.has_outgoing()
            {
                wall.close(sealed.bytes());
            }
        }
        let is_last = drawn == Drawn::All && wall.is_last;
        wall.in_flight_bytes = sealed.length_bytes();
        if is_tight {
            sealed.shrink();
        }
        self.note_begun(slot, &sealed);
        if sealed.is_empty() && !is_last {
            // Only a file that is not in memory leaves nothing to send: a thread reads its next bytes ahead.
            self.spare.put(sealed);
            let generation = self.connections[slot as usize].generation;
            self.secured.warm(slot, u64::from(generation) << 32 | u64::from(slot));
        } else {
            self.launch(slot, sealed, is_last);
        }
        Handed::Begun
    }

    /// Connections for which bytes of files were read ahead.
    pub(crate) fn take_warmed(&mut self) -> Vec<Slot> {
        let mut slots = Vec::new();
        for warmed in self.secured.take_warmed() {
            let (slot, generation) = (warmed.token as u32, (warmed.token >> 32) as u32);
            let connection = self.connections.get(slot as usize);
            if connection.is_some_and(|connection| connection.generation == generation) {
                if let Some(wall) = self.secured.active(slot) {
                    wall.note_warmed(warmed);
                }
                slots.push(slot);
            }
        }
        slots
    }

    /// A connection that waits for a disk tries again, if it still does. `None`: it does not.
    pub(crate) fn go_on_waiting(&mut self, slot: Slot) -> Option<Handed> {
        let waited = self.secured.active(slot).is_some_and(|wall| std::mem::take(&mut wall.waits_for_disk));
        (waited && !self.connections[slot as usize].leaving).then(|| self.send_piece(slot))
    }

    /// A piece was taken as a whole: the next one follows, if there is one.
    pub(super) fn sent_piece(&mut self, slot: Slot) -> Sent {
        let Some(wall) = self.secured.active(slot) else { return Sent::All };
        let taken_bytes = u32::try_from(std::mem::take(&mut wall.in_flight_bytes)).unwrap_or(u32::MAX);
        wall.used_ms = self.time.now_ms;
        // Records of TLS itself, without an answer, begin a send of their own.
        if !(wall.is_drawing() || wall.is_last && wall.has_something()) {
            return Sent::All;
        }
        self.note_progress(slot, taken_bytes);
        match self.send_piece(slot) {
            Handed::Broken => Sent::Failed,
            Handed::Nothing | Handed::Begun => Sent::Part,
        }
    }

    /// Seals the peer's notice that nothing follows, if it was not sealed before. With `ends_now` the
    /// connection is closed behind it.
    pub(crate) fn close_records(&mut self, slot: Slot, ends_now: bool) -> bool {
        let Some(wall) = self.secured.wake(slot, self.time.now_ms) else { return false };
        if wall.is_closed {
            return false;
        }
        let mut notice = std::mem::take(&mut wall.owed);
        wall.close(&mut notice);
        wall.owed = notice;
        if ends_now {
            wall.is_last = true;
            self.connections[slot as usize].phase = Phase::Closing;
        }
        true
    }
}
