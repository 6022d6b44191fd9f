//! What it costs here to create a process or a thread, and to see its end.
//!
//! It owns the ways of creating and the histograms of their times. It must never draw.

use std::io;

use hdrhistogram::Histogram;
use rustix::thread::disable_transparent_huge_pages;
use serde::Serialize;
use staunch_netio::clock;

use crate::syscall::{clone_and_wait, fork_and_wait, thread_and_join};

/// Memory that a large process has touched: a copy of it needs page tables for all of it.
const RESIDENT_BYTES: usize = 64 * 1024 * 1024;
/// Units of 16 bytes of a stack for a process that does nothing: 64 KiB.
const STACK_UNITS: usize = 4096;
/// The longest time told apart, in nanoseconds: a minute, for nothing takes so long.
const LONGEST_NS: u64 = 60_000_000_000;
/// Significant digits: buckets are at most one part in a thousand wide.
const DIGITS: u8 = 3;
/// Each bin of the drawn histogram ends at so many times the end of the one before: four bins to a doubling.
const BIN_GROWTH: f64 = 1.189_207_115;
/// Where the first bin ends, in nanoseconds: nothing is created faster.
const FIRST_BIN_NS: u64 = 1000;

/// Times of one way of creating.
#[derive(Debug, Clone, Serialize)]
pub struct Creation {
    /// What was created, and how.
    pub what: &'static str,
    /// How often.
    pub count: u64,
    /// The shortest time, in nanoseconds, as all that follow.
    pub shortest_ns: u64,
    /// Half took no longer.
    pub median_ns: u64,
    /// Nine of ten took no longer.
    pub p90_ns: u64,
    /// Ninety-nine of a hundred took no longer.
    pub p99_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// How many fell where, from the shortest to the longest.
    pub bins: Vec<Bin>,
}

/// A part of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Where it ends, in nanoseconds; it begins where the one before it ends.
    pub to_ns: u64,
    /// How many fell into it.
    pub count: u64,
}

/// Creates, sees the end and measures, so many times (at least once) in each way.
///
/// # Errors
/// The system call that failed, with the way.
pub fn measure(count: u32) -> Result<Vec<Creation>, String> {
    let mut stack = vec![0_u128; STACK_UNITS];
    let mut all = vec![
        times("fork, _exit, waitpid", count, fork_and_wait)?,
        times("clone sharing the memory, exit, waitpid", count, || clone_and_wait(&mut stack))?,
        times("pthread_create, pthread_join", count, thread_and_join)?,
    ];
    // With pages of 4 KiB, as most memory of most programs has them: huge ones need few tables.
    let are_small = disable_transparent_huge_pages(true).is_ok();
    let resident = vec![1_u8; RESIDENT_BYTES];
    all.push(times("fork with 64 MiB of touched memory", count, fork_and_wait)?);
    drop(std::hint::black_box(resident));
    if are_small {
        let _ = disable_transparent_huge_pages(false);
    }
    Ok(all)
}

fn times(
    what: &'static str,
    count: u32,
    mut create: impl FnMut() -> io::Result<()>,
) -> Result<Creation, String> {
    let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
    let mut histogram = histogram.map_err(|error| format!("{what}: {error}"))?;
    for _ in 0..count {
        let start_ns = clock::now_ns();
        create().map_err(|error| format!("{what}: {error}"))?;
        histogram.saturating_record((clock::now_ns() - start_ns).max(1));
    }
    Ok(Creation {
        what,
        count: histogram.len(),
        shortest_ns: histogram.min(),
        median_ns: histogram.value_at_quantile(0.5),
        p90_ns: histogram.value_at_quantile(0.9),
        p99_ns: histogram.value_at_quantile(0.99),
        longest_ns: histogram.max(),
        bins: bins(&histogram),
    })
}

/// Bins that grow as the times do, without the empty ones at either end.
fn bins(histogram: &Histogram<u64>) -> Vec<Bin> {
    let all = histogram.iter_log(FIRST_BIN_NS, BIN_GROWTH);
    let mut bins: Vec<Bin> = all
        .map(|bin| Bin { to_ns: bin.value_iterated_to(), count: bin.count_since_last_iteration() })
        .skip_while(|bin| bin.count == 0)
        .collect();
    while bins.pop_if(|bin| bin.count == 0).is_some() {}
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_measured() {
        let all = measure(20).expect("processes and threads");
        assert_eq!(all.len(), 4);
        for creation in all {
            assert_eq!(creation.count, 20, "{}", creation.what);
            assert_eq!(creation.bins.iter().map(|bin| bin.count).sum::<u64>(), 20, "{}", creation.what);
            assert!(creation.shortest_ns > 0 && creation.shortest_ns <= creation.median_ns);
            assert!(creation.median_ns <= creation.p90_ns && creation.p90_ns <= creation.p99_ns);
            let (first, last) = (creation.bins[0], creation.bins[creation.bins.len() - 1]);
            assert!(first.count > 0 && last.count > 0, "{}", creation.what);
            // The histogram keeps three digits of a time, and tells the longest rounded up.
            let longest_ns = creation.longest_ns - creation.longest_ns / 500;
            assert!(first.to_ns >= creation.shortest_ns && last.to_ns >= longest_ns);
        }
    }

    #[test]
    fn a_failure_names_the_way() {
        let failed = times("nothing", 3, || Err(io::Error::from_raw_os_error(libc::EAGAIN)));
        assert!(failed.is_err_and(|error| error.starts_with("nothing: ")));
    }
}
