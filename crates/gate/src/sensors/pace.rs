//! How often sensors are read.

const MILLISECOND_NS: u64 = 1_000_000;
/// Between two readings of figures that change slowly, and are dear: 10 a second.
pub(super) const SLOW_NS: u64 = 100 * MILLISECOND_NS;
/// Between two looks at the accept queues and the threads of reception while all come in.
pub(super) const CALM_NS: u64 = 50 * MILLISECOND_NS;

/// How closely accept queues and the threads of reception are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closeness {
    /// Both 20 times a second.
    Calm,
    /// Queues each time, threads 50 times a second: where there is no tracker.
    Close,
}

/// A reading that is due from time to time.
#[derive(Debug, Default)]
pub(super) struct Due {
    at_ns: u64,
}

impl Due {
    /// Whether it is; the next time is counted from now.
    pub(super) fn is_due(&mut self, now_ns: u64, every_ns: u64) -> bool {
        let is_due = now_ns >= self.at_ns;
        if is_due {
            self.at_ns = now_ns + every_ns;
        }
        is_due
    }
}
