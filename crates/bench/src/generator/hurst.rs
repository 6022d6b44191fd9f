//! The scenario `load-hurst`: whether self-similar schedules are as self-similar as they are asked to be.
//!
//! It owns the bar. The schedules are made and measured by `hurst`, an example of the generator's crate,
//! because no crate of the server or the generator may be part of this program. Nothing depends on time here.

use std::process::Command;

use crate::figures::{Bar, Direction, Outcome};
use crate::setting::Setting;

/// The Hurst parameters that are asked for.
const ASKED: [f64; 4] = [0.6, 0.7, 0.8, 0.9];
const SEEDS: u32 = 20;
const ERROR_MAX: f64 = 0.05;

const MEASURED: &str = "Hurst parameter measured";
const ERROR: &str = "distance from the one asked for";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> Outcome {
    let mut outcome =
        Outcome::new("load-hurst", "self-similar schedules of 20 seeds: the Hurst parameter, by wavelets");
    setting.expect_steps(1);
    setting.step("making schedules");
    match schedules(setting) {
        Ok(lines) => add(&lines, &mut outcome),
        Err(error) => outcome.errors.push(error),
    }
    judge(&mut outcome);
    outcome
}

/// Runs the example.
fn schedules(setting: &Setting) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "-p", "staunch-loadgen", "--example", "hurst", "--"]);
    command.arg(SEEDS.to_string()).args(ASKED.map(|asked| asked.to_string()));
    let output = command.current_dir(&setting.root).output().map_err(|error| format!("cargo: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("the example hurst failed: {}", said.lines().last().unwrap_or("it said nothing")))
}

/// Lines of three: asked for, seed, measured.
fn add(lines: &str, outcome: &mut Outcome) {
    for line in lines.lines() {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [asked, _, measured] = numbers[..] else {
            outcome.errors.push(format!("the example hurst says '{line}'"));
            continue;
        };
        outcome.add(&row(asked), MEASURED, "", measured);
        outcome.add(&row(asked), ERROR, "", (measured - asked).abs());
    }
}

fn judge(outcome: &mut Outcome) {
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

    #[test]
    fn the_worst_seed_is_judged() {
        let mut outcome = Outcome::new("name", "title");
        add("0.6 1 0.61\n0.6 2 0.54\n0.7 1 0.72\n0.8 1 0.75\n0.9 1 0.9\n", &mut outcome);
        judge(&mut outcome);
        let verdicts: Vec<bool> =
            outcome.bars.iter().map(|bar| bar.verdict == crate::figures::Verdict::Pass).collect();
        assert_eq!(verdicts, [false, true, false, true], "0.06 and 0.05 with a rounding error are too far");
        assert!(outcome.errors.is_empty());
    }

    #[test]
    fn words_that_are_no_figures_are_an_error() {
        let mut outcome = Outcome::new("name", "title");
        add("H alas\n", &mut outcome);
        assert_eq!(outcome.errors, ["the example hurst says 'H alas'"]);
    }
}
