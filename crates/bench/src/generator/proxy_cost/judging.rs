//! Proxies one after the other, and ours beside the cheapest of the others.
//!
//! This module owns the order of rounds and the words of bars. It must never measure.

use super::super::front::{Front, FrontPlan, Proxy};
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use std::net::SocketAddr;

/// Starts all proxies before one application. Who does not start is an error of the scenario, and the others
/// are measured all the same.
pub(super) fn start_all(
    behind: SocketAddr,
    plan: &FrontPlan,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Vec<Front> {
    let mut fronts = Vec::new();
    for proxy in Proxy::COMPARED {
        setting.step(&format!("starting {}", proxy.name()));
        match Front::start(proxy, behind, plan, setting) {
            Ok(front) => {
                outcome.note(front.describe(&setting.programs));
                fronts.push(front);
            }
            Err(error) => outcome.errors.push(format!("{}: {error}", proxy.name())),
        }
    }
    fronts
}

/// Measures running proxies in turn, round by round. Each goes first in its turn, so that no place in a round
/// favours one.
pub(super) fn in_rounds(
    mut fronts: Vec<Front>,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
    measure: impl Fn(&Front, &mut ScenarioOutcome) -> Result<(), String>,
) {
    for round in 1..=setting.rounds {
        for front in &fronts {
            let name = front.proxy.name();
            setting.step(&format!("round {round}, {name}"));
            if let Err(error) = measure(front, outcome) {
                outcome.errors.push(format!("{name}, round {round}: {error}"));
            }
        }
        if !fronts.is_empty() {
            fronts.rotate_left(1);
        }
    }
}

/// Measures proxies each of which is started anew, round by round.
pub(super) fn each_anew(
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
    measure: impl Fn(Proxy, &mut ScenarioOutcome) -> Result<(), String>,
) {
    setting.expect_steps(Proxy::COMPARED.len() * setting.rounds as usize);
    for round in 1..=setting.rounds {
        for proxy in Proxy::COMPARED {
            let name = proxy.name();
            setting.step(&format!("round {round}, {name}"));
            if let Err(error) = measure(proxy, outcome) {
                outcome.errors.push(format!("{name}, round {round}: {error}"));
            }
        }
    }
}

/// Judges a measure of ours by that of the cheapest of the others.
pub(super) fn judge_by_best(measure: &str, limit: f64, outcome: &mut ScenarioOutcome) {
    let peers = Proxy::PEERS.map(Proxy::name);
    let best = outcome.cheapest(&peers, measure);
    let words = best.map_or_else(String::new, |best| format!(" ({best})"));
    for proxy in Proxy::OURS {
        let samples = best.map_or_else(Vec::new, |best| outcome.ratios(proxy.name(), best, measure));
        let promise = format!("{measure}, of the best peer{words}");
        outcome.bars.push(Bar::judge(proxy.name(), &promise, Direction::AtMost, limit, "", samples));
    }
}
