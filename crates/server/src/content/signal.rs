//! Tells threads that there is something to do.
//!
//! It counts, so that no ring is missed by a thread that was about to sleep. Order for a thread: `count`,
//! look for work, and only if there is none `wait_beyond` that count.

use std::sync::{Condvar, Mutex, MutexGuard};

/// A counted signal for the threads that wait for work.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Signal {
    /// How often it was rung.
    pub(crate) fn count(&self) -> u64 {
        *self.lock()
    }

    /// Wakes one thread that waits.
    pub(crate) fn ring(&self) {
        *self.lock() += 1;
        self.rung.notify_one();
    }

    /// Wakes all that wait.
    pub(crate) fn ring_for_all(&self) {
        *self.lock() += 1;
        self.rung.notify_all();
    }

    /// Waits until it was rung more often than `seen` times.
    pub(crate) fn wait_beyond(&self, seen: u64) {
        let rings = self.lock();
        drop(self.rung.wait_while(rings, |rings| *rings == seen));
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.rings.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_before_the_wait_is_not_missed() {
        let signal = Signal::default();
        let seen = signal.count();
        signal.ring();
        signal.wait_beyond(seen);
        let seen = signal.count();
        std::thread::scope(|scope| {
            scope.spawn(|| signal.wait_beyond(seen));
            scope.spawn(|| signal.wait_beyond(seen));
            signal.ring_for_all();
        });
        assert_eq!(signal.count(), seen + 1);
    }
}
