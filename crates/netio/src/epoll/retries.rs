//! Sends that wait for a while and not for the kernel: the peer is to acknowledge, or the warming thread has
//! too much to do.
//!
//! It owns their times and must never touch a connection. Order of calls: `push`; before each wait
//! `before_next`; after it `take_expired`.

use std::time::Duration;

use crate::{Slot, clock};

/// Sends that wait, each with the time until which it does.
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// Time in milliseconds, slot and generation; few, and in no order.
    waiting: Vec<(u64, Slot, u32)>,
    /// The earliest of the times, or earlier.
    earliest_ms: u64,
}

impl Retries {
    /// Waits from now on for so many milliseconds.
    pub(super) fn push(&mut self, delay_ms: u64, slot: Slot, generation: u32) {
        let at_ms = clock::now_ms() + delay_ms;
        self.earliest_ms = if self.waiting.is_empty() { at_ms } else { self.earliest_ms.min(at_ms) };
        self.waiting.push((at_ms, slot, generation));
    }

    /// The timeout, or the time until the next retry if that is less.
    pub(super) fn before_next(&self, timeout: Option<Duration>) -> Option<Duration> {
        if self.waiting.is_empty() {
            return timeout;
        }
        let retry = Duration::from_millis(self.earliest_ms.saturating_sub(clock::now_ms()));
        Some(timeout.map_or(retry, |timeout| timeout.min(retry)))
    }

    /// Takes those whose time has come.
    pub(super) fn take_expired(&mut self) -> Vec<(Slot, u32)> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let now_ms = clock::now_ms();
        if now_ms < self.earliest_ms {
            return Vec::new();
        }
        let expired = self.waiting.extract_if(.., |&mut (at_ms, ..)| at_ms <= now_ms);
        let expired = expired.map(|(_, slot, generation)| (slot, generation)).collect();
        self.earliest_ms = self.waiting.iter().map(|&(at_ms, ..)| at_ms).min().unwrap_or(0);
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_bounds_the_wait_and_only_what_is_due_expires() {
        let mut retries = Retries::default();
        assert_eq!(retries.before_next(None), None);
        retries.push(3_600_000, 1, 10);
        assert!(retries.before_next(None).unwrap() > Duration::from_secs(1_000));
        retries.push(0, 2, 20);
        assert_eq!(retries.before_next(None), Some(Duration::ZERO));
        assert_eq!(retries.take_expired(), [(2, 20)]);
        assert_eq!(retries.take_expired(), []);
        assert_eq!(retries.before_next(Some(Duration::ZERO)), Some(Duration::ZERO));
        assert!(retries.before_next(None).unwrap() > Duration::from_secs(1_000));
    }
}
