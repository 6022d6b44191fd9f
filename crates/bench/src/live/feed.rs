//! The scenario of a feed: how many updates one connection can publish when nobody reads.
//!
//! This file owns the lines of the feed and the check that each was answered. curl sends the lines, as a
//! publisher would.
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::fan_server::{FanOut, TOKEN, available, name};
use super::rounds::measure_all;
use crate::load;
use crate::process::Usage;
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

const VALUE_BYTES: usize = 200;
/// As many as the bars ask for in a second.
const LINES_PER_S: u32 = 100_000;
const KEPT_LINES_PER_S: u32 = 20_000;
const RATE: &str = "updates in a feed";
const COST: &str = "CPU per update";
const KEPT_RATE: &str = "updates in a feed, each on the disk before its answer";
const KEPT_COST: &str = "CPU per update, each on the disk";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "updates of 200 bytes in one feed of lines of JSON, no readers";
    let mut outcome = ScenarioOutcome::new("live-feed", title);
    let kinds = available(&ServerKind::OURS, setting, &mut outcome);
    let word = |is_kept| if is_kept { ", kept" } else { "" }.to_owned();
    measure_all(&kinds, &[false, true], word, measure, setting, &mut outcome);
    for kind in kinds {
        outcome.judge(name(kind), RATE, Direction::AtLeast, f64::from(LINES_PER_S), "/s");
        outcome.judge(name(kind), KEPT_RATE, Direction::AtLeast, f64::from(KEPT_LINES_PER_S), "/s");
    }
    outcome
}

fn measure(
    kind: ServerKind,
    is_kept: bool,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let state = setting.scratch.join("run/live-state");
    // What an earlier run has left: it may not be there.
    let _ = fs::remove_dir_all(&state);
    fs::create_dir_all(&state).map_err(|error| format!("{}: {error}", state.display()))?;
    let folder = state.to_string_lossy();
    let kept = ["--live-state", &*folder, "--live-sync", "always"];
    let server = FanOut::start(kind, setting, if is_kept { &kept } else { &[] })?;
    let lines = setting.seconds * if is_kept { KEPT_LINES_PER_S } else { LINES_PER_S };
    let (feed, answers) = (feed(lines, setting)?, setting.scratch.join("feed.answers"));
    let before = Usage::of(server.id());
    let seconds = send(&server, &feed, &answers)?;
    let spent_ns = Usage::of(server.id()).since_ns(&before);
    check(&fs::read_to_string(&answers).map_err(|error| error.to_string())?, lines)?;
    let (rate, cost) = if is_kept { (KEPT_RATE, KEPT_COST) } else { (RATE, COST) };
    outcome.add(name(kind), rate, "/s", f64::from(lines) / seconds);
    outcome.add(name(kind), cost, "us", spent_ns as f64 / 1000.0 / f64::from(lines));
    outcome.note(format!("{}: {}", name(kind), server.command));
    Ok(())
}

/// A file of so many publications, a line each.
fn feed(lines: u32, setting: &Setting) -> Result<PathBuf, String> {
    let path = setting.scratch.join("feed.ndjson");
    let fault = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = BufWriter::new(fs::File::create(&path).map_err(fault)?);
    for number in 0..lines {
        writeln!(file, "{{\"topic\":\"feed\",\"data\":\"{number:0VALUE_BYTES$}\"}}").map_err(fault)?;
    }
    file.flush().map_err(fault)?;
    Ok(path)
}

/// Sends the feed. Returns how long it took until the last answer, in seconds.
fn send(server: &FanOut, feed: &Path, answers: &Path) -> Result<f64, String> {
    let mut command = Command::new("taskset");
    command.args(["-c", &format!("1-{}", load::processors().end()), "curl", "-sS", "-X", "POST"]);
    command.args(["-H", &format!("Authorization: Bearer {TOKEN}"), "-H", "Expect:"]);
    command.args(["-H", "Content-Type: application/x-ndjson", "-H", "Transfer-Encoding: chunked"]);
    command.args(["-w", "%{http_code} %{time_total}", "-T"]).arg(feed).arg("-o").arg(answers);
    let output = command.arg(server.url("/publish")).output().map_err(|error| format!("curl: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let seconds = said.strip_prefix("200 ").and_then(|seconds| seconds.trim().parse().ok());
    seconds.ok_or_else(|| format!("curl: {said} {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Whether each line was answered by a version.
fn check(answers: &str, lines: u32) -> Result<(), String> {
    let good = answers.lines().filter(|line| line.contains("\"version\":\"")).count();
    if good == lines as usize {
        return Ok(());
    }
    let other = answers.lines().find(|line| !line.contains("\"version\":\"")).unwrap_or("");
    Err(format!("{good} of {lines} updates were published; first other answer: {other}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_that_was_refused_is_seen() {
        let good = "{\"line\":1,\"version\":\"a-1\",\"readers\":0}\n";
        assert_eq!(check(good, 1), Ok(()));
        assert!(check(good, 2).is_err());
        let error = check(&format!("{good}{{\"line\":2,\"status\":503}}\n"), 2).expect_err("refused");
        assert!(error.ends_with("\"status\":503}"), "{error}");
    }
}
