//! The scenario without a clock: instructions per request of the session's path, counted by callgrind.
//!
//! It owns `bench/instructions.json`, what was recorded last. The driver is `session_path`, an example of
//! the server's crate that feeds request heads to a session and its handler without any input or output. It
//! is run for N and for 2 N requests: the difference, divided by N, knows nothing of its start. Starts differ
//! by a million instructions, so only the function that answers is counted where no other thread takes part.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::setting::Setting;
use crate::report::{Bar, Direction, ScenarioOutcome};

/// Instructions may rise by this factor before the bar is missed.
const GROWTH_MAX: f64 = 1.02;
/// So many that what two starts differ by, a million instructions or two, stays below the growth allowed.
const REQUESTS: u64 = 60_000;
/// The driver's function that answers, as callgrind names it.
const ANSWERING: &str = "session_path::answer_all";
const MEASURE: &str = "instructions per request";
const RECORD: &str = "bench/instructions.json";
/// Names of the driver's cases: a plain head, a browser's, those of six browsers in turn, a browser's of
/// which none is like another and which have to be read, sixteen small ones in one piece, and the first two
/// with an access log, whose thread is counted with the rest.
const CASES: [&str; 7] = ["plain", "browser", "browsers", "unlike", "pipelined", "logged", "logged-browser"];

/// Runs the scenario; with `setting.record` the counts become what later runs are judged by.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new("instructions", "the session's path alone, counted by callgrind");
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    setting.expect_steps(1 + CASES.len());
    setting.step("building the driver");
    let driver = build(setting)?;
    let recorded = read_record(&setting.root)?;
    let mut counted = BTreeMap::new();
    for case in CASES {
        setting.step(case);
        let (once, twice) =
            (count(&driver, case, REQUESTS, setting)?, count(&driver, case, 2 * REQUESTS, setting)?);
        let each = twice.saturating_sub(once) as f64 / REQUESTS as f64;
        outcome.add(case, MEASURE, "", each);
        counted.insert(case.to_owned(), each.round());
        let words = format!("{MEASURE}, {case}");
        let limit = recorded.get(case).map(|recorded| recorded * GROWTH_MAX);
        let samples = if limit.is_some() || setting.record { vec![each] } else { Vec::new() };
        let limit = if setting.record { each * GROWTH_MAX } else { limit.unwrap_or(0.0) };
        outcome.bars.push(Bar::judge("staunch", &words, Direction::AtMost, limit.ceil(), "", samples));
    }
    if setting.record {
        let text = serde_json::to_string_pretty(&counted).map_err(|error| error.to_string())?;
        fs::write(setting.root.join(RECORD), text + "\n").map_err(|error| format!("{RECORD}: {error}"))?;
    }
    Ok(())
}

/// The driver, and what is preloaded into it.
struct Driver {
    program: PathBuf,
    preload: PathBuf,
}

/// Builds the driver with its system calls through the C library, where `bench/openat2.c` can stand in for
/// the one that valgrind may not know. It gets a target folder of its own, so that nothing else is built
/// anew.
fn build(setting: &Setting) -> Result<Driver, String> {
    let preload = setting.scratch.join("openat2.so");
    let source = setting.root.join("bench/openat2.c");
    let flags = ["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o"];
    succeed(Command::new("cc").args(flags).arg(&preload).arg(source))?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = setting.scratch.join("counted");
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--release", "-p", "staunch-server", "--example", "session_path"]);
    command.current_dir(&setting.root).env("CARGO_TARGET_DIR", &target);
    succeed(command.env("RUSTFLAGS", "--cfg=rustix_use_libc"))?;
    Ok(Driver { program: target.join("release/examples/session_path"), preload })
}

/// Instructions of one whole run of the driver.
fn count(driver: &Driver, case: &str, requests: u64, setting: &Setting) -> Result<u64, String> {
    let file = setting.scratch.join(format!("callgrind.{case}"));
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind"]).arg(format!("--callgrind-out-file={}", file.display()));
    if !case.starts_with("logged") {
        command.arg(format!("--toggle-collect={ANSWERING}"));
    }
    command.arg(&driver.program).args([case, &requests.to_string()]);
    succeed(command.env("LD_PRELOAD", &driver.preload)).map_err(|error| format!("{case}: {error}"))?;
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    parse_total(&text).ok_or_else(|| format!("{}: no total", file.display()))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn parse_total(text: &str) -> Option<u64> {
    let line =
        text.lines().find_map(|line| line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:")));
    line?.split_ascii_whitespace().next()?.parse().ok()
}

fn read_record(root: &Path) -> Result<BTreeMap<String, f64>, String> {
    match fs::read_to_string(root.join(RECORD)) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{RECORD}: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(format!("{RECORD}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_callgrind_file_is_found() {
        assert_eq!(parse_total("version: 1\nevents: Ir\nsummary: 1234\n\nfn=x\n1 2\n"), Some(1234));
        assert_eq!(parse_total("fn=x\n\ntotals: 99\n"), Some(99));
        assert_eq!(parse_total(""), None);
    }
}
