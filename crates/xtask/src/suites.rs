//! `cargo xtask test`: every test of the workspace, several suites at a time.
//!
//! A suite is one test program, as `cargo test` runs them one after the other. Most of them wait most of the
//! time: for deadlines, peers, emulated machines. It owns their order and the account; what a suite printed
//! stands in `target/tests/SUITE.log`, and is shown if it failed. It must never judge a test itself.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use clap::Args;
use serde::Deserialize;

use crate::running::{cargo, target};

/// Suites that take longest: they begin first, so that none of them is alone at the end.
const LONG: &[&str] =
    &["kernels", "package", "life", "pressure", "lab", "tls", "live", "gate-control", "load", "simulation"];

/// Suites that count what the whole host does, and so run when nothing else does.
const ALONE: &[&str] = &[];

/// Which suites, and how.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Suites to run; without any, all
    #[arg(value_name = "SUITE")]
    suites: Vec<String>,
    /// Suites at the same time
    #[arg(long, default_value_t = 3)]
    jobs: usize,
}

/// What cargo says of something it built.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A test program.
struct Suite {
    /// That of its file, behind the package's unless that is `tests`; for tests inside: `lib` or `bin`.
    name: String,
    program: PathBuf,
    /// The folder of its package, in which it runs.
    folder: PathBuf,
}

/// What became of a suite.
#[derive(Clone, Copy, Default)]
struct Account {
    passed: usize,
    failed: usize,
}

/// Builds and runs. The last line counts the tests; fails if one failed, or if there was none.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    match run_all(root, arguments) {
        Ok(account) => {
            println!("{} passed, {} failed", account.passed, account.failed);
            if account.failed == 0 && account.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("test: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(root: &Path, arguments: &Arguments) -> Result<Account, String> {
    let mut suites = build(root)?;
    if let Some(unknown) =
        arguments.suites.iter().find(|name| suites.iter().all(|suite| suite.name != **name))
    {
        return Err(format!("no suite is called {unknown}"));
    }
    suites.retain(|suite| arguments.suites.is_empty() || arguments.suites.contains(&suite.name));
    suites.sort_by_key(|suite| LONG.iter().position(|long| suite.name == *long).unwrap_or(LONG.len()));
    let logs = target(root).join("tests");
    fs::create_dir_all(&logs).map_err(|error| format!("{}: {error}", logs.display()))?;
    let (alone, together): (VecDeque<Suite>, VecDeque<Suite>) =
        suites.into_iter().partition(|suite| ALONE.contains(&&*suite.name));
    let first = run_side_by_side(together, arguments.jobs.max(1), &logs);
    let second = run_side_by_side(alone, 1, &logs);
    Ok(Account { passed: first.passed + second.passed, failed: first.failed + second.failed })
}

/// Builds every test program, and whatever the black-box tests find beside them.
fn build(root: &Path) -> Result<Vec<Suite>, String> {
    let mut command = cargo();
    command.args(["build", "--workspace", "--all-targets", "--profile", "fast"]);
    command.arg("--message-format=json-render-diagnostics").current_dir(root).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests cannot be built".into());
    }
    String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| read(line).transpose()).collect()
}

/// The suite of a line of cargo's, if that tells of one.
fn read(line: &str) -> Result<Option<Suite>, String> {
    let message: Message =
        serde_json::from_str(line).map_err(|error| format!("cargo said `{line}`: {error}"))?;
    let Message { manifest_path: Some(manifest), target: Some(target), executable: Some(program), .. } =
        message
    else {
        return Ok(None);
    };
    if message.reason != "compiler-artifact" || !message.profile.is_some_and(|profile| profile.test) {
        return Ok(None);
    }
    let folder = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
    let package = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_file = target.kind.iter().any(|kind| kind == "test");
    let name = match is_file {
        true if package == "tests" => target.name,
        true => format!("{package}-{}", target.name),
        false => format!("{package}-{}", target.kind.join("-")),
    };
    Ok(Some(Suite { name, program, folder }))
}

fn run_side_by_side(suites: VecDeque<Suite>, jobs: usize, logs: &Path) -> Account {
    let (waiting, account) = (Mutex::new(suites), Mutex::new(Account::default()));
    let take = || waiting.lock().ok().and_then(|mut waiting| waiting.pop_front());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(suite) = take() {
                    let of_suite = run_suite(&suite, logs);
                    if let Ok(mut account) = account.lock() {
                        account.passed += of_suite.passed;
                        account.failed += of_suite.failed;
                    }
                }
            });
        }
    });
    account.into_inner().unwrap_or_default()
}

/// Runs a suite, says how it ended, and shows what it printed if it failed.
fn run_suite(suite: &Suite, logs: &Path) -> Account {
    let log = logs.join(format!("{}.log", suite.name));
    // tidy: allow(clock): how long a suite took is for people; nothing depends on it
    let begin = Instant::now();
    let ended_well = spawn(suite, &log).unwrap_or_else(|error| {
        println!("{}: {error}", suite.name);
        false
    });
    let said = fs::read_to_string(&log).unwrap_or_default();
    let mut account = count(&said);
    if !ended_well && account.failed == 0 {
        account.failed = 1;
    }
    if account.failed > 0 {
        println!("{said}");
    }
    let Account { passed, failed } = account;
    println!(
        "{:<24} {passed:>4} passed, {failed} failed, {:.1} s",
        suite.name,
        begin.elapsed().as_secs_f64()
    );
    account
}

/// Runs a program as `cargo test` does: in its package's folder, told of its package.
fn spawn(suite: &Suite, log: &Path) -> std::io::Result<bool> {
    let file = File::create(log)?;
    let package = suite.folder.file_name().unwrap_or_default();
    let mut command = Command::new(&suite.program);
    command
        .current_dir(&suite.folder)
        .env("CARGO_MANIFEST_DIR", &suite.folder)
        .env("CARGO_PKG_NAME", package);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    Ok(command.status()?.success())
}

/// Adds up the lines with which a test program closes.
fn count(said: &str) -> Account {
    let mut account = Account::default();
    for line in said.lines().filter(|line| line.starts_with("test result:")) {
        let number = |word: &str| {
            let before = line.split([';', '.']).find_map(|part| part.trim().strip_suffix(word));
            before.and_then(|number| number.trim().parse::<usize>().ok()).unwrap_or(0)
        };
        account.passed += number("passed");
        account.failed += number("failed");
    }
    account
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_added_up() {
        let said = "running 16 tests\n\
                    test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 1 filtered out\n\
                    test result: ok. 1 passed; 0 failed; 0 ignored; finished in 0.00s\n";
        let Account { passed, failed } = count(said);
        assert_eq!((passed, failed), (13, 3));
        assert_eq!(count("nothing").passed, 0);
    }

    #[test]
    fn test_programs_are_told_from_what_else_is_built() {
        let line = |kind: &str, test: bool| {
            let target = format!(r#""target":{{"name":"n","kind":["{kind}"]}},"profile":{{"test":{test}}}"#);
            let paths = r#""manifest_path":"/p/tests/Cargo.toml","executable":"/p/n""#;
            format!(r#"{{"reason":"compiler-artifact",{paths},{target}}}"#)
        };
        let name = |kind, test| read(&line(kind, test)).expect("a message").map(|suite| suite.name);
        assert_eq!(name("test", true).as_deref(), Some("n"));
        assert_eq!(name("lib", true).as_deref(), Some("tests-lib"));
        assert_eq!(name("bin", false), None);
        assert!(matches!(read(r#"{"reason":"build-finished","success":true}"#), Ok(None)));
        assert!(read("no message").is_err());
    }
}
