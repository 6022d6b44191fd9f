//! The scenario `load-hurst`: whether self-similar schedules are as self-similar as they are asked to be.
//!
//! It owns the bar. Nothing depends on time here.
use staunch_figures::statistics::hurst::hurst;
use staunch_loadgen::Fault;
use staunch_loadgen::schedule::{Arrivals, Profile, SOURCES_DEFAULT, Schedule, Share};

use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

/// The Hurst parameters that are asked for.
const ASKED: [f64; 4] = [0.6, 0.7, 0.8, 0.9];
const SEEDS: u64 = 20;
const ERROR_MAX: f64 = 0.05;

const MEASURED: &str = "Hurst parameter measured";
const ERROR: &str = "distance from the one asked for";

const RATE_PER_S: f64 = 1000.0;
/// Ten arrivals in each on average: with fewer, single arrivals hide the bursts.
const BIN_NS: u64 = 10_000_000;
/// Five minutes of the rate above. The longer a schedule, the nearer what is measured to what it follows.
const BINS_COUNT: usize = 30_000;

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "load-hurst",
        "self-similar schedules of 20 seeds: the Hurst parameter, by wavelets",
    );
    setting.expect_steps(ASKED.len());
    for asked in ASKED {
        setting.step(&format!("schedules of H {asked}"));
        for seed in 1..=SEEDS {
            match counts(asked, seed) {
                Ok(counts) => add(asked, hurst(&counts).wavelet, &mut outcome),
                Err(fault) => outcome.errors.push(fault.to_string()),
            }
        }
    }
    judge(&mut outcome);
    outcome
}

/// Arrivals in each bin of one schedule.
fn counts(hurst: f64, seed: u64) -> Result<Vec<f64>, Fault> {
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

fn add(asked: f64, measured: f64, outcome: &mut ScenarioOutcome) {
    outcome.add(&row(asked), MEASURED, "", measured);
    outcome.add(&row(asked), ERROR, "", (measured - asked).abs());
}

fn judge(outcome: &mut ScenarioOutcome) {
    for name in ASKED.map(row) {
        let largest = outcome.samples(&name, ERROR).iter().copied().reduce(f64::max);
        let count = outcome.samples(&name, ERROR).len();
        let words = format!("{ERROR}, the largest of {count}");
        let largest = largest.map_or_else(Vec::new, |largest| vec![largest]);
        outcome.bars.push(Bar::judge(&name, &words, Direction::AtMost, ERROR_MAX, "", largest));
    }
}

fn row(asked: f64) -> String {
    format!("H {asked}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::BarVerdict;

    #[test]
    fn the_worst_seed_is_judged() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        for (asked, measured) in [(0.6, 0.61), (0.6, 0.54), (0.7, 0.72), (0.8, 0.75), (0.9, 0.9)] {
            add(asked, measured, &mut outcome);
        }
        judge(&mut outcome);
        let verdicts: Vec<bool> = outcome.bars.iter().map(|bar| bar.verdict == BarVerdict::Pass).collect();
        assert_eq!(verdicts, [false, true, false, true], "0.06 and 0.05 with a rounding error are too far");
    }

    #[test]
    fn schedules_have_arrivals_in_their_bins() {
        let counts = counts(0.8, 1).expect("a shape there is");
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        assert!((5.0..15.0).contains(&mean), "{mean}");
    }
}
