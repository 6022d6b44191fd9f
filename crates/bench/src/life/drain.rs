//! The scenario `drain`: TERM with 10 000 connections, busy ones and idle ones.
//!
//! It owns the bars: every answer under way is completed, and the end comes within the cap.
use std::fs::File;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::lasting::{Lasting, PATH, WORK_PATH};
use crate::crowd::{Crowd, Speech};
use crate::generator;
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

const CONNECTIONS: u32 = 10_000;
/// Less than the kernel takes in at once, so that no connection waits for the memory of others.
const FILE_BYTES: u64 = 100_000;
/// By then all have asked, and most wait for the rest of their answer.
const BEFORE_TERM: Duration = Duration::from_millis(1500);
const SECONDS: u32 = 30;
/// `drain_timeout` where nothing is said.
const CAP_S: f64 = 30.0;
const BROKEN: &str = "answers cut or destroyed";
const BUSY: &str = "until the end, 10 000 busy";
const IDLE: &str = "until the end, 10 000 idle";

/// Runs the scenario: once for each way to the network.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "TERM with 10 000 connections: all of them in the middle of an answer, or all idle";
    let mut outcome = ScenarioOutcome::new("drain", title);
    let kinds = setting.chosen(&ServerKind::OURS);
    setting.expect_steps(kinds.len() * 2);
    for kind in kinds {
        for (what, measure) in [("busy", busy as Measure), ("idle", idle)] {
            setting.step(&format!("{}, {what}", kind.name()));
            if let Err(error) = measure(kind, setting, &mut outcome) {
                outcome.errors.push(format!("{}, {what}: {error}", kind.name()));
            }
        }
        for (measure, limit, unit) in [(BROKEN, 0.0, ""), (BUSY, CAP_S, "s"), (IDLE, CAP_S, "s")] {
            outcome.judge(kind.name(), measure, Direction::AtMost, limit, unit);
        }
    }
    outcome
}

type Measure = fn(ServerKind, &Setting, &mut ScenarioOutcome) -> Result<(), String>;

fn busy(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let mut server = Lasting::start(setting, kind)?;
    let path = server.folder.join("site").join(&WORK_PATH[1..]);
    File::create(&path)
        .and_then(|file| file.set_len(FILE_BYTES))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let url = server.url(WORK_PATH);
    let (beside, taken) = thread::scope(|scope| {
        let load = scope.spawn(|| generator::once(setting, &url, CONNECTIONS, SECONDS));
        sleep(BEFORE_TERM);
        let taken = end(&mut server);
        let beside = load.join().map_err(|_| "the load's thread panicked".to_owned())?;
        Ok::<_, String>((beside?, taken?))
    })?;
    let name = kind.name();
    outcome.add(name, BROKEN, "", beside.broken as f64);
    outcome.add(name, BUSY, "s", taken.as_secs_f64());
    outcome.add(name, "answered", "", beside.answered as f64);
    outcome.note(format!("{name}, busy: {}", beside.words));
    Ok(())
}

fn idle(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let mut server = Lasting::start(setting, kind)?;
    let crowd = Crowd::gather(server.address.port(), Speech::Plain, PATH, CONNECTIONS)?;
    let taken = end(&mut server)?;
    crowd.disperse();
    outcome.add(kind.name(), IDLE, "s", taken.as_secs_f64());
    Ok(())
}

/// Ends it, and says how long it took.
fn end(server: &mut Lasting) -> Result<Duration, String> {
    server.signal("-TERM")?;
    let started = Instant::now();
    let status = server.wait_end()?;
    let taken = started.elapsed();
    if status.success() { Ok(taken) } else { Err(format!("it ended badly ({status}): {}", server.said())) }
}
