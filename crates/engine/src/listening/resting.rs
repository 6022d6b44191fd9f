//! Resting that rest: which stopped accepting, why, and when they go on.
//!
//! It must never lose a listener: each reason to rest ends by time, by room, or with the turn, and when the
//! last one has ended the listener is given out to be accepted on again.

use crate::limits::{ACCEPT_PAUSE_MS, FULL_PAUSE_MS};

/// The listeners of one worker.
pub(crate) struct Resting {
    rests: Vec<Rest>,
}

/// Why a listener rests; accepts if there is no reason.
#[derive(Clone, Copy, Default)]
struct Rest {
    /// The kernel had no descriptor or memory, or the table was full: until this time.
    until_ms: Option<u64>,
    /// That rest ends as well when there is room again.
    for_room: bool,
    /// More was accepted than can be worked on in time: until the end of the turn.
    this_turn: bool,
}

impl Resting {
    pub(crate) fn new(count: u16) -> Self {
        Self { rests: vec![Rest::default(); usize::from(count)] }
    }

    pub(crate) fn count(&self) -> u16 {
        self.rests.len() as u16
    }

    /// A listener of this number came, perhaps in the place of one that is gone.
    pub(crate) fn add(&mut self, listener: u16) {
        let index = usize::from(listener);
        self.rests.resize(self.rests.len().max(index + 1), Rest::default());
        self.rests[index] = Rest::default();
    }

    /// A listener stopped because every slot is taken, or else because the kernel is short of something.
    pub(crate) fn stop(&mut self, listener: u16, for_room: bool, now_ms: u64) {
        let pause_ms = if for_room { FULL_PAUSE_MS } else { ACCEPT_PAUSE_MS };
        let rest = &mut self.rests[usize::from(listener)];
        (rest.until_ms, rest.for_room) = (Some(now_ms + pause_ms), for_room);
    }

    /// A listener is to rest until the end of the turn. Returns whether it accepted until now.
    pub(crate) fn pause(&mut self, listener: u16) -> bool {
        let rest = &mut self.rests[usize::from(listener)];
        let accepted = rest.until_ms.is_none() && !rest.this_turn;
        rest.this_turn |= accepted;
        accepted
    }

    /// Whether it rests, and will be given out by itself.
    pub(crate) fn rests(&self, listener: u16) -> bool {
        let rest = &self.rests[usize::from(listener)];
        rest.until_ms.is_some() || rest.this_turn
    }

    /// When the first of them tries again.
    #[inline]
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.rests.iter().filter_map(|rest| rest.until_ms).min()
    }

    /// Takes a listener whose rest is over by time.
    #[inline]
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<u16> {
        self.take(|rest| rest.until_ms.is_some_and(|until_ms| until_ms <= now_ms))
    }

    /// Takes a listener that waited for room.
    pub(crate) fn take_waiting_for_room(&mut self) -> Option<u16> {
        self.take(|rest| rest.until_ms.is_some() && rest.for_room)
    }

    /// Takes a listener that was to rest until now, the end of the turn.
    pub(crate) fn take_paused(&mut self) -> Option<u16> {
        while let Some(index) = self.rests.iter().position(|rest| rest.this_turn) {
            self.rests[index].this_turn = false;
            if self.rests[index].until_ms.is_none() {
                return Some(index as u16);
            }
        }
        None
    }

    /// Ends the rest of one; it is given out unless it rests until the end of the turn as well.
    fn take(&mut self, is_over: impl Fn(&Rest) -> bool) -> Option<u16> {
        while let Some(index) = self.rests.iter().position(&is_over) {
            let rest = &mut self.rests[index];
            (rest.until_ms, rest.for_room) = (None, false);
            if !rest.this_turn {
                return Some(index as u16);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_ends_and_the_last_one_gives_the_listener_back() {
        let mut resting = Resting::new(2);
        resting.stop(1, false, 0);
        assert_eq!(resting.take_waiting_for_room(), None);
        assert_eq!(resting.next_ms(), Some(ACCEPT_PAUSE_MS));
        assert_eq!(resting.take_due(ACCEPT_PAUSE_MS - 1), None);
        assert_eq!(resting.take_due(ACCEPT_PAUSE_MS), Some(1));

        resting.stop(0, true, 0);
        assert_eq!(resting.take_waiting_for_room(), Some(0));
        resting.stop(0, true, 0);
        assert_eq!(resting.take_due(FULL_PAUSE_MS), Some(0));
        assert_eq!(resting.next_ms(), None);
    }

    #[test]
    fn two_reasons_at_once() {
        let mut resting = Resting::new(1);
        assert!(!resting.rests(0));
        assert!(resting.pause(0) && !resting.pause(0));
        assert!(resting.rests(0), "nobody else may give it out");
        resting.stop(0, true, 0);
        assert_eq!(resting.take_waiting_for_room(), None, "it still rests until the end of the turn");
        assert_eq!(resting.take_paused(), Some(0));

        assert!(resting.pause(0));
        resting.stop(0, false, 0);
        assert!(!resting.pause(0));
        assert_eq!(resting.take_paused(), None, "it still rests until its time");
        assert_eq!(resting.take_due(ACCEPT_PAUSE_MS), Some(0));
        assert_eq!(resting.take_paused(), None);
    }
}
