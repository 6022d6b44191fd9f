//! The scenario `reload`: HUP every second for five minutes, while content and configuration change.
//!
//! It owns the bars: no request fails, no connection is dropped, memory does not grow.
use std::fs;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::lasting::{Lasting, PATH};
use crate::generator;
use crate::process::{ProcessMemory, growth};
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

const SECONDS: u32 = 300;
const RATE: u32 = 20_000;
const CONNECTIONS: u32 = 200;
const FAILED: &str = "requests failed";
const DROPPED: &str = "connections dropped";
const GROWTH: &str = "memory, last third of the middle one";

/// Runs the scenario: once for each way to the network.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "HUP every second for 5 minutes, content and configuration changing, 20 000 requests/s kept";
    let mut outcome = ScenarioOutcome::new("reload", title);
    let kinds = setting.chosen(&ServerKind::OURS);
    setting.expect_steps(kinds.len());
    for kind in kinds {
        setting.step(kind.name());
        if let Err(error) = measure(kind, setting, &mut outcome) {
            outcome.errors.push(format!("{}: {error}", kind.name()));
        }
        for (measure, limit) in [(FAILED, 0.0), (DROPPED, 0.0), (GROWTH, 1.05)] {
            outcome.judge(kind.name(), measure, Direction::AtMost, limit, "");
        }
    }
    outcome
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let server = Lasting::start(setting, kind)?;
    let url = server.url(PATH);
    let (beside, changed) = thread::scope(|scope| {
        let load = scope.spawn(|| generator::kept(setting, &url, RATE, CONNECTIONS, SECONDS));
        let changed = change(&server);
        let beside = load.join().map_err(|_| "the load's thread panicked".to_owned())?;
        Ok::<_, String>((beside?, changed?))
    })?;
    let reloads = server.said().matches("the configuration was read again").count();
    let name = kind.name();
    outcome.add(name, FAILED, "", (beside.broken + beside.refused) as f64);
    let more = beside.connections_begun.saturating_sub(u64::from(CONNECTIONS));
    outcome.add(name, DROPPED, "", (beside.connections_ended + more) as f64);
    outcome.add(name, GROWTH, "", growth(&changed).ok_or("too short to see memory grow")?);
    outcome.add(name, "reloads", "", reloads as f64);
    let largest = changed.iter().copied().max().unwrap_or(0);
    outcome.add(name, "memory, the most", "MiB", largest as f64 / f64::from(1 << 20));
    outcome.note(format!("{name}: {}", beside.words));
    if reloads + 5 < SECONDS as usize {
        return Err(format!("only {reloads} reloads were done: {}", server.said()));
    }
    Ok(())
}

/// Changes content and configuration once a second; resident memory after each.
fn change(server: &Lasting) -> Result<Vec<u64>, String> {
    let started = Instant::now();
    let process = server.process().ok_or("nobody serves")?;
    let mut resident_bytes = Vec::new();
    for round in 1..SECONDS {
        sleep((started + Duration::from_secs(round.into())).saturating_duration_since(Instant::now()));
        server.configure(round)?;
        let path = server.folder.join("site/changing.txt");
        fs::write(&path, round.to_string()).map_err(|error| format!("{}: {error}", path.display()))?;
        server.signal("-HUP")?;
        resident_bytes.push(ProcessMemory::of(process).resident_bytes);
    }
    Ok(resident_bytes)
}
