//! The scenario `kill9`: a hundred times killed under load, and started again at once.
//!
//! It owns the bar: every start succeeds.
use std::thread;
use std::time::Instant;

use super::lasting::{Lasting, PATH};
use crate::generator;
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

const KILLS: u32 = 100;
/// As long as the load goes on: longer than all starts take.
const SECONDS: u32 = 40;
const RATE: u32 = 5_000;
const CONNECTIONS: u32 = 200;
const STARTED: &str = "starts that succeeded";

/// Runs the scenario: once for each way to the network.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "kill9",
        "killed with signal 9 under load 100 times, each time started again at once",
    );
    let kinds = setting.chosen(&ServerKind::OURS);
    setting.expect_steps(kinds.len());
    for kind in kinds {
        setting.step(kind.name());
        if let Err(error) = measure(kind, setting, &mut outcome) {
            outcome.errors.push(format!("{}: {error}", kind.name()));
        }
        outcome.judge(kind.name(), STARTED, Direction::AtLeast, f64::from(KILLS), "");
    }
    outcome
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let mut server = Lasting::start(setting, kind)?;
    let url = server.url(PATH);
    let name = kind.name();
    thread::scope(|scope| {
        let load = scope.spawn(|| generator::kept(setting, &url, RATE, CONNECTIONS, SECONDS));
        let mut started_well = 0;
        for number in 0..KILLS {
            server.signal("-KILL")?;
            server.wait_end()?;
            let started = Instant::now();
            server.start_again().map_err(|error| format!("start {number}: {error}"))?;
            started_well += 1;
            outcome.add(name, "start to first answer", "ms", started.elapsed().as_secs_f64() * 1000.0);
        }
        outcome.add(name, STARTED, "", f64::from(started_well));
        let beside = load.join().map_err(|_| "the load's thread panicked".to_owned())??;
        outcome.note(format!("{name}, the load beside: {}", beside.words));
        Ok(())
    })
}
