//! `staunch kernel trace`: where the time of khttpd's requests goes, by the kernel's own tracing.
//!
//! The command records trace points first and the function graph then, and reports what they show. Tracing
//! must never stay switched on. What a kernel does not offer must be named in the report, never guessed.

mod creation;
mod delays;
mod graph;
mod line;
mod page;
mod part;
mod report;
mod requests;
mod tracefs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, value_parser};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use staunch_netio::clock;
use staunch_program::{Failure, output};

use self::creation::Creations;
use self::graph::Graph;
use self::line::TraceEvent;
use self::report::{GraphReport, TraceReport};
use self::requests::Seen;
use self::tracefs::{EventFilter, Tracefs};
use super::module::{NAME, NOT_LOADED};

/// The module's trace points, by their names without `khttpd_`.
const POINTS: [&str; 9] = ["accept", "wake", "request", "hit", "miss", "answer", "expire", "close", "leave"];
/// The scheduler's trace point that a processor turns to another thread: its group and its name.
const SWITCH: EventFilter<'_> = EventFilter { group: "sched", name: "sched_switch", filter: "" };
/// The part of the time, at its end, in which the function graph is recorded: the smaller one, for that slows
/// all requests.
const GRAPH_SHARE: f64 = 0.2;
/// How often it is looked whether a signal has come.
const STEP: Duration = Duration::from_millis(20);

/// The flags of `staunch kernel trace`.
#[derive(Args)]
pub(super) struct Arguments {
    /// How long to watch
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,

    /// Tell how long it takes until a thread or a work item serves a new connection
    #[arg(long)]
    threads: bool,

    /// Write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Records for so long, and prints the report.
///
/// # Errors
/// The module is not loaded, the host has no tracefs for this user, or a file cannot be written.
pub(super) fn run(arguments: &Arguments, host: &Path) -> Result<ExitCode, Failure> {
    let mode = mode(host)?;
    let tracefs = Tracefs::find(host)?;
    let whole = Duration::from_secs(arguments.seconds.into());
    let graph_time = whole.mul_f64(GRAPH_SHARE);
    let ended = ended_by_signal()?;
    let mut report = events(&tracefs, mode, whole - graph_time, arguments.threads, &ended)?;
    match functions(&tracefs, host, graph_time, &ended) {
        Ok(graph) => report.graph = Some(graph),
        Err(why) => report.missing.push(why),
    }
    tell(&report, arguments)
}

/// Prints the report, and writes the page.
fn tell(report: &TraceReport, arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(file) = &arguments.html {
        let threads = if arguments.threads { " --threads" } else { "" };
        let (seconds, name) = (arguments.seconds, file.display());
        let command = format!("staunch kernel trace --seconds {seconds}{threads} --html {name}");
        let written = fs::write(file, page::html(report, &command));
        written.map_err(|error| format!("{name}: {error}"))?;
    }
    if arguments.json {
        let text = serde_json::to_string(report).map_err(|error| error.to_string())?;
        output::print(&format!("{text}\n"));
    } else {
        output::print(&(report.lines().join("\n") + "\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The module's parameter `mode`; fails if the module is not loaded.
fn mode(host: &Path) -> Result<String, Failure> {
    let path = host.join("sys/module").join(NAME).join("parameters/mode");
    let mode = fs::read_to_string(path).map_err(|_| Failure {
        code: NOT_LOADED,
        text: format!("{NAME} is not loaded: `staunch kernel load --root DIR` loads it"),
    })?;
    Ok(mode.trim().to_owned())
}

/// A flag that becomes true at a signal that would end the program: the signal ends the recording instead.
fn ended_by_signal() -> Result<Arc<AtomicBool>, Failure> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(|error| error.to_string())?;
    }
    Ok(ended)
}

/// Records events for so long, and reports what they show.
fn events(
    tracefs: &Tracefs,
    mode: String,
    time: Duration,
    threads: bool,
    ended: &AtomicBool,
) -> Result<TraceReport, Failure> {
    let names = POINTS.map(|name| format!("{NAME}_{name}"));
    let points = names.iter().map(|name| EventFilter { group: NAME, name, filter: "" });
    let making = creation::EVENTS.into_iter().filter(|_| threads);
    // The scheduler's is switched on last.
    let wanted = points.chain(making).chain([SWITCH]);
    let (there, lacking): (Vec<_>, Vec<_>) = wanted.partition(|event| tracefs.has_event(event));
    let mut missing: Vec<String> =
        lacking.iter().map(|event| format!("the event {}:{}", event.group, event.name)).collect();

    let mut recording = tracefs.events(&there)?;
    let begin_ns = clock::now_ns();
    pass(time, ended);
    let seconds = Duration::from_nanos(clock::now_ns() - begin_ns).as_secs_f64();
    let (mut seen, mut creations, mut lost) = (Seen::default(), Creations::default(), 0);
    recording.read(|line| match TraceEvent::read(line) {
        Some(event) => {
            seen.take(&event);
            creations.take(&event);
        }
        None => lost += line::lost(line).unwrap_or(0),
    })?;
    if lost > 0 {
        missing.push(format!("{lost} events, for which the buffer was too small: the last ones are seen"));
    }
    let switches = there.iter().any(|event| event.name == SWITCH.name);
    let creation = threads.then(|| creations.report());
    Ok(TraceReport { missing, creation, ..TraceReport::of(mode, seconds, seen, switches) })
}

/// Records the function graph for so long, and reports what it shows; or says why there is none.
fn functions(
    tracefs: &Tracefs,
    host: &Path,
    time: Duration,
    ended: &AtomicBool,
) -> Result<GraphReport, String> {
    if mode(host).is_err() {
        return Err(format!("{NAME} was unloaded meanwhile, and what it had told went with it"));
    }
    if ended.load(Ordering::Relaxed) {
        return Err("the function graph: a signal came before it".to_owned());
    }
    if let Some(obstacle) = tracefs.obstacle_of_graph() {
        return Err(obstacle);
    }
    let mut recording = tracefs.graph().map_err(|error| format!("the function graph: {error}"))?;
    pass(time, ended);
    let mut graph = Graph::default();
    recording.read(|line| graph.take(line)).map_err(|error| format!("the function graph: {error}"))?;
    Ok(GraphReport::of(&graph))
}

/// Returns after so long, or at a signal.
fn pass(time: Duration, ended: &AtomicBool) {
    let end_ns = clock::now_ns() + time.as_nanos() as u64;
    while !ended.load(Ordering::Relaxed) && clock::now_ns() < end_ns {
        clock::pause(STEP);
    }
}
