//! The scenario `gate-gzip`: nginx that compresses its page at level 9 for each client, overloaded with the
//! gate and without, alone and beside another program on its processor. It runs only when it is named.
//!
//! This scenario owns the bar on the share of the capacity that is kept at ten times the capacity. The
//! capacity is measured in the same round, without a gate and beside the same neighbour.

use std::process::{Child, Stdio};

use super::bed::{Bed, Reception};
use super::daemon::{self, GateProcess};
use super::stage::Stage;
use super::subject::Name;
use crate::account::Account as _;
use crate::process;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

const BACKLOG: u32 = 4096;
/// Offered loads, as multiples of the capacity; the last is judged.
const MULTIPLES: [f64; 3] = [2.0, 5.0, JUDGED];
const JUDGED: f64 = 10.0;
const KEPT_MIN: f64 = 0.9;
const CAPACITY: &str = "capacity per second";
/// Works for nobody, for ever.
const HOG: &str = "while :; do :; done";

/// The other programs on the server's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// A loop that never waits, of the server's own priority.
    Hog,
}

impl Beside {
    const ALL: [Self; 2] = [Self::Nothing, Self::Hog];

    fn row(self, gate: bool) -> String {
        let beside = if self == Self::Hog { ", beside a hog" } else { "" };
        format!("nginx gzip -9, gate {}{beside}", if gate { "on" } else { "off" })
    }
}

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "gate-gzip",
        "goodput, of the capacity: nginx that compresses each answer at level 9, 1 s of patience",
    );
    if let Some(reason) = super::obstacle().or_else(|| daemon::absence(&setting.programs.staunch)) {
        return outcome.skip(reason);
    }
    if !Name::Gzip.is_installed() {
        return outcome.skip("nginx is not installed (cargo xtask install --for bench)");
    }
    setting.expect_steps(setting.rounds as usize * 2 * Beside::ALL.len() * (1 + MULTIPLES.len()));
    for round in 1..=setting.rounds {
        // The second measurement finds a host that is warm, or tired: so the gate is first by turns.
        let mut gates = [false, true];
        gates.rotate_left(round as usize % 2);
        for (gate, beside) in gates.into_iter().flat_map(|gate| Beside::ALL.map(|beside| (gate, beside))) {
            if let Err(error) = measure(gate, beside, round, setting, &mut outcome) {
                outcome.errors.push(format!("{}, round {round}: {error}", beside.row(gate)));
            }
        }
    }
    Beside::ALL.into_iter().for_each(|beside| judge(beside, &mut outcome));
    outcome
}

fn measure(
    gate: bool,
    beside: Beside,
    round: u32,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let (row, seconds) = (beside.row(gate), f64::from(setting.seconds));
    setting.step(&format!("round {round}, {row}, capacity"));
    let staunch = &setting.programs.staunch;
    let stage = Stage::set(Name::Gzip, Reception::OwnCore, BACKLOG, staunch, &setting.scratch)?;
    outcome.note(format!("server: {}", stage.subject.command));
    let _hog = if beside == Beside::Hog { Some(Hog::begin(&stage.bed)?) } else { None };
    let capacity = stage.peak(seconds)?;
    outcome.add(&row, CAPACITY, "", capacity);
    let daemon = if gate { Some(stage.gate(&[])?) } else { None };
    for multiple in MULTIPLES {
        setting.step(&format!("round {round}, {row}, {}", kept(multiple)));
        let answers = stage.steady(multiple * capacity, seconds)?;
        outcome.add(&row, &kept(multiple), "", answers.goodput_per_s() / capacity);
        answers
            .shortfall()
            .into_iter()
            .for_each(|said| outcome.disturbed(format!("{row}, {multiple} x: {said}")));
    }
    let said = daemon.iter().flat_map(GateProcess::said);
    said.for_each(|(_, line)| outcome.note(format!("{row}, round {round}: {line}")));
    Ok(())
}

fn kept(multiple: f64) -> String {
    format!("kept at {multiple} x")
}

fn judge(beside: Beside, outcome: &mut ScenarioOutcome) {
    let (row, measure) = (beside.row(true), kept(JUDGED));
    let samples = outcome.samples(&row, &measure).to_vec();
    outcome.bars.push(Bar::judge(&row, &measure, Direction::AtLeast, KEPT_MIN, "", samples));
}

/// The neighbour of the server. It ends when this is dropped.
struct Hog(Child);

impl Hog {
    fn begin(bed: &Bed) -> Result<Self, String> {
        let mut command = bed.at_server();
        command.args(["sh", "-c", HOG]).stdin(Stdio::null());
        command.spawn().map(Self).map_err(|error| format!("sh: {error}"))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        process::end(&process::descendants(self.0.id()));
        process::collect(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::BarVerdict;

    #[test]
    fn what_is_kept_with_the_gate_at_ten_times_is_judged() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        for beside in Beside::ALL {
            outcome.add(&beside.row(false), &kept(10.0), "", 0.4);
            outcome.add(&beside.row(true), &kept(10.0), "", if beside == Beside::Hog { 0.8 } else { 0.95 });
            outcome.add(&beside.row(true), &kept(2.0), "", 0.1);
            judge(beside, &mut outcome);
        }
        let verdicts: Vec<BarVerdict> = outcome.bars.iter().map(|bar| bar.verdict).collect();
        assert_eq!(verdicts, [BarVerdict::Pass, BarVerdict::Missed]);
    }
}
