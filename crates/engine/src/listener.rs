//! Listeners that rest: which stopped accepting, why, and when they try again.
//!
//! It must never lose a listener: one that stopped always comes back, by time or by room.

use crate::limits::ACCEPT_PAUSE_MS;

/// ENFILE also stands for a full table of connections.
const ENFILE: i32 = 23;

/// The listeners of one worker.
pub(crate) struct Listeners {
    resting: Vec<Option<Rest>>,
}

#[derive(Clone, Copy)]
struct Rest {
    until_ms: u64,
    /// Ends as well when a connection of ours ends.
    for_room: bool,
}

impl Listeners {
    pub(crate) fn new(count: u16) -> Self {
        Self { resting: vec![None; usize::from(count)] }
    }

    /// A listener of this number came, perhaps in the place of one that is gone.
    pub(crate) fn add(&mut self, listener: u16) {
        let index = usize::from(listener);
        self.resting.resize(self.resting.len().max(index + 1), None);
        self.resting[index] = None;
    }

    /// A listener stopped.
    pub(crate) fn stop(&mut self, listener: u16, errno: i32, now_ms: u64) {
        let rest = Rest { until_ms: now_ms + ACCEPT_PAUSE_MS, for_room: errno == ENFILE };
        self.resting[usize::from(listener)] = Some(rest);
    }

    /// Whether it rests.
    pub(crate) fn rests(&self, listener: u16) -> bool {
        self.resting[usize::from(listener)].is_some()
    }

    /// When the first of them tries again.
    #[inline]
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.resting.iter().flatten().map(|rest| rest.until_ms).min()
    }

    /// One whose rest is over.
    #[inline]
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<u16> {
        self.take(|rest| rest.until_ms <= now_ms)
    }

    /// One that waited for a free slot.
    pub(crate) fn take_waiting_for_room(&mut self) -> Option<u16> {
        self.take(|rest| rest.for_room)
    }

    fn take(&mut self, wanted: impl Fn(&Rest) -> bool) -> Option<u16> {
        let index = self.resting.iter().position(|rest| rest.as_ref().is_some_and(&wanted))?;
        self.resting[index] = None;
        Some(index as u16)
    }
}
