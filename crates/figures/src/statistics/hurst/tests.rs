//! The yardstick is held against noise whose Hurst parameter is known exactly.
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

/// Covariance of fractional Gaussian noise of variance 1 at distance `lag`.
fn covariance(h: f64, lag: usize) -> f64 {
    let power = |x: f64| x.abs().powf(2.0 * h);
    let lag = lag as f64;
    (power(lag + 1.0) - 2.0 * power(lag) + power(lag - 1.0)) / 2.0
}

/// Exact fractional Gaussian noise by Hosking's method (Water Resources Research 20(12), 1984): each value is
/// drawn from its distribution given all before it, by the recursion of Durbin and Levinson.
fn fractional_noise(h: f64, length: usize, seed: u64) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let covariances: Vec<f64> = (0..length).map(|lag| covariance(h, lag)).collect();
    let mut values: Vec<f64> = Vec::with_capacity(length);
    let mut weights: Vec<f64> = Vec::new();
    let mut variance = 1.0;
    for step in 0..length {
        if step > 0 {
            // `weights[i]` belongs to the value i + 1 steps before; the covariances run the other way.
            let towards: f64 =
                weights.iter().zip(covariances[1..step].iter().rev()).map(|(w, c)| w * c).sum();
            let reflection = (covariances[step] - towards) / variance;
            let mirrored: Vec<f64> = weights.iter().rev().copied().collect();
            weights.iter_mut().zip(mirrored).for_each(|(weight, mirror)| *weight -= reflection * mirror);
            weights.push(reflection);
            variance *= 1.0 - reflection * reflection;
        }
        let mean: f64 = weights.iter().zip(values.iter().rev()).map(|(weight, value)| weight * value).sum();
        let draw: f64 = StandardNormal.sample(&mut random);
        values.push(mean + variance.sqrt() * draw);
    }
    values
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let number = values.len() as f64;
    values.sum::<f64>() / number
}

#[test]
fn the_noise_of_the_tests_has_the_covariance_it_should() {
    for h in [0.6, 0.9] {
        let noises: Vec<Vec<f64>> = (0..4000).map(|seed| fractional_noise(h, 12, seed)).collect();
        for (from, to) in [(0, 0), (0, 1), (3, 5), (11, 11), (1, 11)] {
            let found = mean(noises.iter().map(|noise| noise[from] * noise[to]));
            let right = covariance(h, to - from);
            assert!((found - right).abs() < 0.08, "h {h}, lag {}: {found} for {right}", to - from);
        }
    }
}

#[test]
fn both_estimators_find_the_parameter_of_exact_noise() {
    for h in [0.5, 0.55, 0.65, 0.75, 0.85, 0.95] {
        let estimates: Vec<Estimate> = (0..8).map(|seed| hurst(&fractional_noise(h, 4096, seed))).collect();
        for (seed, estimate) in estimates.iter().enumerate() {
            println!("h {h}, seed {seed}: {estimate:?}");
            assert!((estimate.wavelet - h).abs() < 0.05, "wavelet: {h}, seed {seed}: {estimate:?}");
            assert!(
                (estimate.wavelet - h).abs() < 4.0 * estimate.wavelet_error,
                "{h}, seed {seed}: {estimate:?}"
            );
            assert!(
                (estimate.aggregated_variance - h).abs() < 0.1,
                "variance: {h}, seed {seed}: {estimate:?}"
            );
        }
        let wavelet = mean(estimates.iter().map(|estimate| estimate.wavelet));
        let aggregated = mean(estimates.iter().map(|estimate| estimate.aggregated_variance));
        assert!((wavelet - h).abs() < 0.015, "wavelet is biased: {wavelet} for {h}");
        assert!((aggregated - h).abs() < 0.03, "aggregated variance is biased: {aggregated} for {h}");
    }
}

#[test]
fn level_and_scale_do_not_matter() {
    let noise = fractional_noise(0.8, 1024, 1);
    let moved: Vec<f64> = noise.iter().map(|value| 1000.0 + 20.0 * value).collect();
    assert!((hurst(&noise).wavelet - hurst(&moved).wavelet).abs() < 1e-9);
    assert!((hurst(&noise).aggregated_variance - hurst(&moved).aggregated_variance).abs() < 1e-6);
}

#[test]
fn nothing_is_said_of_too_little() {
    for counts in [vec![], vec![1.0; 1000], fractional_noise(0.8, COUNTS_MIN - 1, 1)] {
        assert!(hurst(&counts).wavelet.is_nan());
    }
    assert!(hurst(&fractional_noise(0.8, COUNTS_MIN, 1)).wavelet.is_finite());
}

#[test]
fn the_gamma_derivatives_are_right() {
    // Abramowitz and Stegun, tables 6.1 and 6.2.
    for (x, digamma_right, trigamma_right) in
        [(2.0, 0.4227843351, 0.6449340668), (10.0, 2.2517525891, 0.1051663357)]
    {
        assert!((digamma(x) - digamma_right).abs() < 2e-4, "{}", digamma(x));
        assert!((trigamma(x) - trigamma_right).abs() < 2e-4, "{}", trigamma(x));
    }
}
