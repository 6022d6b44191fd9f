//! The clocks. Read here for the whole engine, once a turn; everything else is told the time.

use std::time::SystemTime;

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since some point in the past, never going back. For deadlines.
pub fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both fields of CLOCK_MONOTONIC are never negative.
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// The time of day, which may jump. For the Date field and for comparing with times of files.
pub fn unix_time() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_back() {
        let first = now_ms();
        assert!(now_ms() >= first);
        assert!(unix_time() > SystemTime::UNIX_EPOCH);
    }
}
