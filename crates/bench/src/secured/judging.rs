//! Which servers are compared over TLS, and how ours is judged beside the others.
//!
//! It must never measure.

use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

/// Below this a server waits for its load, and is paid for waking up.
const BUSY_PERCENT_MIN: f64 = 90.0;

/// Notes that a server waited for its load, if it did.
pub(super) fn note_waiting(outcome: &mut ScenarioOutcome, name: &str, measure: &str, busy_percent: f64) {
    if busy_percent < BUSY_PERCENT_MIN {
        outcome.note(format!(
            "{name} waited for its load in some round, CPU 0 busy {busy_percent:.0} %: {measure}"
        ));
    }
}

/// The chosen servers that are compared over TLS.
pub(super) fn compared(setting: &Setting) -> Vec<ServerKind> {
    setting.chosen(&[&ServerKind::SECURED_PEERS[..], &ServerKind::OURS].concat())
}

/// The peer that has the smallest median of a measure, and a promise about it in words.
pub(super) fn best_peer(
    setting: &Setting,
    outcome: &ScenarioOutcome,
    measure: &str,
) -> (Option<&'static str>, String) {
    let peers = setting.chosen(&ServerKind::SECURED_PEERS);
    let peers: Vec<&'static str> = peers.into_iter().map(ServerKind::name).collect();
    let best = outcome.cheapest(&peers, measure);
    (best, format!("{measure}, of the best peer{}", best.map_or(String::new(), |name| format!(" ({name})"))))
}

/// Judges a measure of ours by that of the best peer.
pub(super) fn judge_by_best(setting: &Setting, outcome: &mut ScenarioOutcome, measure: &str, limit: f64) {
    let (best, words) = best_peer(setting, outcome, measure);
    judge_ratio(outcome, best, measure, &words, limit);
}

/// Judges a measure of ours by that of one peer.
pub(super) fn judge_by(outcome: &mut ScenarioOutcome, peer: ServerKind, measure: &str, limit: f64) {
    let words = format!("{measure}, of {}", peer.name());
    judge_ratio(outcome, Some(peer.name()), measure, &words, limit);
}

fn judge_ratio(outcome: &mut ScenarioOutcome, rival: Option<&str>, measure: &str, words: &str, limit: f64) {
    for kind in ServerKind::OURS {
        let samples = rival.map_or_else(Vec::new, |rival| outcome.ratios(kind.name(), rival, measure));
        outcome.bars.push(Bar::judge(kind.name(), words, Direction::AtMost, limit, "", samples));
    }
}

/// Judges what two measures of ours make together, round by round.
pub(super) fn judge_together(
    outcome: &mut ScenarioOutcome,
    (measure, other): (&str, &str),
    words: &str,
    (limit, unit): (f64, &str),
    together: fn(f64, f64) -> f64,
) {
    for kind in ServerKind::OURS {
        let name = kind.name();
        let pairs = outcome.samples(name, measure).iter().zip(outcome.samples(name, other));
        let samples = pairs.map(|(one, other)| together(*one, *other)).collect();
        outcome.bars.push(Bar::judge(name, words, Direction::AtMost, limit, unit, samples));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_measures_are_judged_round_by_round() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        for (secured, plain) in [(9.0, 7.5), (8.0, 7.0)] {
            outcome.add("staunch uring", "secured", "us", secured);
            outcome.add("staunch uring", "plain", "us", plain);
        }
        judge_together(&mut outcome, ("secured", "plain"), "above", (2.0, "us"), |one, other| one - other);
        let samples: Vec<&[f64]> = outcome.bars.iter().map(|bar| &bar.samples[..]).collect();
        assert_eq!(samples, [&[1.5, 1.0][..], &[]]);
    }
}
