//! What the threads of a run share: how far it is, and how much is published.
//!
//! It must never be waited for: numbers that are written by one thread and read by the others.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::outcome::LivePhase;

/// The phase after all others.
const OVER: u8 = 3;

/// Numbers that all threads see.
#[derive(Debug)]
pub(crate) struct LiveShared {
    phase: AtomicU8,
    /// By topic: the number of the last update that was published, or may have been.
    published: Vec<AtomicU64>,
    /// What makes the time of day of the monotonic clock, in nanoseconds. Read once, so that a clock that is
    /// set during the run changes no delay.
    unix_offset_ns: u64,
}

impl LiveShared {
    pub(crate) fn new(topics: usize, unix_offset_ns: u64) -> Self {
        let published = (0..topics).map(|_| AtomicU64::new(0)).collect();
        Self { phase: AtomicU8::new(0), published, unix_offset_ns }
    }

    /// The time of day, in nanoseconds since 1970.
    pub(crate) fn unix_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.unix_offset_ns)
    }

    /// The phase; `None` when all is over.
    pub(crate) fn phase(&self) -> Option<LivePhase> {
        match self.phase.load(Ordering::Acquire) {
            0 => Some(LivePhase::Gathering),
            1 => Some(LivePhase::Publishing),
            2 => Some(LivePhase::Settling),
            _ => None,
        }
    }

    /// The run goes on to this phase, or is over.
    pub(crate) fn set_phase(&self, phase: Option<LivePhase>) {
        let number = match phase {
            Some(LivePhase::Gathering) => 0,
            Some(LivePhase::Publishing) => 1,
            Some(LivePhase::Settling) => 2,
            None => OVER,
        };
        self.phase.store(number, Ordering::Release);
    }

    /// The last number of a topic that was published.
    pub(crate) fn published(&self, topic: u32) -> u64 {
        self.published[topic as usize].load(Ordering::Acquire)
    }

    /// Published so far, of all topics.
    pub(crate) fn published_of_all(&self) -> u64 {
        self.published.iter().map(|number| number.load(Ordering::Relaxed)).sum()
    }

    /// A further update of a topic was published.
    pub(crate) fn note_published(&self, topic: u32, number: u64) {
        self.published[topic as usize].store(number, Ordering::Release);
    }
}
