//! The scenario of a start with 100 000 files: time to the first answer, and memory once all is prepared.
//!
//! It owns nothing but the clock: the time runs from before the process is made to the last byte of its
//! first answer.
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::client::fetch;
use super::content;
use super::process::ProcessMemory;
use super::servers::Server;
use super::setting::Setting;
use super::setup::{ServerKind, Setup};
use crate::report::{Bar, Direction, ScenarioOutcome};

const FIRST_ANSWER: &str = "time to the first answer";
const MEMORY: &str = "resident memory when prepared";
const FIRST_ANSWER_MS_MAX: f64 = 200.0;
/// Given to ours as `--cache-size`.
const BUDGET_MIB: f64 = 64.0;
/// What the process may need beside prepared content: itself, its rings, and the index of 100 000 names.
const OVERHEAD_MIB: f64 = 32.0;
const PREPARATION_TIME_MAX: Duration = Duration::from_secs(120);
const FILE: u32 = 77_777;
const STATUS_PATH: &str = "/status.json";

/// Runs the scenario.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome =
        ScenarioOutcome::new("start", "a fresh process with 100 000 files (about 400 MB, in the page cache)");
    let mut kinds = setting.for_files();
    kinds.retain(|kind| *kind != ServerKind::Floor);
    setting.expect_steps(1 + kinds.len() * setting.rounds as usize);
    setting.step("making 100 000 files");
    if let Err(error) = content::tree(&setting.scratch.join("tree")) {
        outcome.errors.push(error);
        return outcome;
    }
    for round in 1..=setting.rounds {
        for kind in &kinds {
            setting.step(&format!("round {round}, {}", kind.name()));
            if let Err(error) = measure(*kind, setting, &mut outcome) {
                outcome.errors.push(format!("{}, round {round}: {error}", kind.name()));
            }
        }
    }
    for kind in ServerKind::OURS {
        let (times, memory) = (
            outcome.samples(kind.name(), FIRST_ANSWER).to_vec(),
            outcome.samples(kind.name(), MEMORY).to_vec(),
        );
        let limit = BUDGET_MIB + OVERHEAD_MIB;
        let words = format!("{MEMORY} ({BUDGET_MIB} MiB of content and {OVERHEAD_MIB} MiB for the rest)");
        outcome.bars.push(Bar::judge(
            kind.name(),
            FIRST_ANSWER,
            Direction::AtMost,
            FIRST_ANSWER_MS_MAX,
            "ms",
            times,
        ));
        outcome.bars.push(Bar::judge(kind.name(), &words, Direction::AtMost, limit, "MiB", memory));
    }
    outcome
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("tree");
    let budget = format!("{BUDGET_MIB}MiB");
    let setup = Setup {
        arguments: &["--cache-size", &budget, "--status", STATUS_PATH],
        ..Setup::new(kind, &folder, "000/000.txt")
    };
    let mut server = Server::start(&setup, &setting.programs, &setting.scratch)?;
    server.wait_ready(&content::tree_path(FILE), &content::tree_body(FILE, 0))?;
    outcome.add(kind.name(), FIRST_ANSWER, "ms", server.first_answer_time().as_secs_f64() * 1000.0);
    if kind.is_ours() {
        wait_prepared(&server)?;
        let resident_bytes = ProcessMemory::of(server.id()).resident_bytes;
        outcome.add(kind.name(), MEMORY, "MiB", resident_bytes as f64 / f64::from(1 << 20));
        outcome.add(kind.name(), "time until all is prepared", "s", server.started.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Asks the status page until it says that preparation is done.
fn wait_prepared(server: &Server) -> Result<(), String> {
    let began = Instant::now();
    while began.elapsed() < PREPARATION_TIME_MAX {
        let reply = fetch(server.address, STATUS_PATH)?;
        let status: serde_json::Value =
            serde_json::from_slice(&reply.body).map_err(|error| format!("{STATUS_PATH}: {error}"))?;
        match status.pointer("/content/done").and_then(serde_json::Value::as_bool) {
            Some(true) => return Ok(()),
            Some(false) => sleep(Duration::from_millis(50)),
            None => return Err(format!("{STATUS_PATH} does not say content.done")),
        }
    }
    Err(format!("not prepared after {} s", PREPARATION_TIME_MAX.as_secs()))
}
