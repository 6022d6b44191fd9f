//! The scenario of readers that stand still: whether others have their updates later for them.
//!
//! This file owns the bar of the scenario. Those beside whom nobody stands still are as many as those beside
//! whom somebody does, so that fewer deliveries do not hide what the stalled ones cost.
use super::delivering::{self, FanOutRow, P99};
use super::fan_server::{FanOut, available, name};
use super::stalling::stall;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

const ROW: FanOutRow = FanOutRow { readers: 9000, rate: 5.0 };
const STALLED: u32 = 1000;
const P99_MAX: f64 = 1.1;
const ARGUMENTS: [&str; 2] = ["--send-timeout", "600s"];

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "updates to 9 000 readers, alone and beside 1 000 that have stopped reading";
    let mut outcome = ScenarioOutcome::new("live-stalled", title);
    let kinds = available(&ServerKind::OURS, setting, &mut outcome);
    setting.expect_steps(kinds.len() * 2 * setting.rounds as usize);
    for round in 1..=setting.rounds {
        for kind in &kinds {
            for beside in [false, true] {
                let label = label(*kind, beside);
                setting.step(&format!("{label}, round {round}"));
                if let Err(error) = measure(*kind, beside, setting, &mut outcome) {
                    outcome.errors.push(format!("{label}: {error}"));
                }
            }
        }
    }
    let measure = ROW.measure(P99);
    for kind in kinds {
        let ratios = outcome.ratios(&label(kind, true), &label(kind, false), &measure);
        let promise = format!("{measure}, beside stalled ones, of without");
        outcome.bars.push(Bar::judge(name(kind), &promise, Direction::AtMost, P99_MAX, "", ratios));
    }
    outcome
}

fn label(kind: ServerKind, beside: bool) -> String {
    let beside = if beside { ", beside stalled ones" } else { "" };
    format!("{}{beside}", name(kind))
}

fn measure(
    kind: ServerKind,
    beside: bool,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let server = FanOut::of_readers(kind, ROW.readers + STALLED, &ARGUMENTS, setting)?;
    let stalled = if beside { Some(stall(&server, STALLED, 1, setting)?) } else { None };
    delivering::measure(&server, ROW, &label(kind, beside), setting, outcome)?;
    drop(stalled);
    outcome.note(format!("{}: {}", name(kind), server.command));
    Ok(())
}
