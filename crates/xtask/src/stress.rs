//! `cargo xtask stress-tests`: the whole suite again and again while every processor is kept busy by
//! something else. A test that fails then has waited for a time instead of for what it awaits.
//!
//! It owns the load beside the tests and the account of what failed. It must never stop at a failure, and is
//! no part of CI: it takes as many times longer as it has rounds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::Args;

use crate::running;

/// How often, and which tests.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How often the suite runs
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Threads that do nothing but take processor time [default: one per processor]
    #[arg(long, value_name = "N")]
    busy: Option<usize>,
    /// Words for `cargo test`, in place of `--workspace`
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Failed tests, and the rounds in which each failed.
type Failures = BTreeMap<String, Vec<u32>>;

/// Runs the rounds. Fails if any test failed in any of them, or if there was none.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    match rounds(root, arguments) {
        Ok(failures) if failures.is_empty() => {
            println!("stress-tests: no test failed in {} rounds", arguments.rounds);
            ExitCode::SUCCESS
        }
        Ok(failures) => {
            for (test, rounds) in &failures {
                let numbers: Vec<String> = rounds.iter().map(u32::to_string).collect();
                println!("stress-tests: {test} failed in rounds {}", numbers.join(", "));
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("stress-tests: {error}");
            ExitCode::FAILURE
        }
    }
}

fn rounds(root: &Path, arguments: &Arguments) -> Result<Failures, String> {
    // Built before anything takes the processors: what is tested is not the compiler.
    let built = cargo(root).args(["build", "--workspace", "--profile", "fast"]).status();
    let ready = test(root, arguments, &["--no-run"]).status();
    if ![built, ready].into_iter().all(|status| status.is_ok_and(|status| status.success())) {
        return Err("the tests cannot be built".to_owned());
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..arguments.busy.unwrap_or(processors) {
            scope.spawn(|| keep_busy(&is_over));
        }
        let failures = all_rounds(root, arguments);
        is_over.store(true, Ordering::Relaxed);
        failures
    })
}

fn keep_busy(is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

fn all_rounds(root: &Path, arguments: &Arguments) -> Result<Failures, String> {
    let folder = running::target(root).join("stress");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut failures = Failures::new();
    for round in 1..=arguments.rounds {
        let log = folder.join(format!("round-{round}.log"));
        let (passed, failed) =
            one_round(root, arguments, &log).map_err(|error| format!("cargo test: {error}"))?;
        println!("stress-tests: round {round}: {passed} passed, {} failed ({})", failed.len(), log.display());
        if passed + failed.len() == 0 {
            return Err("no test was run".to_owned());
        }
        for test in failed {
            println!("stress-tests: round {round}: {test}");
            failures.entry(test).or_default().push(round);
        }
    }
    Ok(failures)
}

/// How many tests passed, and which failed. What was printed is kept in `log`.
fn one_round(root: &Path, arguments: &Arguments, log: &Path) -> io::Result<(usize, Vec<String>)> {
    let mut kept = File::create(log)?;
    let (reader, writer) = io::pipe()?;
    let mut command = test(root, arguments, &[]);
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command holds ends of the pipe, which would never be read to its end.
    drop(command);
    let mut result = Ok(());
    let account = account(BufReader::new(reader).lines().map_while(Result::ok).inspect(|line| {
        if result.is_ok() {
            result = writeln!(kept, "{line}");
        }
    }));
    child.wait()?;
    result?;
    Ok(account)
}

fn cargo(root: &Path) -> Command {
    let mut command = running::cargo();
    command.current_dir(root);
    command
}

/// The tests, with further `options` for cargo: behind a `--` of the words they would be the tests'.
fn test(root: &Path, arguments: &Arguments, options: &[&str]) -> Command {
    let mut command = cargo(root);
    command.args(["test", "--profile", "fast", "--no-fail-fast"]).args(options);
    if arguments.words.is_empty() {
        command.arg("--workspace");
    }
    command.args(&arguments.words);
    command
}

/// Reads what `cargo test` prints: the program that runs, then a line per test.
fn account(lines: impl Iterator<Item = String>) -> (usize, Vec<String>) {
    let (mut program, mut passed, mut failed) = (String::new(), 0, Vec::new());
    for line in lines {
        let line = line.trim();
        if let Some(words) = line.strip_prefix("Running ").or_else(|| line.strip_prefix("Doc-tests ")) {
            program = words.split(" (").next().unwrap_or(words).to_owned();
        } else if let Some(test) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            failed.push(format!("{program}: {test}"));
        } else if line.starts_with("test ") && line.ends_with(" ... ok") {
            passed += 1;
        }
    }
    (passed, failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_with_its_program() {
        let said = "   Compiling a v1\n     Running unittests src/lib.rs (target/fast/deps/a-1)\n\
            test one ... ok\ntest two ... FAILED\ntest result: FAILED. 1 passed; 1 failed\n\
            \x20    Running tests/wire.rs (target/fast/deps/wire-2)\ntest two ... ok\n";
        let (passed, failed) = account(said.lines().map(str::to_owned));
        assert_eq!((passed, failed), (2, vec!["unittests src/lib.rs: two".to_owned()]));
    }

    #[test]
    fn busy_threads_end_when_told() {
        let is_over = AtomicBool::new(true);
        keep_busy(&is_over);
    }
}
