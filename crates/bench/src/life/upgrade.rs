//! The scenario `upgrade`: USR2 a hundred times, once of them with a program that does not serve.
//!
//! It owns the bar: no request fails.
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::lasting::{Lasting, PATH};
use crate::generator;
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

const UPGRADES: u32 = 100;
/// Before which of them one is tried with a broken program.
const BROKEN_BEFORE: u32 = 50;
const INTERVAL: Duration = Duration::from_millis(500);
/// All of them, and some time more for a busy machine.
const SECONDS: u32 = 80;
const RATE: u32 = 20_000;
const CONNECTIONS: u32 = 200;
const FAILED: &str = "requests failed";
const DONE: &str = "upgrades under load";

/// Runs the scenario: once for each way to the network.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "100 upgrades under 20 000 requests/s on kept connections, one more with a broken program";
    let mut outcome = ScenarioOutcome::new("upgrade", title);
    let kinds = setting.chosen(&ServerKind::OURS);
    setting.expect_steps(kinds.len());
    for kind in kinds {
        setting.step(kind.name());
        if let Err(error) = measure(kind, setting, &mut outcome) {
            outcome.errors.push(format!("{}: {error}", kind.name()));
        }
        outcome.judge(kind.name(), FAILED, Direction::AtMost, 0.0, "");
        outcome.judge(kind.name(), DONE, Direction::AtLeast, f64::from(UPGRADES), "");
    }
    outcome
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let server = Lasting::start(setting, kind)?;
    let url = server.url(PATH);
    let name = kind.name();
    let (beside, times) = thread::scope(|scope| {
        let load = scope.spawn(|| generator::kept(setting, &url, RATE, CONNECTIONS, SECONDS));
        let mut times = Vec::new();
        for number in 0..UPGRADES {
            if load.is_finished() {
                break;
            }
            if number == BROKEN_BEFORE {
                try_broken(&server)?;
            }
            let started = Instant::now();
            upgrade(&server)?;
            times.push(started.elapsed());
            sleep((started + INTERVAL).saturating_duration_since(Instant::now()));
        }
        let beside = load.join().map_err(|_| "the load's thread panicked".to_owned())?;
        Ok::<_, String>((beside?, times))
    })?;
    outcome.add(name, FAILED, "", (beside.broken + beside.refused) as f64);
    outcome.add(name, DONE, "", times.len() as f64);
    for time in times {
        outcome.add(name, "until the next one serves", "ms", time.as_secs_f64() * 1000.0);
    }
    outcome.note(format!("{name}: {}", beside.words));
    Ok(())
}

fn upgrade(server: &Lasting) -> Result<(), String> {
    let before = server.process();
    server.signal("-USR2")?;
    server.until("another process serves", |server| server.process().is_some_and(|now| Some(now) != before))
}

/// Puts a program in place that ends at once instead of serving; then the right one is put back.
fn try_broken(server: &Lasting) -> Result<(), String> {
    const FAILED: &str = "the upgrade failed, this process goes on";
    let right = fs::read(&server.program).map_err(|error| error.to_string())?;
    replace(server, b"#!/bin/sh\nexit 3\n")?;
    server.signal("-USR2")?;
    server.until("the broken one was noticed", |server| server.said().contains(FAILED))?;
    replace(server, &right)
}

/// As a package does: the program that runs keeps its own file.
fn replace(server: &Lasting, bytes: &[u8]) -> Result<(), String> {
    let beside = server.program.with_extension("new");
    fs::write(&beside, bytes)
        .and_then(|()| fs::set_permissions(&beside, Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&beside, &server.program))
        .map_err(|error| format!("{}: {error}", beside.display()))
}
