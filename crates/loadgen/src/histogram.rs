//! Times, counted in buckets of at most one part in a thousand.
//!
//! It owns the bounds: 1 us to 1 h. It must never allocate or fail while recording. The crate `hdrhistogram`
//! counts; here stand our bounds and what it does not keep, the longest time exactly.

use hdrhistogram::Histogram as Buckets;

/// The shortest time told apart, in nanoseconds: below, the clock and the kernel are the larger part of any
/// time.
pub const SHORTEST_NS: u64 = 1000;
/// Longer times are counted as this, in nanoseconds: 1 h. No client is more patient.
pub const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits: buckets are at most one part in a thousand wide.
const DIGITS: u8 = 3;

/// A histogram of times in nanoseconds, of about 190 kB.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Buckets<u64>,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Self {
        let buckets = Buckets::new_with_bounds(SHORTEST_NS, LONGEST_NS, DIGITS);
        Self { buckets: buckets.expect("the bounds are constants and in order"), max_ns: 0 }
    }

    /// Counts a time of `time_ns`.
    pub fn record(&mut self, time_ns: u64) {
        self.buckets.saturating_record(time_ns.min(LONGEST_NS));
        self.max_ns = self.max_ns.max(time_ns);
    }

    /// Adds all that another has counted.
    pub fn merge(&mut self, other: &Self) {
        self.buckets.add(&other.buckets).expect("all have the same bounds");
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The time in nanoseconds that `percent` of all (0 ... 100) did not exceed: the upper end of its bucket,
    /// never more than the longest. 0 when empty.
    pub fn percentile(&self, percent: f64) -> u64 {
        // A rounding error upwards would ask for one more than 999 of 1000.
        let quantile = (percent / 100.0).next_down().next_down().max(0.0);
        self.buckets.value_at_quantile(quantile).min(self.max_ns)
    }

    /// The longest time in nanoseconds, exactly; 0 when empty.
    pub fn max(&self) -> u64 {
        self.max_ns
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The mean in nanoseconds, to one part in a thousand; 0 when empty.
    pub fn mean(&self) -> f64 {
        // The buckets' own mean takes the middle of each, which is more than 0 when all were 0.
        self.buckets.mean().min(self.max() as f64)
    }

    /// Forgets everything and keeps the memory.
    pub fn reset(&mut self) {
        self.buckets.reset();
        self.max_ns = 0;
    }

    /// The buckets, to be written or drawn. Their own maximum is the upper end of a bucket.
    pub fn buckets(&self) -> &Buckets<u64> {
        &self.buckets
    }
}

#[cfg(test)]
mod tests;
