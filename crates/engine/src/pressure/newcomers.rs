//! Connections that were accepted and not yet read from: a few are read in each turn, in the order in which
//! they came.
//!
//! io_uring empties the kernel's queue with one call, and whatever is listened to has spoken already. Were
//! all of them read at once, the last would wait for all the others with its request in our hands: neither
//! we nor anybody who watches (`staunch gate` goes by the age at which connections are first read) would see
//! a queue. It must never keep anybody waiting while the worker has nothing else to do.

use std::collections::VecDeque;

use staunch_netio::Slot;

use crate::limits::{NEWCOMERS_MIN, NEWCOMERS_NS};

/// The newcomers of one worker.
#[derive(Default)]
pub(crate) struct Newcomers {
    waiting: VecDeque<Newcomer>,
    /// How many are read from in this turn.
    taken: u64,
}

/// A connection that was accepted and not yet read from.
#[derive(Clone, Copy)]
pub(crate) struct Newcomer {
    pub(crate) slot: Slot,
    /// Which use of the slot it is: meanwhile it may be another's.
    pub(crate) generation: u32,
    pub(crate) accepted_ns: u64,
}

impl Newcomers {
    /// Tells that a turn of the worker begins.
    #[inline]
    pub(crate) fn begin_turn(&mut self) {
        self.taken = 0;
    }

    /// Whether one that was accepted just now may be read from at once; else it is put in line. `work_ns` is
    /// what a request takes, 0 if that is not known.
    #[inline]
    pub(crate) fn welcome(&mut self, slot: Slot, generation: u32, now_ns: u64, work_ns: u64) -> bool {
        if self.waiting.is_empty() && self.has_room(work_ns) {
            self.taken += 1;
            return true;
        }
        self.waiting.push_back(Newcomer { slot, generation, accepted_ns: now_ns });
        false
    }

    /// The next one to be read from in this turn.
    #[inline]
    pub(crate) fn next(&mut self, work_ns: u64) -> Option<Newcomer> {
        if self.waiting.is_empty() || !self.has_room(work_ns) {
            return None;
        }
        self.taken += 1;
        self.waiting.pop_front()
    }

    /// How many wait.
    pub(crate) fn count(&self) -> u32 {
        self.waiting.len() as u32
    }

    fn has_room(&self, work_ns: u64) -> bool {
        self.taken < NEWCOMERS_MIN || self.taken.saturating_mul(work_ns) < NEWCOMERS_NS
    }

    /// When the one came who has waited longest, if anybody waits.
    #[inline]
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.waiting.front().map(|newcomer| newcomer.accepted_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_two_milliseconds_are_read_in_a_turn_in_order() {
        let mut newcomers = Newcomers::default();
        newcomers.begin_turn();
        let welcome: Vec<bool> = (0..50).map(|slot| newcomers.welcome(slot, 1, 7, 100_000)).collect();
        assert!(welcome.iter().take(20).all(|now| *now) && !welcome[20..].contains(&true));
        assert!(newcomers.next(100_000).is_none());
        assert_eq!((newcomers.count(), newcomers.oldest_ns()), (30, Some(7)));
        newcomers.begin_turn();
        let next = std::iter::from_fn(|| newcomers.next(100_000));
        assert_eq!(
            next.map(|newcomer| newcomer.slot).collect::<Vec<Slot>>(),
            (20..40).collect::<Vec<Slot>>()
        );
        newcomers.begin_turn();
        assert!(!newcomers.welcome(50, 1, 8, 100_000), "nobody overtakes");
    }

    #[test]
    fn a_few_are_always_read_and_all_if_the_work_is_not_known() {
        for (work_ns, count) in [(1_000_000_000, NEWCOMERS_MIN), (0, 50_000)] {
            let mut newcomers = Newcomers::default();
            let welcome = (0..50_000).filter(|slot| newcomers.welcome(*slot, 1, 0, work_ns)).count();
            assert_eq!(welcome as u64, count);
        }
    }
}
