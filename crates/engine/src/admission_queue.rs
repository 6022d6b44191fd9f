//! How many connections the kernel may hold for us: fewer while there is more than can be worked on in time.
//!
//! What waits in the kernel has no age that we could see, so there must be no more of it than a part of the
//! patience is worth; the kernel drops the rest for a microsecond each, and to accept it only to refuse it
//! would cost fifteen. It must never leave a queue short after the pressure is over.

use crate::limits::{QUEUE_CALM_MS, QUEUE_CHANGE_MS, QUEUE_CONNECTIONS_MIN};

/// The queues of one worker's listeners, which all have the same limit.
#[derive(Default)]
pub(crate) struct QueueLimit {
    shortened: Option<Shortened>,
    /// When it is looked at again at the earliest.
    next_ms: u64,
}

#[derive(Clone, Copy)]
struct Shortened {
    limit: u32,
    /// What it was before.
    original: u32,
    /// When the queue was last seen half full.
    pressed_ms: u64,
}

impl QueueLimit {
    /// Whether the queue is worth a look: at most every tenth of a second.
    #[inline]
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        now_ms >= self.next_ms
    }

    /// When a look is needed at the latest.
    #[inline]
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.shortened.map(|shortened| (shortened.pressed_ms + QUEUE_CALM_MS).max(self.next_ms))
    }

    /// Ends the pressure, whatever there is. Returns the limit to be set, if it was shortened.
    pub(crate) fn end(&mut self) -> Option<u32> {
        self.shortened.take().map(|shortened| shortened.original)
    }

    /// `waiting` of at most `limit` connections wait; `worth` are what may. Returns the limit to be set, if
    /// it is to be changed.
    pub(crate) fn look(&mut self, now_ms: u64, waiting: u32, limit: u32, worth: Option<u64>) -> Option<u32> {
        self.next_ms = now_ms + QUEUE_CHANGE_MS;
        let worth = worth.map_or(u32::MAX, |worth| u32::try_from(worth).unwrap_or(u32::MAX));
        let worth = worth.max(QUEUE_CONNECTIONS_MIN);
        let Some(shortened) = &mut self.shortened else {
            if waiting <= worth || worth >= limit {
                return None;
            }
            self.shortened = Some(Shortened { limit: worth, original: limit, pressed_ms: now_ms });
            return Some(worth);
        };
        if waiting > shortened.limit / 2 {
            shortened.pressed_ms = now_ms;
        }
        if worth >= shortened.original || now_ms - shortened.pressed_ms >= QUEUE_CALM_MS {
            let original = shortened.original;
            self.shortened = None;
            return Some(original);
        }
        let is_near = worth.abs_diff(shortened.limit) <= shortened.limit / 4;
        if is_near {
            return None;
        }
        shortened.limit = worth;
        Some(worth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_under_pressure_and_long_again_afterwards() {
        let mut queue = QueueLimit::default();
        assert_eq!(queue.look(0, 4_000, 4_096, None), None, "nothing is known of the work yet");
        assert_eq!(queue.look(100, 50, 4_096, Some(100)), None, "no pressure");
        assert_eq!(queue.deadline_ms(), None);
        assert_eq!(queue.look(200, 101, 4_096, Some(100)), Some(100));
        assert!(!queue.is_due(299) && queue.is_due(300));
        assert_eq!(queue.look(300, 100, 100, Some(110)), None, "not worth a change");
        assert_eq!(queue.look(400, 100, 100, Some(5)), Some(QUEUE_CONNECTIONS_MIN));
        assert_eq!(queue.look(500, 16, 16, Some(100)), Some(100));
        assert_eq!(queue.look(600, 3, 100, Some(100)), None);
        assert_eq!(queue.deadline_ms(), Some(500 + QUEUE_CALM_MS));
        assert_eq!(queue.look(500 + QUEUE_CALM_MS, 0, 100, Some(100)), Some(4_096));
        assert_eq!(queue.deadline_ms(), None);
    }

    #[test]
    fn long_again_at_once_when_nobody_is_in_a_hurry_any_more() {
        let mut queue = QueueLimit::default();
        assert_eq!(queue.look(0, 101, 4_096, Some(100)), Some(100));
        assert_eq!(queue.look(100, 100, 100, None), Some(4_096));
    }
}
