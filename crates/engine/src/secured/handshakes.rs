//! The bound of handshakes at work: when there are too many, the oldest goes.
//!
//! It owns their order. It must never know what they agree upon.

use std::collections::VecDeque;

use staunch_netio::Slot;

/// The handshakes at work of one worker, the oldest first. One that is over stays until its turn comes.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    begun: VecDeque<(Slot, u32)>,
    last_number: u32,
    /// How many are at work.
    pub(crate) count: u32,
}

impl Handshakes {
    /// Begins a handshake and gives its number.
    pub(crate) fn begin(&mut self, slot: Slot) -> u32 {
        self.last_number = self.last_number.wrapping_add(1);
        self.begun.push_back((slot, self.last_number));
        self.count += 1;
        self.last_number
    }

    /// The oldest, which is at work if `is_at_work` says so of its slot and number.
    pub(crate) fn take_oldest(&mut self, is_at_work: impl Fn(Slot, u32) -> bool) -> Option<Slot> {
        while let Some((slot, number)) = self.begun.pop_front() {
            if is_at_work(slot, number) {
                return Some(slot);
            }
        }
        None
    }

    /// Ends a handshake. Those before it that are over as well are forgotten.
    pub(crate) fn end(&mut self, is_at_work: impl Fn(Slot, u32) -> bool) {
        self.count -= 1;
        if self.count == 0 {
            self.begun.clear();
        }
        while self.begun.front().is_some_and(|(slot, number)| !is_at_work(*slot, *number)) {
            self.begun.pop_front();
        }
        // A slow one at the front must not make those behind it pile up.
        if self.begun.len() > 2 * self.count as usize + 64 {
            self.begun.retain(|(slot, number)| is_at_work(*slot, *number));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_oldest_at_work_goes_first_and_others_are_forgotten() {
        let mut handshakes = Handshakes::default();
        let mut at_work: HashMap<Slot, u32> = (0..3).map(|slot| (slot, handshakes.begin(slot))).collect();
        at_work.remove(&0);
        handshakes.end(|slot, number| at_work.get(&slot) == Some(&number));
        // The slot is another's now.
        at_work.insert(0, handshakes.begin(0));
        let is_at_work = |slot: Slot, number| at_work.get(&slot) == Some(&number);
        let order: Vec<Slot> = std::iter::from_fn(|| handshakes.take_oldest(is_at_work)).collect();
        assert_eq!((order, handshakes.count), (vec![1, 2, 0], 3));
    }

    #[test]
    fn a_slow_one_keeps_no_others_in_the_list() {
        let mut handshakes = Handshakes::default();
        let slow = handshakes.begin(0);
        for _ in 0..10_000 {
            handshakes.begin(1);
            handshakes.end(|slot, number| slot == 0 && number == slow);
        }
        assert!(handshakes.begun.len() < 100, "{}", handshakes.begun.len());
    }
}
