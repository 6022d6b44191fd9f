//! Memory that the connections of a worker hold is counted here, whatever their wire.
//!
//! Counting must never close a connection: the worker does, when there is more than there may be
//! (`worker/holding.rs`).

use staunch_netio::{Io, Slot};

use super::Transport;
use crate::limits::ASLEEP_A_TURN_MAX;

impl<I: Io> Transport<I> {
    /// Something of an accepted connection has changed: what it and its wall hold is counted anew.
    #[inline]
    pub(crate) fn count(&mut self, slot: Slot) {
        let wall_bytes = u32::try_from(self.secured.held_bytes(slot)).unwrap_or(u32::MAX);
        let connection = &mut self.connections[slot as usize];
        let held_bytes = connection.held_bytes().saturating_add(wall_bytes);
        let (counted, leaving) = (&mut connection.counted_bytes, &mut connection.leaving);
        let is_leaving = *leaving;
        self.overload.memory.recount(counted, leaving, held_bytes, is_leaving);
    }

    /// Counts the memory of a connection as leaving: it is being closed before its time.
    pub(super) fn count_leaving(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        let held_bytes = connection.counted_bytes;
        let (counted, leaving) = (&mut connection.counted_bytes, &mut connection.leaving);
        self.overload.memory.recount(counted, leaving, held_bytes, true);
    }

    /// Counts a connection as gone with all that it held.
    pub(super) fn count_gone(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        let (counted, leaving) = (&mut connection.counted_bytes, &mut connection.leaving);
        self.overload.memory.recount(counted, leaving, 0, false);
    }

    /// Lays secured connections to sleep whose time has come.
    #[cold]
    pub(crate) fn lay_to_sleep(&mut self) {
        for _ in 0..ASLEEP_A_TURN_MAX {
            let is_tight = self.overload.memory.is_tight();
            match self.secured.lay_to_sleep(self.time.now_ms, is_tight) {
                Some(slot) => self.count(slot),
                None => break,
            }
        }
    }

    /// Shows what is held, and gives memory back to the system some time after there was much.
    #[inline]
    pub(crate) fn settle(&mut self) {
        self.stats.pressure.held_bytes.set(self.overload.memory.held_bytes());
        self.secured.show(&self.stats.tls);
        if self.overload.memory.is_quiet(self.time.now_ms) {
            self.give_back_memory();
        }
    }

    /// Gives back what nobody needs at present.
    #[cold]
    pub(crate) fn give_back_memory(&mut self) {
        self.spare.shrink();
        self.secured.shrink();
        self.io.give_back_memory();
        self.deadlines.sends_begun.shrink_to_fit();
        self.deadlines.due.shrink_to_fit();
        staunch_netio::memory::give_back();
    }
}
