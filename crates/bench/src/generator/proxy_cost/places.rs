//! The scenario `proxy-cost-places`: processor time of taking a place at a server and giving it back.
//!
//! This scenario owns the bar on the time of one taking and giving back. Four threads do nothing else, all at
//! one server: with a place for each thread, where no lock is taken, and with two places, where a thread that
//! finds none joins the line and leaves it. The program `counted` does the work; its processor time is read
//! from /proc.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::super::running;
use crate::machine;
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;

const THREADS: u32 = 4;
/// So many by each thread that the tick of /proc, 10 ms, is small beside them.
const TIMES: u32 = 4_000_000;
const COST: &str = "CPU of a place taken and given back";
const COST_NS_MAX: f64 = 500.0;
const FREE: &str = "4 threads, 4 places";
const FULL: &str = "4 threads, 2 places";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "the places of one server, taken and given back by 4 threads that do nothing else";
    let mut outcome = ScenarioOutcome::new("proxy-cost-places", title);
    setting.expect_steps(1 + 2 * setting.rounds as usize);
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    outcome.judge(FREE, COST, Direction::AtMost, COST_NS_MAX, "ns");
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    setting.step("building what is measured");
    let program = build(setting)?;
    for round in 1..=setting.rounds {
        for (row, places, times) in [(FREE, THREADS, TIMES), (FULL, THREADS / 2, TIMES / 4)] {
            setting.step(&format!("round {round}, {row}"));
            let numbers = [THREADS, places, times].map(|number| number.to_string());
            let words = [&[program.clone(), "places".to_owned()][..], &numbers].concat();
            let cpus = format!("0-{}", (THREADS as usize).min(machine::processors()) - 1);
            let watched = running::run_on(&cpus, &words, Duration::from_secs(60), &setting.scratch)?;
            let all = f64::from(THREADS) * f64::from(times);
            outcome.add(row, COST, "ns", watched.spent_ns as f64 / all);
            outcome.note(format!("{row}: {}", words.join(" ")));
        }
    }
    Ok(())
}

fn build(setting: &Setting) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--release", "--package", "staunch-counted"]);
    let output = command.current_dir(&setting.root).output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| setting.root.join("target"), PathBuf::from);
    Ok(setting.root.join(target).join("release/staunch-counted").to_string_lossy().into_owned())
}
