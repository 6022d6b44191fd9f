//! The scenario `load-open`: 100 000 requests a second by the clock, on kept connections, from one core.
//!
//! It owns the bar on the schedule's drift. oha is measured beside; of it no bar is asked, because it does
//! not say how far it is behind its schedule.
use std::time::Duration;

use staunch_loadgen::report::Document;

use super::running::{self, WatchedRun};
use super::tool::Tool;
use crate::account::{self, Account, lost};
use crate::content;
use crate::process;
use crate::reading::Said;
use crate::report::{Direction, ScenarioOutcome};
use crate::servers::Server;
use crate::setting::Setting;
use crate::setup::{ServerKind, Setup};

const TOOLS: [Tool; 3] = [Tool::Uring, Tool::Epoll, Tool::Oha];
const RATE_PER_S: u32 = 100_000;
const FILE: &str = "100.txt";
const FILE_BYTES: usize = 100;
const DRIFT_P999_MS_MAX: f64 = 1.0;

const DRIFT: &str = "drift p99.9";
const ANSWERED: &str = "answered per second";
const OFF_SCHEDULE: &str = "more or fewer than scheduled";
/// The request that is due at the very end of the run may count or not.
const OFF_SCHEDULE_MAX: f64 = 1.0;
const UNSENT: &str = "not sent, all connections being busy";
/// A request that was not sent was later than any limit: of a thousand one may be, as with the drift. A
/// server that pauses for 2.6 ms keeps all 256 connections busy.
const UNSENT_PERCENT_MAX: f64 = 0.1;
/// A few milliseconds are many short waits; tens are a task that kept the processor, and a cause of drift.
const SERVER_WAITED: &str = "server waited for its processor";
const LOST: &str = "sent and not rightly answered";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "load-open",
        "open loop, 100 000 scheduled requests a second, kept connections, one thread, against the floor",
    );
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    for tool in Tool::OURS {
        judge(tool.name(), &mut outcome);
    }
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    let (path, body) = (format!("/{FILE}"), content::small_file(&folder, FILE, FILE_BYTES)?);
    let server = setting.start(&Setup::new(ServerKind::Floor, &folder, FILE), &path, &body)?;
    let is_there = |tool: &Tool| *tool != Tool::Oha || setting.programs.oha.is_file();
    let mut tools: Vec<Tool> = TOOLS.into_iter().filter(is_there).collect();
    if tools.len() < TOOLS.len() {
        outcome.note("oha is not here, so it is left out: cargo xtask install --for bench".to_owned());
    }
    setting.expect_steps(tools.len() * setting.rounds as usize);
    for round in 1..=setting.rounds {
        for tool in &tools {
            setting.step(&format!("round {round}, {}", tool.name()));
            if let Err(error) = measure_once(*tool, &server, &path, setting, outcome) {
                outcome.errors.push(format!("{}, round {round}: {error}", tool.name()));
            }
        }
        // Each goes first in its turn, so that no place in a round favours one.
        tools.rotate_left(1);
    }
    server.check(&path, &body)
}

fn measure_once(
    tool: Tool,
    server: &Server,
    path: &str,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let (name, seconds) = (tool.name(), setting.seconds);
    let words = tool.open(&setting.programs, RATE_PER_S, seconds, &server.url(path));
    let waited_before_ns = process::waited_ns(server.id());
    let watched = running::run(&words, Duration::from_secs(seconds.into()), &setting.scratch)?;
    let waited_ns = process::waited_ns(server.id()).saturating_sub(waited_before_ns);
    outcome.note(format!("{name}: {}", words.join(" ")));
    watched.disturbance(name).into_iter().for_each(|note| outcome.note(note));
    let said = if Tool::OURS.contains(&tool) {
        let report = account::read(&watched.output)?;
        add_schedule(name, &report, u64::from(RATE_PER_S) * u64::from(seconds), outcome)?;
        report.answers()?
    } else {
        tool.read(&watched.output)?
    };
    add_answers(name, &said, &watched, outcome);
    outcome.add(name, SERVER_WAITED, "ms", waited_ns as f64 / 1e6);
    Ok(())
}

/// What ours says of its schedule.
fn add_schedule(
    name: &str,
    report: &Document,
    scheduled: u64,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let main = &report.main;
    let drift_ms = main.drift_ms.p999.ok_or("staunch load reports no drift")?;
    outcome.add(name, DRIFT, "ms", drift_ms);
    outcome.add(name, "drift, the longest", "ms", main.drift_ms.max.unwrap_or(drift_ms));
    outcome.add(name, OFF_SCHEDULE, "", main.offered.abs_diff(scheduled) as f64);
    outcome.add(name, UNSENT, "%", main.unsent as f64 * 100.0 / scheduled as f64);
    outcome.add(name, LOST, "", lost(main) as f64);
    report.warnings.iter().for_each(|warning| outcome.note(format!("{name} warns: {warning}")));
    Ok(())
}

fn add_answers(name: &str, said: &Said, watched: &WatchedRun, outcome: &mut ScenarioOutcome) {
    outcome.add(name, ANSWERED, "", said.per_second);
    outcome.add(name, "latency p50", "ms", said.p50_ms);
    outcome.add(name, "latency p99", "ms", said.p99_ms);
    if let Some(p999_ms) = said.p999_ms {
        outcome.add(name, "latency p99.9", "ms", p999_ms);
    }
    outcome.add(name, "generator's CPU per request", "us", watched.cost_us(said.answered));
}

fn judge(name: &str, outcome: &mut ScenarioOutcome) {
    outcome.judge(name, DRIFT, Direction::AtMost, DRIFT_P999_MS_MAX, "ms");
    outcome.judge(name, OFF_SCHEDULE, Direction::AtMost, OFF_SCHEDULE_MAX, "");
    outcome.judge(name, UNSENT, Direction::AtMost, UNSENT_PERCENT_MAX, "%");
    outcome.judge(name, LOST, Direction::AtMost, 0.0, "");
}

#[cfg(test)]
mod tests {
    use staunch_loadgen::Counts;

    use super::*;
    use crate::account::made_up;

    fn outcome(offered: u64, p999_ms: f64, unsent: u64) -> ScenarioOutcome {
        let mut report = made_up(1.0, Counts { offered, unsent, ..Counts::default() }, &[]);
        report.main.drift_ms.p999 = Some(p999_ms);
        let mut outcome = ScenarioOutcome::new("name", "title");
        add_schedule("ours", &report, 400_000, &mut outcome).expect("a drift");
        judge("ours", &mut outcome);
        outcome
    }

    #[test]
    fn the_schedule_is_kept_exactly_and_in_time_or_the_bar_is_missed() {
        assert!(outcome(400_000, 0.9, 0).passed());
        assert!(outcome(400_001, 0.9, 400).passed());
        assert!(!outcome(399_998, 0.9, 0).passed());
        assert!(!outcome(400_002, 0.9, 0).passed());
        assert!(!outcome(400_000, 1.1, 0).passed());
        assert!(!outcome(400_000, 0.9, 401).passed());
    }
}
