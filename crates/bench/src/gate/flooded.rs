//! The scenario `gate-flood`: nginx, asked for more than its peak, under a flood of forged SYN segments.
//!
//! It owns the bars on what is left for clients, those seen before and those never seen. Those never seen
//! wait for three seconds, as a browser does much longer: the gate answers whoever asks a second time, and
//! that is after a second. The peak is the mean of one measured just before and one just after.
use std::thread::sleep;
use std::time::Duration;

use super::bed::Reception;
use super::clients::{Crowd, Who};
use super::daemon;
use super::stage::{Flooded, Stage};
use super::subject::Name;
use crate::account::Account;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

const BACKLOG: u32 = 4096;
/// What is offered, of the peak: one peak differs from the next by up to a tenth, and goodput is never more
/// than is offered.
const OFFERED: f64 = 1.2;
/// Less of the flood that was meant is none to judge by.
const SHARE_MIN: f64 = 0.8;
/// Until what waits in the server is over: a full line without a gate.
const REST: Duration = Duration::from_secs(2);
const KEPT: &str = "goodput, of the peak";
const KEPT_GATED: &str = "goodput, of the peak behind the gate";
const P99: &str = "latency p99";

#[derive(Debug, Clone, Copy)]
struct Case {
    title: &'static str,
    syn_per_s: u32,
    reception: Reception,
    /// Whether each client comes once.
    strangers: bool,
    /// How the gate is asked to refuse.
    arguments: &'static [&'static str],
    patience_s: u32,
    /// The bar, where there is one.
    kept_min: Option<f64>,
}

const SEEN: Case = Case {
    title: "200 000/s, seen before",
    syn_per_s: 200_000,
    reception: Reception::OwnCore,
    strangers: false,
    arguments: &[],
    patience_s: 1,
    kept_min: Some(0.95),
};

const CASES: [Case; 5] = [
    SEEN,
    Case { title: "200 000/s, never seen", strangers: true, patience_s: 3, kept_min: Some(0.60), ..SEEN },
    Case {
        title: "200 000/s, never seen, cookies",
        strangers: true,
        arguments: &["--mode", "cookie"],
        kept_min: None,
        ..SEEN
    },
    Case { title: "1 000 000/s, seen before", syn_per_s: 1_000_000, kept_min: Some(0.50), ..SEEN },
    Case {
        title: "1 000 000/s, seen before, XDP on another core",
        syn_per_s: 1_000_000,
        reception: Reception::OtherCore,
        ..SEEN
    },
];

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "gate-flood",
        "nginx offered 1.2 times its peak under a flood of forged SYN segments: 300 us of work, a request a \
         connection",
    );
    if let Some(reason) = super::obstacle() {
        return outcome.skip(reason);
    }
    if !Name::Nginx.is_installed() {
        return outcome.skip("nginx is not installed");
    }
    let absence = daemon::absence(&setting.programs.staunch);
    absence.iter().for_each(|reason| outcome.note(reason.clone()));
    let gates = if absence.is_some() { &[false][..] } else { &[false, true] };
    setting.expect_steps(setting.rounds as usize * CASES.len() * gates.len());
    for round in 1..=setting.rounds {
        for case in &CASES {
            if let Err(error) = measure(case, gates, round, setting, &mut outcome) {
                outcome.errors.push(format!("{}, round {round}: {error}", case.title));
            }
        }
    }
    if absence.is_none() {
        judge(&mut outcome);
    }
    outcome
}

fn measure(
    case: &Case,
    gates: &[bool],
    round: u32,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let seconds = f64::from(setting.seconds);
    let staunch = &setting.programs.staunch;
    let stage = Stage::set(Name::Nginx, case.reception, BACKLOG, staunch, &setting.scratch)?;
    let mut before = peak(&stage, case, seconds, outcome)?;
    for gate in gates {
        let row = row(case, *gate);
        setting.step(&format!("round {round}, {row}"));
        let daemon = if *gate { Some(stage.gate(case.arguments)?) } else { None };
        // Strangers are answered when they ask again, so at first there are none of them.
        let first_s = if case.strangers { 2.0 } else { 0.0 };
        let who = if case.strangers { Who::Strangers(0) } else { Who::Regulars };
        let regulars = Crowd::regulars(OFFERED * before, first_s + seconds);
        let crowd = Crowd { who, patience_s: case.patience_s, ..regulars };
        let flooded = stage.flooded(case.syn_per_s, &crowd, before, daemon.as_ref())?;
        let Flooded { answers, came_per_s: came, spent } = flooded;
        if came < SHARE_MIN * f64::from(case.syn_per_s) {
            return Err(format!("of {} SYN/s came only {came:.0}", case.syn_per_s));
        }
        let goodput = answers.in_time_between(first_s, first_s + seconds);
        if daemon.is_some() {
            sleep(REST);
            outcome.add(&row, KEPT_GATED, "", goodput / stage.peak(seconds)?);
        }
        drop(daemon);
        let after = peak(&stage, case, seconds, outcome)?;
        // The host is not equally quick all the time.
        outcome.add(&row, KEPT, "", goodput / f64::midpoint(before, after));
        before = after;
        if let Some(p99_ms) = answers.main.latency_ms.p99 {
            outcome.add(&row, P99, "ms", p99_ms);
        }
        outcome.note(format!(
            "{row}: {came:.0} SYN/s came; offered {:.0}/s, in time {goodput:.0}/s, \
             refused {}, timed out {}; of the server's processor: {spent}",
            answers.offered_per_s(),
            answers.main.refused + answers.main.reset,
            answers.main.timed_out
        ));
    }
    Ok(())
}

/// What the server answers without flood and gate.
fn peak(stage: &Stage, case: &Case, seconds: f64, outcome: &mut ScenarioOutcome) -> Result<f64, String> {
    sleep(REST);
    let spent = stage.spent(None)?;
    let peak = stage.peak(seconds)?;
    let spent = spent.told();
    outcome.note(format!("{}: peak {peak:.0}/s; of the server's processor: {spent}", case.title));
    Ok(peak)
}

fn row(case: &Case, gate: bool) -> String {
    format!("{}, gate {}", case.title, if gate { "on" } else { "off" })
}

fn judge(outcome: &mut ScenarioOutcome) {
    for case in &CASES {
        let Some(kept_min) = case.kept_min else { continue };
        let row = row(case, true);
        let samples = outcome.samples(&row, KEPT).to_vec();
        outcome.bars.push(Bar::judge(&row, KEPT, Direction::AtLeast, kept_min, "", samples));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::BarVerdict;

    #[test]
    fn only_the_gate_is_judged() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        for case in &CASES {
            outcome.add(&row(case, false), KEPT, "", 0.07);
            outcome.add(&row(case, true), KEPT, "", 0.94);
        }
        judge(&mut outcome);
        let passed: Vec<bool> = outcome.bars.iter().map(|bar| bar.verdict == BarVerdict::Pass).collect();
        // Seen before, never seen, a million, a million on another core.
        assert_eq!(passed, [false, true, true, false]);
    }
}
