//! The clocks. Read here for the whole engine, once a turn; everything else is told the time.

use std::io;
use std::num::NonZeroU64;
use std::time::{Duration, SystemTime};

use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since some point in the past, never going back. For deadlines.
pub fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both fields of CLOCK_MONOTONIC are never negative.
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// Nanoseconds on the same clock. For measuring and for schedules.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Processor time this thread has used, in nanoseconds.
pub fn thread_busy_ns() -> u64 {
    let busy = clock_gettime(ClockId::ThreadCPUTime);
    busy.tv_sec as u64 * 1_000_000_000 + busy.tv_nsec as u64
}

/// Processor time this process has used, in nanoseconds.
pub fn process_busy_ns() -> u64 {
    let busy = clock_gettime(ClockId::ProcessCPUTime);
    busy.tv_sec as u64 * 1_000_000_000 + busy.tv_nsec as u64
}

/// Lets the waits of this thread end when they should: by default the kernel may end them 50 us late, to wake
/// for several things at once.
///
/// # Errors
/// Those of prctl(2), PR_SET_TIMERSLACK.
pub fn fine_timers() -> io::Result<()> {
    Ok(set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// Lets the calling thread wait. Only for threads that serve nobody: a measurement, a look that is repeated.
pub fn pause(length: Duration) {
    std::thread::sleep(length);
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
        let first_ns = now_ns();
        assert!(now_ns() >= first_ns && first_ns / 1_000_000 >= first);
        assert!(unix_time() > SystemTime::UNIX_EPOCH);
    }

    #[test]
    fn a_thread_that_works_is_busy() {
        let before = thread_busy_ns();
        let before_all = process_busy_ns();
        while thread_busy_ns() == before {}
        assert!(process_busy_ns() >= before_all);
    }

    #[test]
    fn fine_timers_have_a_slack_of_one_nanosecond() {
        fine_timers().unwrap();
        assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
    }
}
