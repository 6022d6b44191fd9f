//! How often something took how long, in buckets of a fixed series 1, 2, 5.
//!
//! It has one writer; anyone may read it at any time. It must never be asked for a decision on a request's
//! path.

use crate::counter::Counter;

/// Upper bounds of all buckets but the last, in nanoseconds: from 10 us, below which nobody is helped by
/// knowing more, to 10 s, beyond which nobody waits.
pub const BOUNDS_NS: [u64; 19] = bounds();

/// Bounds, and one bucket for what is above all of them.
const BUCKETS_COUNT: usize = BOUNDS_NS.len() + 1;

const fn bounds() -> [u64; 19] {
    let mut bounds = [0; 19];
    let (mut index, mut power) = (0, 10_000);
    while index < bounds.len() {
        bounds[index] = power * [1, 2, 5][index % 3];
        power *= if index % 3 == 2 { 10 } else { 1 };
        index += 1;
    }
    bounds
}

/// Counts of durations by bucket, and their sum in nanoseconds.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Counter; BUCKETS_COUNT],
    sum_ns: Counter,
}

impl Histogram {
    /// How often, by bucket: each up to its bound of [`BOUNDS_NS`], the last without one.
    pub fn buckets(&self) -> [u64; BUCKETS_COUNT] {
        std::array::from_fn(|index| self.buckets[index].get())
    }

    /// All that was added, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.get()
    }

    /// Something took so long, `count` times.
    #[inline]
    pub(crate) fn add(&self, ns: u64, count: u64) {
        let bucket = BOUNDS_NS.partition_point(|bound| *bound < ns);
        self.buckets[bucket].add(count);
        self.sum_ns.add(ns.saturating_mul(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_1_2_5() {
        assert_eq!(BOUNDS_NS[..5], [10_000, 20_000, 50_000, 100_000, 200_000]);
        assert_eq!(BOUNDS_NS[18], 10_000_000_000);
    }

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        let histogram = Histogram::default();
        for (ns, count) in [(0, 1), (10_000, 2), (10_001, 4), (10_000_000_000, 8), (10_000_000_001, 16)] {
            histogram.add(ns, count);
        }
        let mut expected = [0; BUCKETS_COUNT];
        (expected[0], expected[1], expected[18], expected[19]) = (3, 4, 8, 16);
        assert_eq!(histogram.buckets(), expected);
        assert_eq!(histogram.sum_ns(), 20_000 + 4 * 10_001 + 80_000_000_000 + 16 * 10_000_000_001);
    }
}
