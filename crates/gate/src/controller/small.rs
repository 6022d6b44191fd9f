//! Listeners whose accept queue is so short that it bounds the server by itself.
//!
//! In a queue of sixteen nobody waits for long, so there is nothing to be gained before it; and a gate that
//! lets in a piece of what is served each few milliseconds leaves it empty most of the time. So it stands
//! aside, and says what bounds the server.

use super::load::Hint;
use crate::observation::{Observation, Queue};

/// Places of a listener up to which this is so. Python's `socketserver` asks for 5, and many old servers do.
const PLACES_MAX: u64 = 16;
/// Where more than twice as many wait as the queues hold, the server accepts at once and reads late: the line
/// stands behind the queue, and a short queue says nothing of it.
const BEHIND_TIMES: f64 = 2.0;
/// A queue is full with one more than its limit; this share counts as full.
const FULL_SHARE: f64 = 0.95;
/// After so long it is said again.
const AGAIN_NS: u64 = 60_000_000_000;

/// What was said of a short queue.
#[derive(Debug, Default)]
pub(crate) struct Small {
    /// The accept queue bounds the server.
    pub there: bool,
    until_said_ns: u64,
}

impl Small {
    /// Takes a tick in: so many wait.
    pub(crate) fn see(&mut self, o: &Observation, waiting: f64) -> Option<Hint> {
        self.until_said_ns = self.until_said_ns.saturating_sub(o.interval_ns);
        let queue = o.queue.filter(|queue| is_small(queue, waiting));
        self.there = queue.is_some();
        let full = queue.filter(|queue| queue.fullest_share >= FULL_SHARE && self.until_said_ns == 0)?;
        self.until_said_ns = AGAIN_NS;
        Some(Hint::SmallQueue { places: places(&full) })
    }
}

fn is_small(queue: &Queue, waiting: f64) -> bool {
    let held = queue.limit.saturating_add(u64::from(queue.listeners));
    (1..=PLACES_MAX).contains(&places(queue)) && waiting <= BEHIND_TIMES * held as f64
}

/// Of one listener.
fn places(queue: &Queue) -> u64 {
    queue.limit / u64::from(queue.listeners.max(1))
}
