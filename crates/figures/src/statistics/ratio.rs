//! The ratio of two means, with its interval of 95 %.
//!
//! Two samples are compared by Welch's t-test (B. L. Welch, Biometrika 34, 1947), which allows for different
//! spreads, on the logarithms of the values: figures of speed differ by factors, and the interval then is one
//! of the ratio of geometric means. Where a value is 0 there is no logarithm; then the difference of the
//! values is divided by the first mean.
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::mean;

/// How sure: 95 %, so 2.5 % beyond each end.
const UPPER_TAIL: f64 = 0.975;

/// A ratio of the second to the first, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The second figure divided by the first.
    pub ratio: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The ratio of `b` to `a`. `None` with fewer than two values on a side, or when there is nothing to divide
/// by.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<Interval> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let all = || a.iter().chain(b);
    if all().any(|value| !value.is_finite()) {
        return None;
    }
    if all().all(|value| *value > 0.0) {
        let logarithms = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        let (difference, half) = welch(&logarithms(a), &logarithms(b));
        return Some(Interval {
            ratio: difference.exp(),
            low: (difference - half).exp(),
            high: (difference + half).exp(),
        });
    }
    let first = mean(a);
    let (difference, half) = welch(a, b);
    (first > 0.0).then(|| Interval {
        ratio: 1.0 + difference / first,
        low: 1.0 + (difference - half) / first,
        high: 1.0 + (difference + half) / first,
    })
}

/// The difference of the means, and half the width of its interval.
fn welch(a: &[f64], b: &[f64]) -> (f64, f64) {
    let difference = mean(b) - mean(a);
    let (square_a, square_b) = (variance(a) / a.len() as f64, variance(b) / b.len() as f64);
    let square = square_a + square_b;
    // Values that are all the same leave nothing to chance.
    if square <= f64::MIN_POSITIVE {
        return (difference, 0.0);
    }
    let part = |square: f64, count: usize| square * square / (count - 1) as f64;
    let freedom = square * square / (part(square_a, a.len()) + part(square_b, b.len()));
    (difference, quantile(freedom) * square.sqrt())
}

/// Student's t at the upper end of the interval.
fn quantile(freedom: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive");
    distribution.inverse_cdf(UPPER_TAIL)
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// How much each value follows the one before it, -1 to 1: near 0 when they are independent.
pub fn correlation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let product: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if square > 0.0 { product / square } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Chance from a seed.
    struct Numbers(Xoshiro256PlusPlus);

    impl Numbers {
        fn new(seed: u64) -> Self {
            Self(Xoshiro256PlusPlus::seed_from_u64(seed))
        }

        /// Normal with mean 0 and deviation 1 (Box and Muller).
        fn normal(&mut self) -> f64 {
            let radius = (-2.0 * (1.0 - self.0.random::<f64>()).ln()).sqrt();
            radius * (std::f64::consts::TAU * self.0.random::<f64>()).cos()
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (10.0, 2.228), (30.0, 2.042), (1e6, 1.960)];
        for (freedom, expected) in table {
            assert!((quantile(freedom) - expected).abs() < 0.001, "{freedom}: {}", quantile(freedom));
        }
    }

    #[test]
    fn welch_is_the_plain_test_where_both_agree() {
        // Equal counts and variances: as many degrees of freedom as the plain test, 8; the error is 1.
        let (difference, half) = welch(&[1.0, 2.0, 3.0, 4.0, 5.0], &[3.0, 4.0, 5.0, 6.0, 7.0]);
        assert!((difference - 2.0).abs() < 1e-9 && (half - 2.306).abs() < 1e-3, "{half}");
        // The second sample has no spread: 4 degrees of freedom, those of the first; the error is sqrt(1/2).
        let (difference, half) = welch(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 6.0, 6.0]);
        assert!((difference - 3.0).abs() < 1e-9 && (half - 2.776 * 0.5f64.sqrt()).abs() < 1e-3, "{half}");
    }

    /// How many of 4000 intervals hold the true ratio.
    fn covered(seed: u64, counts: (usize, usize), spreads: (f64, f64), truth: f64) -> f64 {
        let mut numbers = Numbers::new(seed);
        let mut held = 0;
        for _ in 0..4_000 {
            let a: Vec<f64> = (0..counts.0).map(|_| (spreads.0 * numbers.normal()).exp() * 100.0).collect();
            let b: Vec<f64> =
                (0..counts.1).map(|_| (spreads.1 * numbers.normal()).exp() * 100.0 * truth).collect();
            let interval = ratio(&a, &b).unwrap();
            held += usize::from(interval.low <= truth && truth <= interval.high);
        }
        held as f64 / 4_000.0
    }

    #[test]
    fn intervals_hold_the_truth_95_times_of_100() {
        // Four times the deviation of the share itself, sqrt(0.05 * 0.95 / 4000), around 95 %.
        let cases = [
            (1, (5, 5), (0.03, 0.03), 1.0),
            (2, (5, 5), (0.05, 0.02), 1.0),
            (3, (10, 20), (0.1, 0.3), 1.0),
            (4, (20, 20), (0.05, 0.05), 1.1),
            (5, (8, 8), (0.2, 0.2), 0.5),
        ];
        for (seed, counts, spreads, truth) in cases {
            let share = covered(seed, counts, spreads, truth);
            assert!((share - 0.95).abs() < 0.014, "seed {seed}: {share}");
        }
    }

    #[test]
    fn zeros_and_equal_values_have_an_answer() {
        let same = ratio(&[100.0, 100.0], &[110.0, 110.0]).unwrap();
        assert!((same.low - 1.1).abs() < 1e-9 && (same.high - 1.1).abs() < 1e-9);
        let dead = ratio(&[100.0, 101.0, 99.0], &[0.0, 0.0, 0.0]).unwrap();
        assert!(dead.ratio.abs() < 1e-9 && dead.high < 0.1, "{dead:?}");
        assert_eq!(ratio(&[0.0, 0.0], &[1.0, 1.0]), None);
        assert_eq!(ratio(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(ratio(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }

    #[test]
    fn values_that_follow_each_other_are_seen() {
        let mut numbers = Numbers::new(7);
        let alone: Vec<f64> = (0..1_000).map(|_| numbers.normal()).collect();
        assert!(correlation(&alone).abs() < 0.1);
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        assert!(correlation(&rising) > 0.8);
        assert_eq!(correlation(&[1.0, 1.0, 1.0]), 0.0);
    }
}
