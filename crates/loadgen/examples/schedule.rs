//! How fast schedules are made and times recorded, and how near the Hurst parameter of self-similar schedules
//! comes to the one asked for, over many seeds: `cargo run --release -p staunch-loadgen --example schedule`.
//!
//! It must never offer a request.
use std::hint::black_box;
use std::time::Instant;

use staunch_figures::statistics::hurst::{Estimate, hurst};
use staunch_loadgen::histogram::Histogram;
use staunch_loadgen::schedule::{Arrivals, Profile, SOURCES_DEFAULT, Schedule, Share};

/// Enough for a steady figure within a second or so.
const ARRIVALS_COUNT: u32 = 10_000_000;
/// Runs for each line of the table.
const SEEDS: u64 = 100;

fn main() {
    for (name, arrivals, profile) in [
        ("constant", Arrivals::Constant, steady(1e6)),
        ("constant, ramp", Arrivals::Constant, Profile::Ramp { from: 1.0, to: 1e6, over_s: 1e3 }),
        ("poisson", Arrivals::Poisson, steady(1e6)),
        ("self-similar:0.55", self_similar(0.55), steady(1e6)),
        ("self-similar:0.8", self_similar(0.8), steady(1e6)),
        ("self-similar:0.95", self_similar(0.95), steady(1e6)),
    ] {
        let mut schedule = Schedule::new(&arrivals, &profile, 1, Share::WHOLE).expect("arguments are right");
        cost(name, || _ = black_box(schedule.next_ns()));
    }
    let mut histogram = Histogram::new();
    let mut time_ns = 1_u64;
    cost("histogram, times of all scales", || {
        time_ns = time_ns.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        histogram.record(1000 + (time_ns >> 30 >> (time_ns >> 60)));
    });
    println!("   H  arrivals   bin  wavelet  deviation  within 0.05  aggregated variance  deviation");
    for (arrivals, bin) in [(30_000, 10), (100_000, 10), (300_000, 10), (300_000, 100), (3_000_000, 1000)] {
        for h in [0.55, 0.65, 0.75, 0.85, 0.95] {
            measured(h, arrivals, bin);
        }
    }
}

fn steady(rate_per_s: f64) -> Profile {
    Profile::Steady { rate_per_s }
}

fn self_similar(hurst: f64) -> Arrivals {
    Arrivals::SelfSimilar { hurst, sources: SOURCES_DEFAULT }
}

fn cost(name: &str, mut work: impl FnMut()) {
    // tidy: allow(clock): what is measured here is time
    let began = Instant::now();
    (0..ARRIVALS_COUNT).for_each(|_| work());
    let nanoseconds = began.elapsed().as_nanos() as f64 / f64::from(ARRIVALS_COUNT);
    println!("{name}: {nanoseconds:.1} ns each, {:.1} million/s", 1e3 / nanoseconds);
}

/// A line: runs of so many arrivals at 1000/s, in bins of so many on average.
fn measured(h: f64, arrivals: u64, bin: u64) {
    let estimates: Vec<Estimate> = (0..SEEDS).map(|seed| hurst(&counts(h, arrivals, bin, seed))).collect();
    let wavelets: Vec<f64> = estimates.iter().map(|estimate| estimate.wavelet).collect();
    let aggregated: Vec<f64> = estimates.iter().map(|estimate| estimate.aggregated_variance).collect();
    let within = wavelets.iter().filter(|wavelet| (*wavelet - h).abs() <= 0.05).count();
    let (wavelet, deviation) = mean_and_deviation(&wavelets);
    let (other, other_deviation) = mean_and_deviation(&aggregated);
    println!(
        "{h:.2} {arrivals:>9} {bin:>5}  {wavelet:>7.3}  {deviation:>9.3}  {within:>6} of {SEEDS}  \
         {other:>19.3}  {other_deviation:>9.3}"
    );
}

fn counts(h: f64, arrivals: u64, bin: u64, seed: u64) -> Vec<f64> {
    const GAP_NS: u64 = 1_000_000;
    let mut schedule =
        Schedule::new(&self_similar(h), &steady(1e3), seed, Share::WHOLE).expect("arguments are right");
    let mut counts = vec![0.0; (arrivals / bin) as usize];
    while let Some(count) =
        schedule.next_ns().and_then(|time_ns| counts.get_mut((time_ns / (bin * GAP_NS)) as usize))
    {
        *count += 1.0;
    }
    counts
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / number).sqrt())
}
