//! What the connections of a worker hold is counted here, and those that hold most are closed when it is more
//! than there may be.
//!
//! It must never look at all connections for a single one: several are closed at once, so that the next look
//! is a good part of the budget away.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use staunch_netio::{Io, Slot, memory};

use super::Worker;
use crate::connection::Phase;
use crate::handler::Handler;
use crate::limits::{
    BEHIND_BYTES_MAX, EVICTION_SLOTS_COUNT, FIELDS_LOOKS_MAX, GIVING_WAY_MAX, WRITTEN_BYTES_MAX,
};

/// In which order connections give way: those that hold most first, by powers of two. Of those that hold
/// about as much, the one whose deadline is nearest, for it has made least progress.
type Rank = (u32, Reverse<u64>, Slot);

impl<I: Io, H: Handler> Worker<I, H> {
    /// From now on its connections may hold so much.
    pub fn set_memory_budget(&mut self, budget_bytes: u64) {
        self.overload.memory.set_budget(budget_bytes);
        self.reused.spare.set_bytes_max(self.overload.memory.spare_bytes_max());
        self.stats.memory_budget_bytes.set(self.overload.memory.budget_bytes());
    }

    /// What its connections hold now, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.overload.memory.held_bytes()
    }

    /// The part of it that comes back by itself, in bytes: the connections that hold it are being closed.
    pub fn leaving_bytes(&self) -> u64 {
        self.overload.memory.leaving_bytes()
    }

    /// How much is written into a container before it is sent.
    #[inline]
    pub(super) fn written_bytes_max(&self) -> usize {
        if self.overload.memory.is_tight() { BEHIND_BYTES_MAX } else { WRITTEN_BYTES_MAX }
    }

    /// Something of a connection has changed.
    #[inline]
    pub(super) fn count(&mut self, slot: Slot) {
        let held_bytes = self.connections[slot as usize].held_bytes();
        self.count_as(slot, held_bytes);
    }

    /// A connection holds so much now.
    #[inline]
    pub(super) fn count_as(&mut self, slot: Slot, held_bytes: u32) {
        let connection = &mut self.connections[slot as usize];
        let before_bytes = std::mem::replace(&mut connection.counted_bytes, held_bytes);
        self.overload.memory.change(before_bytes, held_bytes);
        if connection.leaving {
            self.overload.memory.change_leaving(before_bytes, held_bytes);
        }
        if self.overload.memory.is_over() {
            self.relieve();
        }
    }

    /// Counts a connection's memory as leaving: it is being closed before its time.
    pub(super) fn count_leaving(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        if !std::mem::replace(&mut connection.leaving, true) {
            self.overload.memory.change_leaving(0, connection.counted_bytes);
        }
    }

    /// Counts a connection as gone with all that it held.
    pub(super) fn count_gone(&mut self, slot: Slot) {
        let connection = &self.connections[slot as usize];
        self.overload.memory.change(connection.counted_bytes, 0);
        if connection.leaving {
            self.overload.memory.change_leaving(connection.counted_bytes, 0);
        }
    }

    /// Closes a connection that something came for, if there is no memory for what it might ask. Whether it
    /// did.
    #[inline]
    pub(super) fn has_no_memory_for(&mut self, slot: Slot) -> bool {
        self.overload.memory.is_full() && self.refuse(slot)
    }

    #[cold]
    fn refuse(&mut self, slot: Slot) -> bool {
        let phase = self.connections[slot as usize].phase;
        if !matches!(phase, Phase::Free | Phase::Closing) {
            self.stats.closed_for_memory.add(1);
            self.close(slot);
        }
        true
    }

    /// Closes those that hold most until it is calm.
    #[cold]
    pub(super) fn relieve(&mut self) {
        // The least of the chosen comes first.
        let mut chosen: BinaryHeap<Reverse<Rank>> = BinaryHeap::with_capacity(GIVING_WAY_MAX + 1);
        let staying = self.connections.iter().enumerate().filter(|(_, connection)| !connection.leaving);
        let accepted = staying.map(|(slot, connection)| {
            // Of a send the deadline itself counts, whenever it is looked at.
            let deadline_ms = match connection.sending {
                true => Some(connection.deadline_ms),
                false => self.due(slot as Slot).map(|(ms, _)| ms),
            };
            (slot as Slot, connection.counted_bytes, deadline_ms)
        });
        for (slot, bytes, deadline_ms) in accepted.chain(self.outbox.upstreams().holders()) {
            let Some(class) = bytes.checked_ilog2() else { continue };
            let rank = (class, Reverse(deadline_ms.unwrap_or(u64::MAX)), slot);
            if chosen.len() < GIVING_WAY_MAX || chosen.peek().is_some_and(|least| rank > least.0) {
                chosen.push(Reverse(rank));
            }
            if chosen.len() > GIVING_WAY_MAX {
                chosen.pop();
            }
        }
        let (worker, held_bytes, budget_bytes) =
            (self.index, self.overload.memory.held_bytes(), self.overload.memory.budget_bytes());
        self.overload.complaints.say(self.time.now_ms, || {
            format!(
                "worker {worker}: peers that do not read their answers hold {} of {} KiB; those that hold \
                 most are closed; raise --memory-budget or lower --send-timeout",
                held_bytes >> 10,
                budget_bytes >> 10
            )
        });
        for Reverse((_, _, slot)) in chosen.into_sorted_vec() {
            if self.overload.memory.excess_bytes() == 0 {
                break;
            }
            self.stats.closed_for_memory.add(1);
            if self.outbox.upstreams().own(slot) {
                self.give_up_upstream(slot);
            } else {
                self.close(slot);
            }
        }
    }

    /// Tables of HTTP/2 hold too many fields. Of each few connections the idle one with the largest share
    /// goes, or another one where none is idle: not the one that comes.
    #[cold]
    pub(super) fn make_room_for_fields(&mut self) {
        let (first, count) = (self.outbox.upstreams().slots(), self.connections.len() as u32);
        for _ in 0..FIELDS_LOOKS_MAX {
            let mut largest: Option<((bool, usize), Slot)> = None;
            for _ in 0..EVICTION_SLOTS_COUNT.min(count) {
                let next = self.overload.hand + 1;
                self.overload.hand = if next < count { next.max(first) } else { first };
                let connection = &self.connections[self.overload.hand as usize];
                let share = connection.fields_share(&self.reused.http2.memory);
                largest = share.map(|share| (share, self.overload.hand)).into_iter().chain(largest).max();
            }
            if let Some((_, slot)) = largest {
                self.stats.closed_for_memory.add(1);
                let (connection, mut turn, _) = self.lend(slot);
                connection.dismiss_http2("others need the room", &mut turn);
                self.flush(slot);
            }
            if !self.reused.http2.memory.is_crowded() {
                return;
            }
        }
    }

    /// Gives memory back to the system, some time after there was much.
    #[inline]
    pub(super) fn settle(&mut self) {
        self.stats.memory_held_bytes.set(self.overload.memory.held_bytes());
        self.secured.show(&self.stats);
        if self.overload.memory.is_quiet(self.time.now_ms) {
            self.give_back_memory();
        }
    }

    /// Gives back what nobody needs at present. The worker does it by itself some time after there was much.
    #[cold]
    pub fn give_back_memory(&mut self) {
        self.reused.spare.shrink();
        self.secured.shrink();
        self.io.give_back_memory();
        self.deadlines.sends_begun.shrink_to_fit();
        self.deadlines.due.shrink_to_fit();
        memory::give_back();
    }
}
