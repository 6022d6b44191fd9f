//! The rounds of a scenario: every server is measured in every way before any of them is measured again.
use super::fan_server::{available, name};
use crate::report::ScenarioOutcome;
use crate::setting::Setting;
use crate::setup::ServerKind;

/// Runs all rounds; what fails is told with its server, and the others go on. `word` is what tells a way from
/// the others, behind the name of the server.
pub(super) fn measure_all<W: Copy>(
    kinds: &[ServerKind],
    ways: &[W],
    word: impl Fn(W) -> String,
    measure: impl Fn(ServerKind, W, &Setting, &mut ScenarioOutcome) -> Result<(), String>,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) {
    setting.expect_steps(kinds.len() * ways.len() * setting.rounds as usize);
    for round in 1..=setting.rounds {
        for way in ways {
            for kind in kinds {
                let label = format!("{}{}", name(*kind), word(*way));
                setting.step(&format!("{label}, round {round}"));
                if let Err(error) = measure(*kind, *way, setting, outcome) {
                    outcome.errors.push(format!("{label}: {error}"));
                }
            }
        }
    }
}

/// A scenario that measures our servers in one way, and judges each.
pub(super) fn measure_ours(
    scenario: &str,
    title: &str,
    setting: &Setting,
    measure: impl Fn(ServerKind, &Setting, &mut ScenarioOutcome) -> Result<(), String>,
    judge: impl Fn(ServerKind, &mut ScenarioOutcome),
) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(scenario, title);
    let kinds = available(&ServerKind::OURS, setting, &mut outcome);
    let word = |()| String::new();
    measure_all(&kinds, &[()], word, |kind, (), set, out| measure(kind, set, out), setting, &mut outcome);
    kinds.into_iter().for_each(|kind| judge(kind, &mut outcome));
    outcome
}
