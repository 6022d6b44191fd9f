//! The scenario `gate-model`: two sweeps of nginx without the gate, by requests and by forged SYN segments,
//! and what `staunch model` says of each from its first third and from the costs of reception, which are
//! measured by themselves.
//!
//! It owns the bar on the predictions. They are the program's own; only what they are held against is
//! measured here.
use std::fs;
use std::process::Command;

use serde::Serialize;
use staunch_figures::statistics::median;
use staunch_loadgen::report::Document;

use super::bed::{MODERATION_NS, Reception};
use super::reception::{Costs, Floods};
use super::stage::Stage;
use super::subject::Name;
use crate::account::Account;
use crate::gate::clients::Crowd;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

/// What nginx asks for when nothing is configured: full, it is a wait of a quarter of a second. A longer
/// queue takes longer to fill than a load is offered here: what was measured would be how it fills.
const BACKLOG: u32 = 511;
/// Both sweeps go in equal steps, as in the figures of the paper: a first third in which nobody is refused
/// could not tell what becomes of those who are.
const STEPS: u32 = 12;
/// What is offered at most, as a multiple of the peak.
const MULTIPLE_MAX: f64 = 10.0;
/// Forged SYN segments a second at most: what reception alone can take. Beside them comes so much of the
/// peak, as in `staunch model size`.
const FLOOD_MAX: u32 = 200_000;
const BESIDE: f64 = 0.9;
/// Linux sends again what nobody acknowledged after 200 ms, then after twice as long, and so on.
const RETRY: &str = "200ms";
const OVER: [&str; 2] = ["requests", "flood"];
const ERROR_MAX: f64 = 0.10;
/// Row of what receiving SYN costs.
const RECEPTION: &str = "reception";
const ERROR: &str = "largest error of what was predicted";

/// A sweep in the form of `bench/runs/overload.json`.
#[derive(Debug, Default, Serialize)]
struct Sweep {
    servers: Vec<Server>,
    floods: Vec<Server>,
}

#[derive(Debug, Serialize)]
struct Server {
    name: &'static str,
    gate_off: Vec<Point>,
}

#[derive(Debug, Serialize)]
struct Point {
    offered_per_s: f64,
    syn_per_s: f64,
    goodput_per_s: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "gate-model",
        "nginx without the gate: two sweeps, and what the model says of each from its first third",
    );
    let absence = || (!has_model(setting)).then(|| "this staunch has no `model`".to_owned());
    if let Some(reason) = super::obstacle().or_else(absence) {
        return outcome.skip(reason);
    }
    setting.expect_steps((setting.rounds * (STEPS * 2 + 1)) as usize);
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    for over in OVER {
        let samples = outcome.samples(over, ERROR).to_vec();
        outcome.bars.push(Bar::judge(over, ERROR, Direction::AtMost, ERROR_MAX, "", samples));
    }
    outcome
}

fn has_model(setting: &Setting) -> bool {
    let said = Command::new(&setting.programs.staunch).args(["model", "--help"]).output();
    said.is_ok_and(|output| output.status.success())
}

/// In each round both sweeps and the costs of reception, so that all meet the same host.
fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let mut rounds: [Vec<Vec<Point>>; 2] = Default::default();
    let mut reception = Floods::default();
    for round in 1..=setting.rounds {
        setting.step(&format!("round {round}, costs of a SYN"));
        reception.measure(&stage(setting)?, f64::from(setting.seconds) / 2.0)?;
        for (over, rounds) in OVER.into_iter().zip(&mut rounds) {
            rounds.push(sweep(over, round, setting)?);
        }
    }
    let known = known(&reception.costs()?, outcome);
    let [requests, floods] = rounds.map(|rounds| vec![Server { name: "nginx", gate_off: medians(&rounds) }]);
    let sweeps = [Sweep { servers: requests, floods: vec![] }, Sweep { servers: vec![], floods }];
    let mut both = OVER.into_iter().zip(&sweeps);
    both.try_for_each(|(over, sweep)| add(over, &fit(sweep, &known, setting)?, outcome))
}

/// Reception as it was measured, in the words of `staunch model fit`: what is left to find is mu2. A third of
/// a sweep cannot tell a host that does more from one whose reception costs less.
fn known(costs: &Costs, outcome: &mut ScenarioOutcome) -> [String; 6] {
    let (packet_us, interrupt_us) = (costs.packet_s * 1e6, costs.interrupt_s * 1e6);
    let full_percent = costs.full_share * 100.0;
    outcome.add(RECEPTION, "c1, for a SYN", "us", packet_us);
    outcome.add(RECEPTION, "c0, for an interrupt", "us", interrupt_us);
    outcome.add(RECEPTION, "phi, left of c1 at a full line", "%", full_percent);
    let (mu1, interrupt, full) =
        (format!("{}/s", 1e6 / packet_us), format!("{interrupt_us}us"), format!("{full_percent}%"));
    ["--mu1", &mu1, "--interrupt-cost", &interrupt, "--full-cost", &full].map(str::to_owned)
}

fn stage(setting: &Setting) -> Result<Stage, String> {
    Stage::set(Name::Nginx, Reception::OwnCore, BACKLOG, &setting.programs.staunch, &setting.scratch)
}

/// What `staunch model fit` says of a sweep. It is not told the peak: that was measured with as many requests
/// as are answered, and where there are more the host does less.
fn fit(sweep: &Sweep, known: &[String], setting: &Setting) -> Result<serde_json::Value, String> {
    let file = setting.scratch.join("sweep.json");
    let text = serde_json::to_string(sweep).map_err(|error| error.to_string())?;
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    let (backlog, window) = (BACKLOG.to_string(), format!("{}us", MODERATION_NS / 1000));
    let output = Command::new(&setting.programs.staunch)
        .args(["model", "fit", &file.to_string_lossy(), "--first", "1/3", "--sending", "off", "--json"])
        .args(["--backlog", &backlog, "--patience", "1s", "--retry", RETRY, "--coalescing", &window])
        .args(known)
        .output()
        .map_err(|error| format!("staunch model: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("staunch model fit: {error}"))
}

/// What the fit says.
fn add(over: &str, said: &serde_json::Value, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let number = |pointer: &str| said.pointer(pointer).and_then(serde_json::Value::as_f64);
    let error = number("/fits/0/error_predicted_max").ok_or("staunch model fit has predicted nothing")?;
    outcome.add(over, ERROR, "", error);
    let rest = [
        ("slope, -mu2/mu1 (the paper: -0.09)", "/fits/0/slope"),
        ("mu2 per second", "/fits/0/host/mu2_per_s"),
        ("K", "/fits/0/host/places"),
    ];
    for (measure, pointer) in rest {
        number(pointer).into_iter().for_each(|value| outcome.add(over, measure, "", value));
    }
    let points = said.pointer("/fits/0/points").and_then(serde_json::Value::as_array);
    points.into_iter().flatten().for_each(|point| outcome.note(format!("{over}: {point}")));
    Ok(())
}

fn sweep(over: &str, round: u32, setting: &Setting) -> Result<Vec<Point>, String> {
    let seconds = f64::from(setting.seconds);
    let stage = stage(setting)?;
    let peak = stage.peak(seconds)?;
    let point = |step: u32| {
        if over == "requests" {
            let multiple = MULTIPLE_MAX * f64::from(step) / f64::from(STEPS);
            setting.step(&format!("round {round}, {multiple:.1} times"));
            return Ok(Point::new(0.0, &stage.steady(multiple * peak, seconds)?));
        }
        let syn_per_s = FLOOD_MAX / STEPS * step;
        setting.step(&format!("round {round}, {syn_per_s} SYN/s"));
        let crowd = Crowd::regulars(BESIDE * peak, seconds);
        let flooded = stage.flooded(syn_per_s, &crowd, peak, None)?;
        Ok(Point::new(flooded.came_per_s, &flooded.answers))
    };
    (1..=STEPS).map(point).collect()
}

impl Point {
    fn new(syn_per_s: f64, answers: &Document) -> Self {
        Self {
            offered_per_s: answers.offered_per_s(),
            syn_per_s,
            goodput_per_s: answers.goodput_per_s(),
            p50_ms: answers.main.latency_ms.p50,
            p99_ms: answers.main.latency_ms.p99,
        }
    }
}

/// The median of each figure over the rounds, point by point.
fn medians(rounds: &[Vec<Point>]) -> Vec<Point> {
    let count = rounds.iter().map(Vec::len).min().unwrap_or(0);
    let median = |index: usize, of: fn(&Point) -> Option<f64>| {
        let samples: Vec<f64> = rounds.iter().filter_map(|round| of(&round[index])).collect();
        median(&samples)
    };
    (0..count)
        .map(|index| Point {
            offered_per_s: median(index, |point| Some(point.offered_per_s)).unwrap_or(0.0),
            syn_per_s: median(index, |point| Some(point.syn_per_s)).unwrap_or(0.0),
            goodput_per_s: median(index, |point| Some(point.goodput_per_s)).unwrap_or(0.0),
            p50_ms: median(index, |point| point.p50_ms),
            p99_ms: median(index, |point| point.p99_ms),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_medians_of_their_rounds() {
        let point = |goodput_per_s, p99_ms| Point {
            offered_per_s: 100.0,
            syn_per_s: 5.0,
            goodput_per_s,
            p50_ms: None,
            p99_ms,
        };
        let rounds = [vec![point(1.0, None)], vec![point(9.0, Some(4.0))], vec![point(3.0, Some(2.0))]];
        let points = medians(&rounds);
        assert_eq!((points[0].goodput_per_s, points[0].p99_ms, points[0].p50_ms), (3.0, Some(3.0), None));
        assert!(medians(&[]).is_empty());
    }

    #[test]
    fn a_fit_without_predictions_is_no_pass() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        let fit = serde_json::json!({"fits": [{"error_predicted_max": 0.08, "slope": -0.01}]});
        add("flood", &fit, &mut outcome).expect("a prediction");
        assert_eq!(outcome.samples("flood", ERROR), [0.08]);
        let none = serde_json::json!({"fits": [{"error_predicted_max": null}]});
        assert!(add("flood", &none, &mut outcome).is_err());
    }
}
