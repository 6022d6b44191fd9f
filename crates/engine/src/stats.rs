//! What a worker counts. Each worker writes its own block; anyone may read it at any time.
//!
//! Counters only grow. They must never be used to decide anything on a request's path.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use staunch_protocol::{Deadline, Status};

/// A counter with one writer: adding is a load and a store, no bus lock.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed) + amount, Relaxed);
    }
}

/// Counters of one worker, alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Stats {
    /// Connections accepted.
    pub accepted: Counter,
    /// Connections ended. `accepted - closed` are open.
    pub closed: Counter,
    /// Requests answered by the application.
    pub requests: Counter,
    /// Connections ended by the session for a fault of the peer's bytes.
    pub rejected: Counter,
    /// Bytes handed to the kernel for sending.
    pub sent_bytes: Counter,
    /// Sends that failed before all was taken.
    pub sends_failed: Counter,
    /// Times accepting stopped for want of descriptors, memory or slots.
    pub accept_stops: Counter,
    /// Turns of the loop: an idle worker makes none.
    pub turns: Counter,
    responses: [Counter; 5],
    timeouts: [Counter; 5],
}

impl Stats {
    /// The application's responses with a status of this class (2 for 200 to 299). Refusals by the session
    /// itself are counted in `rejected`.
    pub fn responses(&self, class: u16) -> u64 {
        self.responses.get(usize::from(class).wrapping_sub(1)).map_or(0, Counter::get)
    }

    /// Connections that ran into this deadline.
    pub fn timeouts(&self, deadline: Deadline) -> u64 {
        self.timeouts[deadline as usize].get()
    }

    #[inline]
    pub(crate) fn count_response(&self, status: Status) {
        if let Some(counter) = self.responses.get(usize::from(status.code() / 100).wrapping_sub(1)) {
            counter.add(1);
        }
    }

    pub(crate) fn count_timeout(&self, deadline: Deadline) {
        self.timeouts[deadline as usize].add(1);
    }
}
