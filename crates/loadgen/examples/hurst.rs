//! Makes self-similar schedules and measures them, for `cargo xtask bench load-hurst`: `hurst SEEDS H...`.
//! A line for each seed: the Hurst parameter asked for, the seed, and the one measured by wavelets.
//!
//! It must never offer a request, and never judge.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use staunch_loadgen::hurst::hurst;
use staunch_loadgen::schedule::{Arrivals, Profile, SOURCES_DEFAULT, Schedule, Share};

const RATE_PER_S: f64 = 1000.0;
/// Ten arrivals in each on average: with fewer, single arrivals hide the bursts.
const BIN_NS: u64 = 10_000_000;
/// Five minutes of the rate above. The longer a schedule, the nearer what is measured to what it follows.
const BINS_COUNT: usize = 30_000;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let seeds: Option<u64> = words.next().and_then(|word| word.parse().ok());
    let asked: Result<Vec<f64>, _> = words.map(|word| word.parse()).collect();
    let (Some(seeds), Ok(asked)) = (seeds, asked) else {
        eprintln!("usage: hurst SEEDS H...");
        return ExitCode::from(2);
    };
    for hurst_asked in asked {
        for seed in 1..=seeds {
            match counts(hurst_asked, seed) {
                Ok(counts) => println!("{hurst_asked} {seed} {:.4}", hurst(&counts).wavelet),
                Err(fault) => {
                    eprintln!("{fault}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

/// Arrivals in each bin of one schedule.
fn counts(hurst: f64, seed: u64) -> Result<Vec<f64>, staunch_loadgen::Fault> {
    let arrivals = Arrivals::SelfSimilar { hurst, sources: SOURCES_DEFAULT };
    let profile = Profile::Steady { rate_per_s: RATE_PER_S };
    let mut schedule = Schedule::new(&arrivals, &profile, seed, Share::WHOLE)?;
    let mut counts = vec![0.0; BINS_COUNT];
    while let Some(start_ns) = schedule.next_ns() {
        let Some(count) = counts.get_mut((start_ns / BIN_NS) as usize) else { break };
        *count += 1.0;
    }
    Ok(counts)
}
