//! The end of a worker: when its connections are looked at, and which of them are closed.
//!
//! It must never end a request under way before the time is over.

use crate::connection::Connection;
use crate::order::Drain;

/// A drain under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draining {
    begun_ms: u64,
    end_ms: u64,
    idle_ms: Option<u32>,
    look_ms: u64,
}

impl Draining {
    pub(crate) fn new(drain: Drain, now_ms: u64) -> Self {
        let end_ms = now_ms + u64::from(drain.cap_ms);
        let mut draining = Self { begun_ms: now_ms, end_ms, idle_ms: drain.idle_ms, look_ms: now_ms };
        draining.look_again(now_ms);
        draining
    }

    /// When connections have to be looked at next.
    pub(crate) fn next_ms(&self) -> u64 {
        self.look_ms
    }

    /// A look is due now: the next one is set.
    pub(crate) fn is_due(&mut self, now_ms: u64) -> bool {
        let due = now_ms >= self.look_ms;
        if due {
            self.look_again(now_ms);
        }
        due
    }

    /// Whether everything is closed now.
    pub(crate) fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.end_ms
    }

    /// Whether a connection is closed now.
    pub(crate) fn ends(&self, connection: &Connection, now_ms: u64) -> bool {
        if self.is_over(now_ms) {
            return true;
        }
        match (self.idle_ms, connection.idle_since_ms()) {
            (Some(idle_ms), Some(since_ms)) => since_ms.max(self.begun_ms) + u64::from(idle_ms) <= now_ms,
            _ => false,
        }
    }

    fn look_again(&mut self, now_ms: u64) {
        let soon_ms = self.idle_ms.map(|idle_ms| now_ms + u64::from(idle_ms).max(1));
        let end_ms = if self.is_over(now_ms) { u64::MAX } else { self.end_ms };
        self.look_ms = soon_ms.unwrap_or(u64::MAX).min(end_ms);
    }
}
