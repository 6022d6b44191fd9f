//! `staunch lab run`: measures a plan, and writes what came of it.
//!
//! It owns arguments, the progress bar and the files. It must never run but in the first thread of the
//! program: servers and clients end with the thread that starts them.
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use staunch_lab::harness::{self, HarnessStep, PlanOutcome, Setup};
use staunch_lab::plan::{self, Plan};
use staunch_lab::report;
use staunch_lab::results::{MeasuredOn, Results};
use staunch_netio::clock;
use staunch_netio::host::cpu;
use staunch_program::output;

use crate::load::Sink;
use crate::units::{self, CpuList};

/// Exit code of a program ended by SIGINT.
const INTERRUPTED: u8 = 130;

/// What stands at the end of the help.
const NOTES: &str = "\
Plans:
  paper   the paper's table row by row, every model beside it, and HTTP
  quick   every model once in each protocol, in less than a minute
  full    children, pools and bytes through their ranges; takes long

A plan of your own is a file such as:
  rounds = 3
  [[row]]
  model = [\"prefork\", \"epoll-edge\"]    # or \"all\"
  protocol = \"paper\"                   # or http, keep-alive
  children = [1, 10]                   # a list stands for each of its values
  loops = 500
  bytes = 4000
  pool = 10                            # for the models that have one
  client = \"processes\"                 # or threads, epoll: what the client's children are

Ctrl-C ends it; what was measured until then is written.

Exit codes: 0 all went well, 1 something failed or was left behind, 2 wrong arguments, 130 interrupted.";

/// What the command line says.
#[derive(Args)]
#[command(after_help = NOTES)]
pub(crate) struct Arguments {
    /// What to measure: paper, quick or full, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "paper")]
    plan: PathBuf,

    /// Multiply the loops of all rows by this [default: as the plan says]
    #[arg(long, value_name = "X", value_parser = factor)]
    scale: Option<f64>,

    /// How often to measure every row [default: as the plan says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: Option<u64>,

    /// Processors of the server [default: the first this process may use]
    #[arg(long, value_name = "LIST", value_parser = units::cpu_list)]
    server_cpus: Option<CpuList>,

    /// Processors of the client [default: all others]
    #[arg(long, value_name = "LIST", value_parser = units::cpu_list)]
    client_cpus: Option<CpuList>,

    /// Write everything that was measured as JSON; `staunch lab report` reads it
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,

    /// Write a line for each round as CSV
    #[arg(long, value_name = "FILE|-")]
    csv: Option<PathBuf>,

    /// Write a page with plots that needs nothing else
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,
}

/// What makes the text of a file.
type Writer = fn(&Results) -> String;

/// Measures, and writes.
///
/// # Errors
/// A plan that cannot be read or carried out, a file that cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let plan = load(arguments)?;
    let setup = Setup {
        program: std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?,
        plan,
        machine: machine(arguments)?,
        command: command(),
    };
    let files = open(arguments)?;
    let outcome = measure(&setup)?;
    for (writer, mut sink) in files {
        sink.write(&writer(&outcome.results))?;
    }
    if !is_standard_output_taken(arguments) {
        // A reader that is gone is no reason to fail.
        let _ = io::stdout()
            .lock()
            .write_all(report::table(&outcome.results, console::colors_enabled()).as_bytes());
    }
    Ok(judge(&setup, &outcome))
}

/// Opens the files before anything is measured, so that none of it is lost to a wrong path.
fn open(arguments: &Arguments) -> Result<Vec<(Writer, Sink)>, String> {
    let files: [(&Option<PathBuf>, Writer); 3] =
        [(&arguments.json, json), (&arguments.csv, report::csv), (&arguments.html, report::page)];
    let wanted = files.into_iter().filter_map(|(path, writer)| Some((path.as_deref()?, writer)));
    if wanted.clone().filter(|(path, _)| *path == Path::new("-")).count() > 1 {
        return Err("only one result can go to standard output (-)".to_owned());
    }
    wanted.map(|(path, writer)| Ok((writer, Sink::open(path)?))).collect()
}

fn is_standard_output_taken(arguments: &Arguments) -> bool {
    let paths = [&arguments.json, &arguments.csv, &arguments.html];
    paths.into_iter().flatten().any(|path| path == Path::new("-"))
}

/// A line for each row: short enough to be kept, and to be read beside another run.
fn json(results: &Results) -> String {
    // A structure of numbers and words can always be written.
    let line = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
    let rows = results.rows.iter().map(|row| line(serde_json::to_string(row))).collect::<Vec<_>>();
    let head = line(serde_json::to_string(&Results { rows: Vec::new(), ..results.clone() }));
    let head = head.strip_suffix("[]}").unwrap_or(&head);
    format!("{head}[\n{}\n]}}\n", rows.join(",\n"))
}

/// The plan with what the command line says of it.
fn load(arguments: &Arguments) -> Result<Plan, String> {
    let path = &arguments.plan;
    let name = path.display().to_string();
    let mut plan = match Plan::bundled(&name) {
        Some(plan) => plan,
        None => match fs::read_to_string(path) {
            Ok(text) => Plan::parse(&name, &text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!("--plan: {}, and no file of this name", plan::unknown_name(&name)));
            }
            Err(error) => return Err(format!("--plan: {name}: {error}")),
        },
    };
    plan.scale = arguments.scale.unwrap_or(plan.scale);
    plan.rounds = arguments.rounds.unwrap_or(plan.rounds);
    Ok(plan)
}

/// Where it is measured. The server has a processor of its own, if there are two.
fn machine(arguments: &Arguments) -> Result<MeasuredOn, String> {
    let available = cpu::available_cpus().map_err(|error| format!("cannot list the processors: {error}"))?;
    let chosen = |wanted: &Option<CpuList>, default: &[usize]| {
        wanted.as_ref().map_or_else(|| default.to_vec(), |CpuList(cpus)| cpus.clone())
    };
    let first = &available[..available.len().min(1)];
    let server_cpus = chosen(&arguments.server_cpus, first);
    let others: Vec<usize> = available.iter().filter(|cpu| !server_cpus.contains(cpu)).copied().collect();
    let client_cpus = chosen(&arguments.client_cpus, if others.is_empty() { first } else { &others });
    if let Some(shared) = server_cpus.iter().find(|cpu| client_cpus.contains(cpu)) {
        output::remark(&format!(
            "staunch: WARNING: server and client share processor {shared}: they take it from each other, so \
             wall times say little, and rates nothing\n"
        ));
    }
    let here = staunch_loadgen::report::Machine::here();
    Ok(MeasuredOn {
        processor: here.processor,
        processors: here.processors,
        server_cpus,
        client_cpus,
        kernel: here.kernel,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        began: humantime::format_rfc3339_seconds(clock::unix_time()).to_string(),
    })
}

/// The command line, as it can be typed again.
fn command() -> String {
    let word = |argument: std::ffi::OsString| {
        let text = argument.to_string_lossy().into_owned();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
        if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{text}'") }
    };
    let words: Vec<String> =
        ["staunch".to_owned()].into_iter().chain(std::env::args_os().skip(1).map(word)).collect();
    words.join(" ")
}

/// Carries the plan out, with a bar for whoever watches. The first SIGINT or SIGTERM ends it in order.
fn measure(setup: &Setup) -> Result<PlanOutcome, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("cannot watch for signals: {error}"))?;
    }
    let style = ProgressStyle::with_template("{bar:24} {pos:>3}/{len} {elapsed:>4} {wide_msg}")
        .map_err(|error| error.to_string())?;
    let bar = ProgressBar::new(0).with_style(style);
    let outcome = harness::run(setup, &stop, &mut |step| show(&bar, setup.plan.rounds, step));
    bar.finish_and_clear();
    outcome
}

fn show(bar: &ProgressBar, rounds: u64, step: &HarnessStep<'_>) {
    bar.set_length(step.all);
    bar.set_position(step.done);
    let left = step.left_s.map_or_else(String::new, |left_s| {
        format!("{} left; ", humantime::format_duration(Duration::from_secs(left_s.ceil() as u64)))
    });
    bar.set_message(format!("{left}round {} of {rounds}: {}", step.round, harness::describe(step.row)));
}

/// Names what went wrong.
fn judge(setup: &Setup, outcome: &PlanOutcome) -> ExitCode {
    for fault in &outcome.faults {
        output::remark(&format!("staunch: {fault}\n"));
    }
    if outcome.interrupted {
        let done: usize = outcome.results.rows.iter().map(|row| row.rounds.len()).sum();
        let all = outcome.results.rows.len() as u64 * setup.plan.rounds;
        output::remark(&format!("staunch: interrupted: {done} of {all} measurements were made\n"));
        return ExitCode::from(INTERRUPTED);
    }
    if outcome.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| *factor > 0.0 && factor.is_finite());
    factor.ok_or_else(|| "write a factor above 0, such as 0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_of_the_help_is_one() {
        let (_, rest) = NOTES.split_once("such as:\n").expect("an example");
        let lines: Vec<&str> = rest.lines().take_while(|line| line.starts_with("  ")).collect();
        let plan = Plan::parse("help", &lines.join("\n")).expect("a plan");
        assert_eq!(plan.rows.len(), 4);
    }

    #[test]
    fn factors() {
        for (text, value) in [("1", 1.0), ("0.05", 0.05), ("20", 20.0)] {
            assert_eq!(factor(text), Ok(value));
        }
        for text in ["", "0", "-1", "x", "inf", "NaN"] {
            assert!(factor(text).is_err(), "{text}");
        }
    }
}
