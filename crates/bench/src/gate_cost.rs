//! The scenario of the gate's program: nanoseconds a frame, by test runs in the kernel.
//!
//! It owns the bars. The frames are those of `gate-cost`, an example of the gate's crate. A test run costs
//! something by itself, which is part of every figure: `empty` is a program that does nothing.
use std::process::Command;

use super::gate::bed::compile_pass;
use super::setting::Setting;
use crate::report::{Bar, Direction, ScenarioOutcome};

const MEASURE: &str = "cost of a frame";
const UNIT: &str = "ns";
/// How much a frame may cost by the beginning of its name: those that are no SYN, and a SYN that is shed.
const BARS: [(&str, f64); 2] = [("other", 30.0), ("syn-shed", 60.0)];

/// Runs the scenario; it needs root.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new("gate-cost", "a frame at the gate, by test runs in the kernel");
    if let Err(error) = measure(setting, &mut outcome) {
        if error.contains("CAP_BPF") {
            return outcome.skip(error);
        }
        outcome.errors.push(error);
    }
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    setting.expect_steps(1 + setting.rounds as usize);
    setting.step("building the driver");
    let empty = compile_pass(&setting.scratch)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(&cargo);
    build.args(["build", "--quiet", "--release", "-p", "staunch-gate", "--example", "gate-cost"]);
    read(build.current_dir(&setting.root))?;
    let mut names = Vec::new();
    for round in 0..setting.rounds {
        setting.step(&format!("round {}", round + 1));
        let mut driver = Command::new(&cargo);
        driver.args(["run", "--quiet", "--release", "-p", "staunch-gate", "--example", "gate-cost"]);
        driver.arg("--").arg(&empty);
        for line in read(driver.current_dir(&setting.root))?.lines() {
            let (name, cost) = line.split_once(' ').ok_or_else(|| format!("the driver says '{line}'"))?;
            let cost = cost.parse().map_err(|_| format!("the driver says '{line}'"))?;
            outcome.add(name, MEASURE, UNIT, cost);
            if !names.contains(&name.to_owned()) {
                names.push(name.to_owned());
            }
        }
    }
    for name in names {
        if let Some((_, limit)) = BARS.iter().find(|(kind, _)| name.starts_with(kind)) {
            let samples = outcome.samples(&name, MEASURE).to_vec();
            let words = format!("{MEASURE}, {name}");
            outcome.bars.push(Bar::judge("gate", &words, Direction::AtMost, *limit, UNIT, samples));
        }
    }
    Ok(())
}

/// What a command prints.
fn read(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
