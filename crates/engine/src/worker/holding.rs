//! When the connections of a worker hold too much memory together, those that hold most are closed.
//!
//! It must never look at all connections for a single one: several are closed at once, so that the next look
//! is a good part of the budget away.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use staunch_netio::{Io, Slot};

use super::Worker;
use crate::connection::Phase;
use crate::handler::Handler;
use crate::limits::{EVICTION_SLOTS_COUNT, FIELDS_LOOKS_MAX, GIVING_WAY_MAX};
use crate::transport::Wire;

/// In which order connections give way: those that hold most first, by powers of two. Of those that hold
/// about as much, the one whose deadline is nearest, for it has made least progress.
type Rank = (u32, Reverse<u64>, Slot);

impl<I: Io, H: Handler> Worker<I, H> {
    /// From now on its connections may hold so much.
    pub fn set_memory_budget(&mut self, budget_bytes: u64) {
        self.transport.overload.memory.set_budget(budget_bytes);
        self.transport.spare.set_bytes_max(self.transport.overload.memory.spare_bytes_max());
        self.transport.stats.pressure.budget_bytes.set(self.transport.overload.memory.budget_bytes());
    }

    /// What its connections hold now, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.transport.overload.memory.held_bytes()
    }

    /// The part of it that comes back by itself, in bytes: the connections that hold it are being closed.
    pub fn leaving_bytes(&self) -> u64 {
        self.transport.overload.memory.leaving_bytes()
    }

    /// Closes a connection that something came for, if there is no memory for what it might ask. Whether it
    /// did.
    #[inline]
    pub(super) fn has_no_memory_for(&mut self, slot: Slot) -> bool {
        self.transport.overload.memory.is_full() && self.refuse(slot)
    }

    #[cold]
    fn refuse(&mut self, slot: Slot) -> bool {
        let phase = self.transport.connections[slot as usize].phase;
        if !matches!(phase, Phase::Free | Phase::Closing) {
            self.transport.stats.pressure.closed_for_memory.add(1);
            self.close(slot);
        }
        true
    }

    /// Closes those that hold most if it is too much.
    #[inline]
    pub(super) fn relieve_if_over(&mut self) {
        if self.transport.overload.memory.is_over() {
            self.relieve();
        }
    }

    /// Closes those that hold most until it is calm.
    #[cold]
    fn relieve(&mut self) {
        // The least of the chosen comes first.
        let mut chosen: BinaryHeap<Reverse<Rank>> = BinaryHeap::with_capacity(GIVING_WAY_MAX + 1);
        let staying =
            self.transport.connections.iter().enumerate().filter(|(_, connection)| !connection.leaving);
        let accepted = staying.map(|(slot, connection)| {
            // Of a send the deadline itself counts, whenever it is looked at.
            let deadline_ms = match connection.sending {
                true => Some(connection.deadline_ms),
                false => self.transport.due(slot as Slot).map(|(ms, _)| ms),
            };
            (slot as Slot, connection.counted_bytes, deadline_ms)
        });
        for (slot, bytes, deadline_ms) in accepted.chain(self.transport.outbox.upstreams().holders()) {
            let Some(class) = bytes.checked_ilog2() else { continue };
            let rank = (class, Reverse(deadline_ms.unwrap_or(u64::MAX)), slot);
            if chosen.len() < GIVING_WAY_MAX || chosen.peek().is_some_and(|least| rank > least.0) {
                chosen.push(Reverse(rank));
            }
            if chosen.len() > GIVING_WAY_MAX {
                chosen.pop();
            }
        }
        let (worker, held_bytes, budget_bytes) = (
            self.index,
            self.transport.overload.memory.held_bytes(),
            self.transport.overload.memory.budget_bytes(),
        );
        self.transport.overload.complaints.say(self.transport.time.now_ms, || {
            format!(
                "worker {worker}: peers that do not read their answers hold {} of {} KiB; those that hold \
                 most are closed; raise --memory-budget or lower --send-timeout",
                held_bytes >> 10,
                budget_bytes >> 10
            )
        });
        for Reverse((_, _, slot)) in chosen.into_sorted_vec() {
            if self.transport.overload.memory.excess_bytes() == 0 {
                break;
            }
            self.transport.stats.pressure.closed_for_memory.add(1);
            if self.transport.wire(slot) == Wire::Upstream {
                self.transport.give_up_upstream(slot);
            } else {
                self.close(slot);
            }
        }
    }

    /// Tables of HTTP/2 hold too many fields. Of each few connections the idle one with the largest share
    /// goes, or another one where none is idle: not the one that comes.
    #[cold]
    pub(super) fn make_room_for_fields(&mut self) {
        let (first, count) =
            (self.transport.outbox.upstreams().slots(), self.transport.connections.len() as u32);
        for _ in 0..FIELDS_LOOKS_MAX {
            let mut largest: Option<((bool, usize), Slot)> = None;
            for _ in 0..EVICTION_SLOTS_COUNT.min(count) {
                let next = self.transport.overload.hand + 1;
                self.transport.overload.hand = if next < count { next.max(first) } else { first };
                let connection = &self.transport.connections[self.transport.overload.hand as usize];
                let share = connection.fields_share(&self.reused.http2.memory);
                largest =
                    share.map(|share| (share, self.transport.overload.hand)).into_iter().chain(largest).max();
            }
            if let Some((_, slot)) = largest {
                self.transport.stats.pressure.closed_for_memory.add(1);
                let (connection, mut turn, _) = self.lend(slot);
                connection.dismiss_http2("others need the room", &mut turn);
                self.flush(slot);
            }
            if !self.reused.http2.memory.is_crowded() {
                return;
            }
        }
    }

    /// Gives back what nobody needs at present. The worker does it by itself some time after there was much.
    pub fn give_back_memory(&mut self) {
        self.transport.give_back_memory();
    }
}
