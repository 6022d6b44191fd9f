//! What secured connections have to send is sealed here, piece by piece, and handed to the network.
//!
//! It must never hold a sealed copy of more than a piece of an answer, and never hand over a second piece
//! while one is in flight. Order: `flush_sealed` whenever something of a connection has changed,
//! `sent_sealed` for each piece that was taken.

use staunch_netio::{Io, Outgoing, Slot};
use staunch_protocol::Deadline;

use super::Worker;
use crate::connection::Phase;
use crate::handler::Handler;
use crate::limits::{PIECE_BYTES_MAX, PIECE_TIGHT_BYTES_MAX};
use crate::secured::Drawn;

impl<I: Io, H: Handler> Worker<I, H> {
    /// As `flush`, on a secured connection.
    pub(super) fn flush_sealed(&mut self, slot: Slot) {
        self.hand_over_sealed(slot);
        self.count_sealed(slot);
    }

    fn hand_over_sealed(&mut self, slot: Slot) {
        if matches!(self.connections[slot as usize].phase, Phase::Free | Phase::Closing) {
            return;
        }
        if self.prepare_to_send(slot) {
            self.begin_sealed(slot);
            return self.regulate(slot);
        }
        let connection = &self.connections[slot as usize];
        if let Phase::Ending { linger } = connection.phase
            && !connection.sending
        {
            self.say_farewell_sealed(slot, linger);
        }
        self.regulate(slot);
        self.place_deadline(slot, self.due(slot));
    }

    /// Takes what the connection has to send. Whether a send is to begin.
    fn prepare_to_send(&mut self, slot: Slot) -> bool {
        let connection = &mut self.connections[slot as usize];
        if connection.sending {
            return false;
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
        self.secured.active(slot).is_some_and(|wall| wall.has_something())
    }

    /// A send begins, of one or several pieces.
    pub(super) fn begin_sealed(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        connection.start_deadline(Deadline::Send, self.time.now_ms, &self.overload.timeouts);
        self.send_piece(slot);
    }

    /// Seals the next piece and hands it over, or waits for a disk.
    fn send_piece(&mut self, slot: Slot) {
        let is_tight = self.overload.memory.is_tight();
        let bytes_max = if is_tight { PIECE_TIGHT_BYTES_MAX } else { PIECE_BYTES_MAX };
        let mut sealed = self.reused.spare.take();
        let drawn = self.secured.fill(slot, bytes_max, sealed.bytes());
        let Some(wall) = self.secured.active(slot) else { return };
        let connection = &mut self.connections[slot as usize];
        if drawn == Drawn::All {
            if let Some(outgoing) = wall.take_drawing() {
                self.reused.spare.put(outgoing);
            }
            // A last word may stand in another container behind the one that is drawn.
            if matches!(connection.phase, Phase::Ending { .. } | Phase::Closing) && !connection.has_outgoing()
            {
                wall.close(sealed.bytes());
            }
        }
        let last = drawn == Drawn::All && wall.is_last;
        wall.in_flight_bytes = sealed.length_bytes();
        if is_tight {
            sealed.shrink();
        }
        connection.begin_piece(&sealed);
        self.deadlines.sends_begun.push(slot);
        if drawn == Drawn::Failed {
            self.reused.spare.put(sealed);
            self.stats.sends_failed.add(1);
            return self.close(slot);
        }
        if sealed.is_empty() && !last {
            // Only a file that is not in memory leaves nothing to send.
            self.reused.spare.put(sealed);
            return self.await_disk(slot);
        }
        self.stats.sent_bytes.add(sealed.length_bytes());
        self.io.send(slot, sealed, last);
    }

    /// The connection goes on when another thread has read the next bytes of its file ahead.
    #[cold]
    fn await_disk(&mut self, slot: Slot) {
        let generation = self.connections[slot as usize].generation;
        self.secured.warm(slot, u64::from(generation) << 32 | u64::from(slot));
    }

    /// Bytes of files were read ahead.
    pub(super) fn go_on_warmed(&mut self) {
        for warmed in self.secured.take_warmed() {
            let (slot, generation) = (warmed.token as u32, (warmed.token >> 32) as u32);
            let connection = self.connections.get(slot as usize);
            if connection.is_some_and(|connection| connection.generation == generation) {
                if let Some(wall) = self.secured.active(slot) {
                    wall.note_warmed(warmed);
                }
                self.go_on_waiting(slot);
            }
        }
    }

    /// Files that nobody has read ahead are tried again.
    pub(super) fn retry_cold(&mut self) {
        for slot in self.secured.take_cold() {
            self.go_on_waiting(slot);
        }
    }

    /// A connection that waits for a disk goes on, if it still does.
    fn go_on_waiting(&mut self, slot: Slot) {
        let waited = self.secured.active(slot).is_some_and(|wall| std::mem::take(&mut wall.waits_for_disk));
        if waited && !self.connections[slot as usize].leaving {
            self.send_piece(slot);
            self.count_sealed(slot);
        }
    }

    /// Some of a piece was taken.
    pub(super) fn progressed_sealed(&mut self, slot: Slot, bytes: u32) {
        if let Some(wall) = self.secured.active(slot) {
            wall.in_flight_bytes = wall.in_flight_bytes.saturating_sub(u64::from(bytes));
        }
    }

    /// A piece was taken as a whole, or has failed.
    pub(super) fn sent_sealed(&mut self, slot: Slot, outgoing: Box<Outgoing>, errno: i32) {
        self.reused.spare.put(outgoing);
        self.end_send(slot);
        let connection = &self.connections[slot as usize];
        if connection.leaving {
            return self.count_sealed(slot);
        }
        if errno != 0 {
            self.stats.sends_failed.add(1);
            self.close(slot);
            return self.count_sealed(slot);
        }
        if let Some(wall) = self.secured.active(slot) {
            let taken_bytes = u32::try_from(std::mem::take(&mut wall.in_flight_bytes)).unwrap_or(u32::MAX);
            wall.used_ms = self.time.now_ms;
            // What is owed alone begins a send of its own.
            let goes_on = wall.is_drawing() || wall.is_last && wall.has_something();
            if goes_on {
                let rate_min = self.overload.capacity.pressure().send_rate_min;
                let connection = &mut self.connections[slot as usize];
                connection.progress(taken_bytes, rate_min, self.time.now_ms, &self.overload.timeouts);
                self.send_piece(slot);
                return self.count_sealed(slot);
            }
        }
        let (connection, mut turn, _) = self.lend(slot);
        connection.catch_up(&mut turn);
        self.flush_sealed(slot);
    }

    /// Everything is sent and nothing more will be read: the peer is told so, within its records first.
    fn say_farewell_sealed(&mut self, slot: Slot, linger: bool) {
        if !self.secured.has_keys(slot) {
            return self.say_farewell(slot, linger && self.secured.is_given_up(slot));
        }
        let ends_now = !linger || self.connections[slot as usize].has_ended();
        if self.close_records(slot, ends_now) {
            self.begin_sealed(slot);
        } else {
            self.say_farewell(slot, linger);
        }
    }

    /// The worker ends, or others need the slot: a connection that nothing is being sent on is closed in
    /// order, any other at once.
    pub(super) fn end_connection(&mut self, slot: Slot, why: &'static str) {
        let connection = &self.connections[slot as usize];
        if connection.has_streams() && !connection.sending {
            let (connection, mut turn, _) = self.lend(slot);
            connection.dismiss_http2(why, &mut turn);
            connection.phase = Phase::Ending { linger: false };
            return self.flush(slot);
        }
        if connection.phase == Phase::Open
            && !connection.has_exchanges()
            && !connection.sending
            && self.secured.has_keys(slot)
            && self.close_records(slot, true)
        {
            self.begin_sealed(slot);
            return self.count_sealed(slot);
        }
        self.close(slot);
    }

    /// Seals the peer's notice that nothing follows, if it was not sealed before. With `ends_now` the
    /// connection is closed behind it.
    fn close_records(&mut self, slot: Slot, ends_now: bool) -> bool {
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

    /// As `count`, on a secured connection.
    pub(super) fn count_sealed(&mut self, slot: Slot) {
        let wall_bytes = u32::try_from(self.secured.held_bytes(slot)).unwrap_or(u32::MAX);
        let connection_bytes = self.connections[slot as usize].held_bytes();
        self.count_as(slot, connection_bytes.saturating_add(wall_bytes));
    }
}
