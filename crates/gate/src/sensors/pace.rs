//! How often sensors are read.

const MILLISECOND_NS: u64 = 1_000_000;
/// Between two readings of figures that change slowly, and are dear: 10 a second.
pub(super) const SLOW_NS: u64 = 100 * MILLISECOND_NS;
/// Between two looks at the accept queues and the threads of reception while all come in.
pub(super) const CALM_NS: u64 = 50 * MILLISECOND_NS;

/// Between two looks at anything while nobody comes.
pub(super) const IDLE_NS: u64 = 500 * MILLISECOND_NS;

/// How closely accept queues and the threads of reception are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closeness {
    /// Everything twice a second: nobody comes, so nothing can be shed.
    Idle,
    /// Both 20 times a second.
    Calm,
    /// Queues each time, threads 50 times a second: where there is no tracker.
    Close,
}

/// A reading that is due from time to time.
#[derive(Debug, Default)]
pub(super) struct Due {
    before_ns: Option<u64>,
}

impl Due {
    /// Whether it is, the latest being so long ago; if so it is done now.
    pub(super) fn is_due(&mut self, now_ns: u64, every_ns: u64) -> bool {
        let is_due = self.before_ns.is_none_or(|before_ns| now_ns >= before_ns + every_ns);
        if is_due {
            self.before_ns = Some(now_ns);
        }
        is_due
    }
}
