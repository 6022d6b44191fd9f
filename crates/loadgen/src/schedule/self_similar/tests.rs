//! Periods, rate and Hurst parameter of the sum of sources.
use staunch_figures::statistics::hurst::{Estimate, hurst};

use super::*;
use crate::schedule::arrivals::SOURCES_DEFAULT;

/// Counts of arrivals in bins of `bin` units, for `length` units.
fn counts(h: f64, sources: u32, seed: u64, bin: f64, length: f64) -> Vec<f64> {
    let mut counts = vec![0.0; (length / bin) as usize];
    let mut all = SelfSimilar::new(h, sources, seed);
    while let Some(count) = counts.get_mut((all.next() / bin) as usize) {
        *count += 1.0;
    }
    counts
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn thirty_seconds_at_1000_a_second_have_the_parameter_asked_for() {
    for h in [0.55, 0.6, 0.7, 0.8, 0.9, 0.95] {
        let estimates: Vec<Estimate> =
            (1..=20).map(|seed| hurst(&counts(h, SOURCES_DEFAULT, seed, 10.0, 30_000.0))).collect();
        let wavelets: Vec<f64> = estimates.iter().map(|estimate| estimate.wavelet).collect();
        let aggregated: Vec<f64> = estimates.iter().map(|estimate| estimate.aggregated_variance).collect();
        let within = wavelets.iter().filter(|wavelet| (*wavelet - h).abs() <= 0.05).count();
        println!("h {h}: {} {} within {within} {wavelets:.3?}", mean(&wavelets), mean(&aggregated));
        assert!((mean(&wavelets) - h).abs() < 0.015, "wavelet, {h}: {wavelets:?}");
        // This one has a standard deviation of 0.02 ... 0.045.
        assert!((mean(&aggregated) - h).abs() < 0.04, "aggregated variance, {h}: {aggregated:?}");
        // The estimate itself has a standard deviation of 0.02 on so few arrivals.
        assert!(within >= 18, "{h}: {wavelets:?}");
    }
}

#[test]
fn five_minutes_have_it_for_every_seed() {
    for h in [0.55, 0.65, 0.75, 0.85, 0.95] {
        for seed in 1..=8 {
            let estimate = hurst(&counts(h, SOURCES_DEFAULT, seed, 10.0, 300_000.0));
            assert!((estimate.wavelet - h).abs() < 0.05, "{h}, seed {seed}: {estimate:?}");
        }
    }
}

#[test]
fn other_numbers_of_sources_have_it_on_longer_bins() {
    for (sources, bin) in [(8, 20.0), (128, 50.0), (1024, 200.0)] {
        for h in [0.6, 0.75, 0.9] {
            let estimate = |seed| hurst(&counts(h, sources, seed, bin, 3000.0 * bin)).wavelet;
            let wavelets: Vec<f64> = (1..=8).map(estimate).collect();
            assert!((mean(&wavelets) - h).abs() < 0.04, "{sources} sources, {h}: {wavelets:?}");
        }
    }
}

#[test]
fn poisson_would_not_pass_for_self_similar() {
    // A canary for the tests above: the same judgement of independent arrivals.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut counts = vec![0.0; 3000];
    for _ in 0..30_000 {
        counts[(random.random::<f64>() * 3000.0) as usize] += 1.0;
    }
    assert!((hurst(&counts).wavelet - 0.5).abs() < 0.05);
}

#[test]
fn the_mean_rate_is_one_over_many_runs_and_at_every_time() {
    for h in [0.55, 0.75, 0.95] {
        // Short bins at the begin and the end of 2000 runs: stationary from the first on.
        let runs: Vec<Vec<f64>> =
            (0..2000).map(|seed| counts(h, SOURCES_DEFAULT, seed, 50.0, 500.0)).collect();
        for bin in [0, 4, 9] {
            let rate = mean(&runs.iter().map(|run| run[bin] / 50.0).collect::<Vec<_>>());
            assert!((rate - 1.0).abs() < 0.03, "h {h}, bin {bin}: {rate}");
        }
    }
}

#[test]
fn the_mean_rate_of_a_run_varies_as_the_document_says() {
    for (h, said) in [(0.55, 0.01), (0.8, 0.06), (0.95, 0.20)] {
        let rates: Vec<f64> =
            (0..100).map(|seed| counts(h, SOURCES_DEFAULT, seed, 30_000.0, 30_000.0)[0] / 30_000.0).collect();
        let middle = mean(&rates);
        let deviation = mean(&rates.iter().map(|rate| (rate - middle).powi(2)).collect::<Vec<_>>()).sqrt();
        println!("h {h}: {deviation}");
        assert!((0.7..1.3).contains(&(deviation / said)), "h {h}: {deviation} for {said}");
    }
}

#[test]
fn what_is_left_of_a_period_is_distributed_as_the_formula_says() {
    let period = Period { shortest: 2.0, alpha: 1.6 };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut left: Vec<f64> = (0..100_000).map(|_| period.residual(&mut random)).collect();
    left.sort_by(f64::total_cmp);
    let mean = 2.0 * 1.6 / 0.6;
    for (t, chance) in [(0.5, 1.0 - 0.5 / mean), (2.0, 1.0 / 1.6), (20.0, 10_f64.powf(-0.6) / 1.6)] {
        let above = left.len() - left.partition_point(|value| *value <= t);
        assert!((above as f64 / 1e5 - chance).abs() < 0.006, "{t}: {above}");
    }
    let mut whole: Vec<f64> = (0..100_000).map(|_| period.draw(&mut random)).collect();
    whole.sort_by(f64::total_cmp);
    assert!(whole[0] >= 2.0);
    for (t, chance) in [(3.0, 1.5_f64.powf(-1.6)), (20.0, 10_f64.powf(-1.6))] {
        let above = whole.len() - whole.partition_point(|value| *value <= t);
        assert!((above as f64 / 1e5 - chance).abs() < 0.006, "{t}: {above}");
    }
}

#[test]
fn every_shape_on_offer_has_a_dispersion() {
    for sources in 8..=1024 {
        for h in 55..=95 {
            let Shape { period, dispersion } = Shape::new(f64::from(h) / 100.0, sources);
            assert!(dispersion > 0.0 && dispersion <= 1.0, "{h}, {sources} sources: {dispersion}");
            assert!(period.shortest > 0.0 && period.shortest < 40.0, "{h}, {sources} sources: {period:?}");
        }
    }
}

#[test]
fn sources_that_are_off_for_good_are_the_end() {
    let mut all = SelfSimilar::new(0.9, 8, 1);
    all.sources_on = 0;
    all.ends = (0..8).map(|_| Reverse(End { at_bits: f64::INFINITY.to_bits(), on: false })).collect();
    assert_eq!(all.next(), f64::INFINITY);
    assert_eq!(all.next(), f64::INFINITY);
}
