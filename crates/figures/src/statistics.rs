//! Statistics of a few measured values: medians, quartiles, ranges, what chance leaves of a difference.
//!
//! It must never read a clock or draw its own chance: the same numbers give the same words, always.

pub mod hurst;
mod ratio;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
pub use ratio::{Interval, correlation, ratio};

/// Rounds drawn anew for one range: its ends are then those of the next seed to within a percent or two.
const RESAMPLE_COUNT: usize = 2_000;

/// The seed of every range: a file that is read again says the same.
const SEED: u64 = 2012;

/// Of the medians drawn anew, so many lie below the range, and as many above it.
const TAIL: f64 = 0.025;

/// A median, and where it may as well lie (95 %, by bootstrap).
///
/// Few rounds cannot tell more than their extremes: up to five of them the range goes from the smallest to
/// the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The value in the middle, or between the two there.
    pub median: f64,
    /// The lower end of the range.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Summary {
    /// Of numbers that were measured, in any order; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        Self::with_seed(values, SEED)
    }

    /// As [`Summary::of`], with another seed.
    fn with_seed(values: &[f64], seed: u64) -> Option<Self> {
        let median = median(values)?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut drawn = vec![0.0; values.len()];
        let mut medians = Vec::with_capacity(RESAMPLE_COUNT);
        for _ in 0..RESAMPLE_COUNT {
            drawn.fill_with(|| values[random.random_range(0..values.len())]);
            medians.extend(self::median(&drawn));
        }
        let low = quantile(&medians, TAIL)?.min(median);
        let high = quantile(&medians, 1.0 - TAIL)?.max(median);
        Some(Self { median, low, high })
    }

    /// Whether chance alone may be what tells them apart.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The value in the middle, or between the two there; `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The first quartile and the third.
pub fn quartiles(values: &[f64]) -> Option<(f64, f64)> {
    Some((quantile(values, 0.25)?, quantile(values, 0.75)?))
}

/// The value that this part of all lies below; between two of them in proportion. `None` of none.
pub fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = part * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    if below == above { Some(below) } else { Some(below + (above - below) * place.fract()) }
}

/// The arithmetic mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Median, smallest and largest of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The value in the middle, or the mean of the two there.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of at least one value; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let median = median(values)?;
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { median, min, max })
    }

    /// `median (min to max)`, or the median alone when there is no range.
    pub fn text(&self, words: impl Fn(f64) -> String) -> String {
        let Self { median, min, max } = *self;
        if min == max {
            words(median)
        } else {
            format!("{} ({} to {})", words(median), words(min), words(max))
        }
    }
}

#[cfg(test)]
mod tests;
