//! Connections that were accepted, until the first that is heard of them.
//!
//! A connection must never be listened to before its turn has come.

use staunch_netio::{Io, Slot};

use super::Transport;
use crate::connection::{Connection, Phase};
use crate::limits::TURNED_AWAY_MS;

impl<I: Io> Transport<I> {
    /// A connection was accepted in this slot.
    pub(crate) fn open(&mut self, slot: Slot) {
        let index = slot as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, Connection::free);
        }
        self.connections[index].open(self.time.now_ms, self.overload.capacity.is_full());
        self.stats.connections.accepted.add(1);
    }

    /// A connection came to a secured listener. Where others need its slot it has little time. `false`: there
    /// is nothing to secure it with, and it ends.
    pub(crate) fn await_hello(&mut self, slot: Slot) -> bool {
        let most_ms = if self.overload.capacity.is_full() { TURNED_AWAY_MS } else { u32::MAX };
        let is_awaited = self.secured.await_hello(slot, self.time.now_ms, most_ms);
        if !is_awaited {
            self.connections[slot as usize].phase = Phase::Ending { linger: false };
        }
        is_awaited
    }

    /// Begins to read from those who came before and whose turn it is now. Their deadlines begin only here.
    /// Returns how long the first of them has waited, in nanoseconds.
    #[inline]
    pub(crate) fn attend_newcomers(&mut self) -> u64 {
        self.overload.newcomers.begin_turn();
        let now_ns = self.time.now_ns;
        let mut longest_ns = 0;
        while let Some(newcomer) = self.overload.newcomers.next(self.overload.pace.work_ns()) {
            let connection = &mut self.connections[newcomer.slot as usize];
            let closed = matches!(connection.phase, Phase::Free | Phase::Closing);
            if closed || connection.generation != newcomer.generation {
                continue;
            }
            let waited_ns = now_ns.saturating_sub(newcomer.accepted_ns);
            connection.leave_line(now_ns / 1_000_000, self.overload.pace.judge(waited_ns));
            longest_ns = waited_ns.max(longest_ns);
            self.attend(newcomer.slot);
        }
        longest_ns
    }

    /// Reads from one that was accepted just now, or puts it in line. Whether so many came in this turn that
    /// accepting is to rest.
    #[inline]
    pub(crate) fn welcome(&mut self, slot: Slot) -> bool {
        let generation = self.connections[slot as usize].generation;
        if self.overload.newcomers.welcome(slot, generation, self.time.now_ns, self.overload.pace.work_ns()) {
            self.attend(slot);
        } else {
            self.connections[slot as usize].in_line = true;
        }
        self.overload.pace.count_accepted();
        self.overload.pace.accepted_too_many(self.overload.newcomers.count())
    }

    /// Something is to be heard of it soon.
    #[inline]
    pub(crate) fn attend(&mut self, slot: Slot) {
        self.connections[slot as usize].unheard_since = self.overload.pace.count_listened();
        self.io.receive(slot);
    }

    /// The first bytes of a connection came, or it ended without any: it does not wait any more.
    #[inline]
    pub(crate) fn hear(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot as usize];
        if connection.unheard_since != 0 {
            self.overload.pace.count_heard(std::mem::take(&mut connection.unheard_since));
        }
    }
}
