//! Which connections are awake, and when each is looked at for sleep: a hand that goes around, so that what
//! is used costs nothing.
//!
//! It owns the order. It must never know a key.

use std::collections::VecDeque;

use staunch_netio::Slot;

use crate::limits::AWAKE_MS;

/// The connections of one worker that are awake, in the order in which they are looked at. One that is gone
/// stays until its turn comes.
#[derive(Debug, Default)]
pub(crate) struct Rests {
    queue: VecDeque<(Slot, u64)>,
}

impl Rests {
    /// A connection is awake: it is looked at when it may have rested long enough.
    pub(crate) fn push(&mut self, slot: Slot, now_ms: u64) {
        self.queue.push_back((slot, now_ms + AWAKE_MS));
    }

    /// How many may be awake.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// When the next one is to be looked at.
    #[inline]
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.queue.front().map(|(_, at_ms)| *at_ms)
    }

    /// The next one to be looked at, if its time has come or others want its room.
    #[inline]
    pub(crate) fn pop(&mut self, now_ms: u64, awake_max: usize) -> Option<Slot> {
        let (slot, at_ms) = *self.queue.front()?;
        if at_ms > now_ms && self.len() <= awake_max {
            return None;
        }
        self.queue.pop_front();
        Some(slot)
    }

    /// Gives memory back.
    pub(crate) fn shrink(&mut self) {
        self.queue.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_looked_at_in_its_time_or_when_there_are_too_many() {
        let mut rests = Rests::default();
        rests.push(1, 0);
        rests.push(2, 10);
        assert_eq!(rests.next_ms(), Some(AWAKE_MS));
        assert_eq!(rests.pop(AWAKE_MS - 1, 2), None);
        assert_eq!(rests.pop(AWAKE_MS - 1, 1), Some(1), "too many");
        assert_eq!(rests.pop(AWAKE_MS, 1), None);
        assert_eq!(rests.pop(AWAKE_MS + 10, 1), Some(2));
        assert_eq!((rests.pop(u64::MAX, 0), rests.next_ms()), (None, None));
    }
}
