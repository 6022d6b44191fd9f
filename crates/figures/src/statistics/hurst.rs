//! The Hurst parameter of a series of counts: how much slower its bursts even out than independent ones.
//!
//! It owns two estimators on the counts of events in bins of equal length. It must never see times, so that
//! it is as good a judge of a generator's schedule as of what a server was really sent.
//!
//! For independent counts H is 0.5: the mean of m bins varies as `m^-1`. Self-similar traffic has 0.5 < H <
//! 1: it varies as `m^(2H-2)`, so that bursts are seen at every scale. The two ways to read H from counts:
//!
//! - **Wavelet** (Abry and Veitch, "Wavelet analysis of long-range-dependent traffic", IEEE Transactions on
//!   Information Theory 44(1), 1998): the mean energy of the details of octave j grows as `2^(j(2H-1))`. A
//!   line is fitted to its logarithm, each octave weighted by how well it is known. With the wavelet of Haar
//!   the law is exact from the first octave on for fractional Gaussian noise: the details are differences of
//!   neighbouring sums, and the sum of m bins has variance `m^(2H)`. Details are taken at every place instead
//!   of every `2^j`-th (Percival and Walden, "Wavelet Methods for Time Series Analysis", 2000, section 8.3),
//!   which tells more of the long octaves, of which there are few. A drift of the mean rate (a ramp) would be
//!   taken for bursts.
//! - **Aggregated variance** (Taqqu, Teverovsky and Willinger, "Estimators for long-range dependence: an
//!   empirical study", Fractals 3(4), 1995): a line through the logarithm of the variance of means of m bins.
//!   The sample variance is too small because the mean is taken from the same series, by `1 - (m/n)^(2-2H)`;
//!   that is put right. It knows less than the wavelet from the same counts, but shares no step with it.
use std::f64::consts::LN_2;

/// Fewer counts than these say nothing: the fit needs a few octaves.
pub const COUNTS_MIN: usize = 64;

/// What was estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// H by the wavelet: the figure to quote. Not a number when there are fewer than [`COUNTS_MIN`] counts,
    /// or when all are equal.
    pub wavelet: f64,
    /// Standard deviation of `wavelet`, for Gaussian counts.
    pub wavelet_error: f64,
    /// H by the aggregated variance, in 0.01 ... 0.99.
    pub aggregated_variance: f64,
}

/// Estimates H from counts in bins of equal length, which should hold ten events or more on average: below,
/// the single events hide the bursts.
pub fn hurst(counts: &[f64]) -> Estimate {
    let usable = counts.len() >= COUNTS_MIN && counts.iter().any(|count| *count != counts[0]);
    if !usable {
        return Estimate { wavelet: f64::NAN, wavelet_error: f64::NAN, aggregated_variance: f64::NAN };
    }
    let line = fit(&octaves(counts));
    Estimate {
        wavelet: (line.slope + 1.0) / 2.0,
        wavelet_error: line.slope_error / 2.0,
        aggregated_variance: aggregated_variance(counts),
    }
}

/// A point of a line to be fitted.
struct Point {
    x: f64,
    y: f64,
    variance: f64,
}

struct Line {
    slope: f64,
    slope_error: f64,
}

/// Weighted least squares.
fn fit(points: &[Point]) -> Line {
    let sum =
        |term: &dyn Fn(&Point) -> f64| points.iter().map(|point| term(point) / point.variance).sum::<f64>();
    let (weight, x, y) = (sum(&|_| 1.0), sum(&|point| point.x), sum(&|point| point.y));
    let (xx, xy) = (sum(&|point| point.x * point.x), sum(&|point| point.x * point.y));
    let determinant = weight * xx - x * x;
    Line { slope: (weight * xy - x * y) / determinant, slope_error: (weight / determinant).sqrt() }
}

/// The first octave looked at: in the very first the rounding to whole events is still seen.
const FIRST_OCTAVE: u32 = 2;
/// Octaves with fewer details side by side say too little to be worth their bias.
const DETAILS_MIN: usize = 4;
/// Details at every place are worth so many times those side by side (for white noise, in long octaves).
const OVERLAP_WORTH: f64 = 1.5;

/// Logarithm of the mean energy of each octave, with Abry and Veitch's correction of its bias and its
/// variance.
fn octaves(counts: &[f64]) -> Vec<Point> {
    let mut sums = vec![0.0];
    sums.extend(counts.iter().scan(0.0, |sum, count| {
        *sum += count;
        Some(*sum)
    }));
    let mut points = Vec::new();
    for octave in FIRST_OCTAVE.. {
        let length = 1 << octave;
        let details = counts.len() / length;
        if details < DETAILS_MIN {
            break;
        }
        let places = sums.windows(length + 1);
        let number = places.len() as f64;
        let energies =
            places.map(|sums| (2.0 * sums[length / 2] - sums[0] - sums[length]).powi(2) / length as f64);
        let energy = energies.sum::<f64>() / number;
        let half = details as f64 * OVERLAP_WORTH / 2.0;
        let bias = digamma(half) / LN_2 - half.log2();
        let variance = trigamma(half) / (LN_2 * LN_2);
        if energy > 0.0 {
            points.push(Point { x: f64::from(octave), y: energy.log2() - bias, variance });
        }
    }
    points
}

/// The digamma function for x of 2 or more, to five digits.
fn digamma(x: f64) -> f64 {
    x.ln() - 0.5 / x - 1.0 / (12.0 * x.powi(2)) + 1.0 / (120.0 * x.powi(4)) - 1.0 / (252.0 * x.powi(6))
}

/// The trigamma function for x of 2 or more, to five digits.
fn trigamma(x: f64) -> f64 {
    1.0 / x + 0.5 / x.powi(2) + 1.0 / (6.0 * x.powi(3)) - 1.0 / (30.0 * x.powi(5)) + 1.0 / (42.0 * x.powi(7))
}

/// Blocks below which a variance is too uncertain to be fitted.
const BLOCKS_MIN: usize = 16;
/// Block lengths tried in each octave: closer ones have nearly the same blocks.
const LENGTHS_PER_OCTAVE: f64 = 2.0;
/// Times the correction is applied; each brings H closer by a factor, thirty are enough for three digits at
/// 0.95.
const CORRECTIONS: u32 = 30;

fn aggregated_variance(counts: &[f64]) -> f64 {
    let mut variances = Vec::new();
    let mut step = 1.0_f64;
    loop {
        let length = 2_f64.powf(step).round() as usize;
        let blocks = counts.len() / length;
        if blocks < BLOCKS_MIN {
            break;
        }
        let means = counts.chunks_exact(length).map(|block| block.iter().sum::<f64>() / length as f64);
        variances.push((length as f64, blocks as f64, variance(&means.collect::<Vec<_>>())));
        step += 1.0 / LENGTHS_PER_OCTAVE;
    }
    let mut h = 0.5_f64;
    for _ in 0..CORRECTIONS {
        let points: Vec<Point> = variances
            .iter()
            .filter(|(_, _, variance)| *variance > 0.0)
            .map(|&(length, blocks, variance)| {
                let kept = 1.0 - blocks.powf(2.0 * h - 2.0);
                Point { x: length.log2(), y: (variance / kept).log2(), variance: 1.0 / blocks }
            })
            .collect();
        h = ((fit(&points).slope + 2.0) / 2.0).clamp(0.01, 0.99);
    }
    h
}

/// With the number of values as the divisor: the correction counts on it.
fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests;
