//! The scenario of what an operator sees: the processor time of an access log, and of metrics.
//!
//! It owns the three ways in which the same server is started. They run at once and are measured in turn, so
//! that a slow change of the machine meets them all.
use super::content;
use super::load::WrkLoad;
use super::process::Usage;
use super::servers::Server;
use super::setting::Setting;
use super::setup::{ServerKind, Setup};
use crate::report::{Bar, Direction, ScenarioOutcome};

const COST: &str = "CPU per request";
/// A log may cost this factor, on a connection that is kept, with 5 000 bytes an answer.
const GROWTH_MAX: f64 = 1.03;
const FILE: &str = "5000.txt";
const PATH: &str = "/5000.txt";
const CONNECTIONS: u32 = 64;
/// Each measurement is preceded by this much unmeasured load.
const WARM_UP_S: u32 = 1;
/// What is added to a server's name, and to its flags.
const WAYS: [&str; 3] = ["", ", access log", ", metrics"];

/// Runs the scenario.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "a file of 5 000 bytes, 64 kept connections, without and with an access log and metrics";
    let mut outcome = ScenarioOutcome::new("access-log", title);
    let kinds = setting.chosen(&ServerKind::OURS);
    setting.expect_steps(kinds.len() * (setting.rounds as usize + 1));
    for kind in kinds {
        if let Err(error) = measure(kind, setting, &mut outcome) {
            outcome.errors.push(format!("{}: {error}", kind.name()));
        }
        for way in &WAYS[1..] {
            let name = format!("{}{way}", kind.name());
            let ratios = outcome.ratios(&name, kind.name(), COST);
            let promise = format!("{COST}, of the same without");
            outcome.bars.push(Bar::judge(&name, &promise, Direction::AtMost, GROWTH_MAX, "", ratios));
        }
    }
    outcome
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    setting.step(&format!("starting {}", kind.name()));
    let folder = setting.scratch.join("files");
    let body = content::small_file(&folder, FILE, 5000)?;
    let log = setting.scratch.join("access.log").display().to_string();
    let flags: [&[&str]; 3] = [&[], &["--access-log", &log], &["--admin", "127.0.0.1:0"]];
    let mut servers = Vec::new();
    for arguments in flags {
        let setup = Setup { arguments, ..Setup::new(kind, &folder, FILE) };
        servers.push(setting.start(&setup, PATH, &body)?);
    }
    for round in 1..=setting.rounds {
        setting.step(&format!("round {round}, {}", kind.name()));
        for (server, way) in servers.iter().zip(WAYS) {
            let cost_us = measure_once(server, setting)?;
            outcome.add(&format!("{}{way}", kind.name()), COST, "us", cost_us);
        }
    }
    for (server, way) in servers.iter().zip(WAYS) {
        outcome.note(format!("{}{way}: {}", kind.name(), server.command));
    }
    std::fs::remove_file(&log).map_err(|error| format!("{log}: {error}"))
}

fn measure_once(server: &Server, setting: &Setting) -> Result<f64, String> {
    let load = WrkLoad { connections: CONNECTIONS, seconds: setting.seconds, headers: &[], script: None };
    let url = server.url(PATH);
    WrkLoad { seconds: WARM_UP_S, ..load.clone() }.run(&url)?;
    let before = Usage::of(server.id());
    let answered = load.run(&url)?;
    let spent_ns = Usage::of(server.id()).since_ns(&before);
    Ok(spent_ns as f64 / 1000.0 / answered.requests as f64)
}
