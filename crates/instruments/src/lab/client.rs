//! `staunch lab client`: the standard client, and what it saw.
//!
//! It must never start a thread before the children are started: a copy of a process has one thread. And it
//! must never write anything on standard output beside a result that goes there.

use std::io::{IsTerminal as _, Write as _, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use staunch_lab::client::{CHILDREN_MAX, LOOPS_MAX, Plan, run as ask};
use staunch_lab::results::{AskedBy, ClientReport, Protocol};
use staunch_lab::wire::ANSWER_BYTES_MAX;
use staunch_loadgen::RunControl;
use staunch_loadgen::url::{Url, resolve};
use staunch_netio::{clock, descriptors};

use super::serve;
use crate::load::{Sink, end_on_signal};
use crate::units::{self, CpuList};

/// A run longer than this gets a bar.
const BAR_AFTER_MS: u64 = 2_000;

/// What stands at the end of the help.
const EXAMPLES: &str = "\
Examples:
  staunch lab client 127.0.0.1 8080 10 5000 4000   as the paper's `./client`
  staunch lab client 127.0.0.1 8080 10 5000 4000 --keep-alive
  staunch lab client 127.0.0.1 8080 100 5000 4000 --keep-alive --epoll   as wrk would ask
  staunch lab client 127.0.0.1 8080 10 5000 4000 --json -

Exit codes: 0 every answer came whole, 1 some did not, 2 wrong arguments.";

/// What the command line says.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Name or address of the server
    #[arg(value_name = "HOST")]
    host: String,

    /// Port that the server listens at
    #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,

    /// How many ask at a time
    #[arg(value_name = "CHILDREN", value_parser = clap::value_parser!(u32).range(1..=CHILDREN_MAX as i64))]
    children: u32,

    /// How many connections each child makes, one after the other; with --keep-alive, requests on one
    #[arg(value_name = "LOOPS", value_parser = clap::value_parser!(u64).range(1..=LOOPS_MAX))]
    loops: u64,

    /// How many bytes to ask for
    #[arg(value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=ANSWER_BYTES_MAX as i64))]
    bytes: u32,

    /// Let children be threads, not processes
    #[arg(long)]
    threads: bool,

    /// Ask for all children in loops over epoll, one per processor: cheapest, so that it limits a server last
    #[arg(long, conflicts_with = "threads")]
    epoll: bool,

    /// Speak HTTP/1.1, not the paper's protocol
    #[arg(long)]
    http: bool,

    /// Speak HTTP/1.1 and ask again on the same connection
    #[arg(long)]
    keep_alive: bool,

    /// Give a step up after so long: to be connected, to be answered
    #[arg(long, value_name = "TIME", value_parser = patience, default_value = "10s")]
    patience: Duration,

    /// Processors to run on, such as 0,2-5 [default: all]
    #[arg(long, value_name = "LIST", value_parser = units::cpu_list)]
    cpus: Option<CpuList>,

    /// Write what came as JSON; without a file, or with -, in place of the text
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// Asks, and says what came of it.
///
/// # Errors
/// What keeps it from asking, in one sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let plan = plan(arguments)?;
    serve::cpus(arguments.cpus.as_ref())?;
    let mut sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    // To fail is no harm: then there are fewer descriptors, and who gets none says so.
    let _ = descriptors::raise_descriptor_limit();
    let control = RunControl::default();
    end_on_signal(&control)?;
    let stop = control.stop_flag();
    let mut progress = Progress::new(plan.children as u64 * plan.loops);
    let asked = ask(&plan, &mut |done| {
        progress.show(done);
        !stop.load(Ordering::Relaxed)
    });
    progress.finish();
    let report = asked.map_err(|error| format!("cannot ask {}: {error}", plan.address))?;
    if let Some(sink) = &mut sink {
        let text = serde_json::to_string(&report).map_err(|error| error.to_string())?;
        sink.write(&format!("{text}\n"))?;
    }
    if arguments.json.as_deref() != Some(Path::new("-")) {
        // A reader that is gone is no reason to fail.
        let _ = stdout().lock().write_all(describe(&report, &plan).as_bytes());
    }
    Ok(if report.failed() > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn plan(arguments: &Arguments) -> Result<Plan, String> {
    let protocol = match (arguments.keep_alive, arguments.http) {
        (true, _) => Protocol::KeepAlive,
        (false, true) => Protocol::Http,
        (false, false) => Protocol::Paper,
    };
    let url =
        Url { host: arguments.host.clone(), secure: false, port: arguments.port, target: String::new() };
    Ok(Plan {
        address: resolve(&url).map_err(|fault| format!("HOST: {fault}"))?,
        children: arguments.children as usize,
        loops: arguments.loops,
        bytes: arguments.bytes as usize,
        protocol,
        client: match (arguments.threads, arguments.epoll) {
            (true, _) => AskedBy::Threads,
            (false, true) => AskedBy::Epoll,
            (false, false) => AskedBy::Processes,
        },
        patience: arguments.patience,
    })
}

/// A time to wait; none at all would mean for ever to the kernel.
fn patience(text: &str) -> Result<Duration, String> {
    let patience = units::duration(text)?;
    if patience.is_zero() { Err("write a time above 0, such as 10s".into()) } else { Ok(patience) }
}

/// A bar for a run that takes long, if somebody watches.
struct Progress {
    loops: u64,
    began_ms: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    fn new(loops: u64) -> Self {
        Self { loops, began_ms: clock::now_ms(), bar: None }
    }

    fn show(&mut self, done: u64) {
        if clock::now_ms() - self.began_ms > BAR_AFTER_MS && stderr().is_terminal() {
            self.bar.get_or_insert_with(|| new_bar(self.loops)).set_position(done);
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(loops: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:32} {pos}/{len} {rate}, {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // What cannot be shown is not shown.
        let _ = write!(out, "{:.0}/s", state.per_sec());
    };
    ProgressBar::new(loops).with_style(style.with_key("rate", rate))
}

/// The report for people.
fn describe(report: &ClientReport, plan: &Plan) -> String {
    let wanted = plan.children as u64 * plan.loops;
    let ended = report.answered + report.failed();
    let per_s = |count: u64| if report.wall_s > 0.0 { count as f64 / report.wall_s } else { 0.0 };
    let mut text = format!("answered     {} of {wanted}", report.answered);
    if ended < wanted {
        text += &format!(" ({} were not asked any more)", wanted - ended);
    }
    text += &format!("\nconnections  {}, {:.0}/s\n", report.connections, per_s(report.connections));
    if plan.protocol == Protocol::KeepAlive {
        text += &format!("requests     {:.0}/s\n", per_s(report.answered));
    }
    for (index, (words, count)) in report.errors.iter().enumerate() {
        let title = if index == 0 { "failed" } else { "" };
        text += &format!("{title:<12} {count} {words}\n");
    }
    let megabytes_per_s = per_s(report.bytes) / 1e6;
    text += &format!("bytes        {}, {megabytes_per_s:.1} MB/s\n", report.bytes);
    text += &format!("time         {:.3} s\n{}", report.wall_s, describe_children(&report.child_s));
    let used_s = report.usage.user_s + report.usage.system_s;
    let share = if report.wall_s > 0.0 { 100.0 * used_s / report.wall_s } else { 0.0 };
    text += &format!(
        "own CPU      {share:.0} % of one (user {:.3} s, system {:.3} s), {:.1} us each loop\n",
        report.usage.user_s,
        report.usage.system_s,
        used_s * 1e6 / ended.max(1) as f64
    );
    text
}

/// How long children took; nothing where there is one only.
fn describe_children(seconds: &[f64]) -> String {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    match &sorted[..] {
        [] | [_] => String::new(),
        [fastest, .., slowest] => {
            let median = sorted[sorted.len() / 2];
            format!("children     fastest {fastest:.3} s, median {median:.3} s, slowest {slowest:.3} s\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(children: usize, protocol: Protocol) -> Plan {
        let address = ([127, 0, 0, 1], 8080).into();
        let patience = Duration::from_secs(10);
        let client = AskedBy::Processes;
        Plan { address, children, loops: 1000, bytes: 4000, protocol, client, patience }
    }

    #[test]
    fn a_report_in_words() {
        let mut report = ClientReport {
            wall_s: 0.5,
            answered: 2990,
            connections: 2995,
            errors: vec![("connection refused".into(), 7), ("short answer".into(), 3)],
            bytes: 11_960_000,
            child_s: vec![0.5, 0.4, 0.45],
            ..ClientReport::default()
        };
        report.usage.user_s = 0.05;
        report.usage.system_s = 0.2;
        let expected = "\
answered     2990 of 3000
connections  2995, 5990/s
failed       7 connection refused
             3 short answer
bytes        11960000, 23.9 MB/s
time         0.500 s
children     fastest 0.400 s, median 0.450 s, slowest 0.500 s
own CPU      50 % of one (user 0.050 s, system 0.200 s), 83.3 us each loop
";
        assert_eq!(describe(&report, &plan_of(3, Protocol::Paper)), expected);
    }

    #[test]
    fn a_run_that_was_ended_says_so() {
        let report = ClientReport { answered: 400, connections: 1, wall_s: 0.1, ..ClientReport::default() };
        let text = describe(&report, &plan_of(1, Protocol::KeepAlive));
        assert!(text.starts_with("answered     400 of 1000 (600 were not asked any more)\n"), "{text}");
        assert!(text.contains("\nrequests     4000/s\n") && !text.contains("children"), "{text}");
        let nothing = describe(&ClientReport::default(), &plan_of(2, Protocol::Http));
        assert!(nothing.starts_with("answered     0 of 2000") && !nothing.contains("NaN"), "{nothing}");
    }
}
