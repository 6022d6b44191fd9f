//! `cargo xtask test`: every test of the workspace, several suites at a time.
//!
//! A suite is one test program, as `cargo test` runs them one after the other. Most of them wait most of the
//! time: for deadlines, peers, emulated machines. It owns their order and the account; what a suite printed
//! stands in `target/tests/SUITE.log`, and is shown if it failed. It must never judge a test itself.
//!
//! Tests in a module `in_depth` are left to `make soak`: each such module says why.

mod parts;
mod processor;
mod remembered;
mod suite;

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
use remembered::Remembered;
use suite::Suite;

/// The module of tests that are left to `make soak`.
const IN_DEPTH: &str = "in_depth::";

/// Suites that take longest: they begin first, so that none of them is alone at the end.
const LONG: &[&str] = &[
    "kernels-modules",
    "kernels",
    "sites",
    "package",
    "live",
    "end_to_end",
    "gate-control",
    "browser",
    "lab",
    "life",
    "tls",
    "load",
];

/// What is built of every package: as `make build` has it.
const BUILT: [&str; 5] = ["--lib", "--bins", "--tests", "--example", "echo"];

/// Which suites, and how.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Suites to run; without any, all
    #[arg(value_name = "SUITE")]
    suites: Vec<String>,
    /// Suites at the same time
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Run also suites that passed before and of which nothing has changed since; with CI=true as well
    #[arg(long)]
    anew: bool,
}

/// What cargo says of something it built.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
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

/// What became of a suite.
#[derive(Clone, Copy, Default)]
struct Account {
    passed: usize,
    failed: usize,
    /// Those among the passed that did so before, in suites that are what they were.
    before: usize,
    /// What processors worked.
    seconds: f64,
}

impl Account {
    fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.before += other.before;
        self.seconds += other.seconds;
    }
}

/// What is built: test programs, and programs that they may run.
#[derive(Default)]
struct Built {
    suites: Vec<Suite>,
    programs: Vec<PathBuf>,
}

/// Builds and runs. The last line counts the tests; fails if one failed, or if there was none.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    match run_all(root, arguments) {
        Ok(account) => {
            if account.before > 0 {
                println!("{} passed before, in suites of which nothing has changed since", account.before);
            }
            println!("{:.0} s of processors", account.seconds);
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
    let Built { suites, programs } = build(root)?;
    let mut suites: Vec<Suite> = suites.into_iter().flat_map(parts::of).collect();
    if let Some(unknown) =
        arguments.suites.iter().find(|name| suites.iter().all(|suite| suite.name != **name))
    {
        return Err(format!("no suite is called {unknown}"));
    }
    suites.retain(|suite| arguments.suites.is_empty() || arguments.suites.contains(&suite.name));
    suites.sort_by_key(|suite| LONG.iter().position(|long| suite.name == *long).unwrap_or(LONG.len()));
    let logs = target(root).join("tests");
    fs::create_dir_all(&logs).map_err(|error| format!("{}: {error}", logs.display()))?;
    // Continuous integration judges by what it has seen itself.
    let is_anew = arguments.anew || std::env::var("CI").is_ok_and(|value| value == "true");
    let run = Run { remembered: Remembered::look(root, &logs, &suites, &programs), logs, is_anew };
    Ok(run.side_by_side(suites.into(), arguments.jobs.max(1)))
}

/// Builds every test program, and whatever the black-box tests find beside them.
fn build(root: &Path) -> Result<Built, String> {
    let mut command = cargo();
    command.args(["build", "--workspace", "--profile", "fast"]).args(BUILT);
    command.arg("--message-format=json-render-diagnostics").current_dir(root).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests cannot be built".into());
    }
    let mut built = Built::default();
    String::from_utf8_lossy(&output.stdout).lines().try_for_each(|line| read(line, &mut built))?;
    Ok(built)
}

/// Takes what a line of cargo's tells of.
fn read(line: &str, built: &mut Built) -> Result<(), String> {
    let message: Message =
        serde_json::from_str(line).map_err(|error| format!("cargo said `{line}`: {error}"))?;
    let Message { manifest_path: Some(manifest), target: Some(target), .. } = message else { return Ok(()) };
    if message.reason != "compiler-artifact" {
        return Ok(());
    }
    match message.executable {
        Some(program) if message.profile.is_some_and(|profile| profile.test) => {
            built.suites.push(suite(&manifest, &target, program));
        }
        Some(program) => built.programs.push(program),
        None if target.kind.iter().any(|kind| kind == "cdylib") => built.programs.extend(message.filenames),
        None => {}
    }
    Ok(())
}

fn suite(manifest: &Path, target: &Target, program: PathBuf) -> Suite {
    let folder = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
    let package = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_file = target.kind.iter().any(|kind| kind == "test");
    let name = match is_file {
        true if package == "tests" => target.name.clone(),
        true => format!("{package}-{}", target.name),
        false => format!("{package}-{}", target.kind.join("-")),
    };
    Suite { name, program, folder, words: Vec::new() }
}

/// What all suites of a run share.
struct Run {
    logs: PathBuf,
    /// What passed before; `None` where that cannot be known.
    remembered: Option<Remembered>,
    is_anew: bool,
}

impl Run {
    fn side_by_side(&self, suites: VecDeque<Suite>, jobs: usize) -> Account {
        let (waiting, account) = (Mutex::new(suites), Mutex::new(Account::default()));
        let take = || waiting.lock().ok().and_then(|mut waiting| waiting.pop_front());
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while let Some(suite) = take() {
                        let of_suite = self.account(&suite);
                        if let Ok(mut account) = account.lock() {
                            account.add(&of_suite);
                        }
                    }
                });
            }
        });
        account.into_inner().unwrap_or_default()
    }

    /// The account of a suite: what it was, or by running it.
    fn account(&self, suite: &Suite) -> Account {
        let remembered = self.remembered.as_ref();
        if let Some(passed) = remembered.filter(|_| !self.is_anew).and_then(|kept| kept.passed(suite)) {
            println!("{:<24} {passed:>4} passed before, unchanged", suite.name);
            return Account { passed, before: passed, ..Account::default() };
        }
        let account = self.run_suite(suite);
        if let Some(remembered) = remembered.filter(|_| account.failed == 0) {
            remembered.note(suite, account.passed);
        }
        account
    }

    /// Runs a suite, says how it ended, and shows what it printed if it failed.
    fn run_suite(&self, suite: &Suite) -> Account {
        let log = self.logs.join(format!("{}.log", suite.name));
        // tidy: allow(clock): how long a suite took is for people; nothing depends on it
        let begin = Instant::now();
        let (ended_well, seconds) = spawn(suite, &log).unwrap_or_else(|error| {
            println!("{}: {error}", suite.name);
            (false, 0.0)
        });
        let said = fs::read_to_string(&log).unwrap_or_default();
        let mut account = Account { seconds, ..count(&said) };
        if !ended_well && account.failed == 0 {
            account.failed = 1;
        }
        if account.failed > 0 {
            println!("{said}");
        }
        let Account { passed, failed, .. } = account;
        println!(
            "{:<24} {passed:>4} passed, {failed} failed, {:.1} s, {seconds:.1} s of processors",
            suite.name,
            begin.elapsed().as_secs_f64()
        );
        account
    }
}

/// Runs a program as `cargo test` does: in its package's folder, told of its package. Gives whether it ended
/// well, and the seconds of processors.
fn spawn(suite: &Suite, log: &Path) -> std::io::Result<(bool, f64)> {
    let file = File::create(log)?;
    let package = suite.folder.file_name().unwrap_or_default();
    let mut command = Command::new(&suite.program);
    command
        .args(["--skip", IN_DEPTH])
        .args(&suite.words)
        .current_dir(&suite.folder)
        .env("CARGO_MANIFEST_DIR", &suite.folder)
        .env("CARGO_PKG_NAME", package);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let (status, seconds) = processor::wait(&mut command.spawn()?)?;
    Ok((status.success(), seconds))
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
        let Account { passed, failed, .. } = count(said);
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
        let built = |kind, test| {
            let mut built = Built::default();
            read(&line(kind, test), &mut built).expect("a message");
            let names: Vec<String> = built.suites.into_iter().map(|suite| suite.name).collect();
            (names.concat(), built.programs.len())
        };
        assert_eq!(built("test", true), ("n".into(), 0));
        assert_eq!(built("lib", true), ("tests-lib".into(), 0));
        assert_eq!(built("bin", false), (String::new(), 1));
        assert!(read(r#"{"reason":"build-finished","success":true}"#, &mut Built::default()).is_ok());
        assert!(read("no message", &mut Built::default()).is_err());
    }
}
