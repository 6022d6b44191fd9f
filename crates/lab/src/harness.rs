//! Measures a plan: every row in turn, and again, each time with a server and a client of its own.
//!
//! Server and client are processes of this program (`lab serve`, `lab client`), so that what is measured is
//! what one can start by hand. It owns their lives. It must never draw, and never leave anything running.
//!
//! The order of a round: start the server, wait until it rests, read what it holds; run the client; wait
//! until the server rests again and holds no more than before; end it, and look for what it left.

mod pace;
mod round;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use rustix::process::{getpid, set_child_subreaper};
use staunch_netio::clock;
use staunch_netio::host::cpu;

use crate::limits::{Limits, check_cpus};
use crate::plan::Plan;
use crate::results::{AskedBy, Measured, MeasuredOn, Protocol, Results, Row, SCHEMA};
use pace::RoundPace;
use round::Bench;

/// What is measured, by what, where.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The program that serves and asks: this one.
    pub program: PathBuf,
    /// What is measured.
    pub plan: Plan,
    /// Where; its processors are those that server and client are tied to.
    pub machine: MeasuredOn,
    /// The command that measures the same again.
    pub command: String,
}

/// What is measured next.
#[derive(Debug, Clone, Copy)]
pub struct HarnessStep<'a> {
    /// The row of the plan.
    pub row: &'a Row,
    /// The round, from 1.
    pub round: u64,
    /// Steps that are done.
    pub done: u64,
    /// Steps of the whole run.
    pub all: u64,
    /// Seconds that are left for about; `None` until the first step is done.
    pub left_s: Option<f64>,
}

/// What came of it.
#[derive(Debug)]
pub struct PlanOutcome {
    /// What was measured, be it not all.
    pub results: Results,
    /// What went wrong, a sentence each with its row and round.
    pub faults: Vec<String>,
    /// Whether it was told to stop before the end.
    pub interrupted: bool,
}

/// Measures. `watch` is told of each step before it begins; when `stop` is set, the step under way is given
/// up, and what was measured until then is the outcome.
///
/// To be called by the first thread of a program with no other children: orphans of a server become its
/// own, so that none escapes.
///
/// # Errors
/// What keeps the first row from being begun: a processor that is not there, a limit of the system that the
/// plan does not fit into.
pub fn run(
    setup: &Setup,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&HarnessStep<'_>),
) -> Result<PlanOutcome, String> {
    let rows = setup.plan.scaled_rows();
    let bench = prepare(setup, &rows)?;
    let mut measured: Vec<Measured> =
        rows.iter().map(|row| Measured { row: row.clone(), rounds: Vec::new() }).collect();
    let (mut faults, mut interrupted) = (Vec::new(), false);
    let mut pace = RoundPace::new(&rows, setup.plan.rounds);
    'rounds: for round in 1..=setup.plan.rounds {
        for (index, entry) in measured.iter_mut().enumerate() {
            let row = &rows[index];
            let (done, all) = pace.steps();
            watch(&HarnessStep { row, round, done, all, left_s: pace.left_s() });
            let start_ns = clock::now_ns();
            match bench.measure(row, stop) {
                Ok(Some(measured)) => {
                    faults.extend(round::faults(row, &measured).map(|text| placed(row, round, &text)));
                    entry.rounds.push(measured);
                }
                Err(text) => faults.push(placed(row, round, &text)),
                Ok(None) => {
                    interrupted = true;
                    break 'rounds;
                }
            }
            pace.did(index, (clock::now_ns() - start_ns) as f64 / 1e9);
        }
    }
    Ok(PlanOutcome { results: results(setup, measured), faults, interrupted })
}

fn results(setup: &Setup, rows: Vec<Measured>) -> Results {
    Results {
        schema: SCHEMA,
        plan: setup.plan.name.clone(),
        command: setup.command.clone(),
        scale: setup.plan.scale,
        machine: setup.machine.clone(),
        rows,
    }
}

/// Everything that can be refused is refused here.
fn prepare<'a>(setup: &'a Setup, rows: &[Row]) -> Result<Bench<'a>, String> {
    let MeasuredOn { server_cpus, client_cpus, .. } = &setup.machine;
    let available = cpu::available_cpus().map_err(|error| format!("cannot list the processors: {error}"))?;
    check_cpus("processors of the server", server_cpus, &available)?;
    check_cpus("processors of the client", client_cpus, &available)?;
    let limits = Limits::here();
    rows.iter().try_for_each(|row| limits.check(row))?;
    set_child_subreaper(Some(getpid())).map_err(|error| format!("cannot inherit orphans: {error}"))?;
    // This process must not take time from the server; from the client only if no other processor is free.
    let is_free = |cpu: &usize| !server_cpus.contains(cpu) && !client_cpus.contains(cpu);
    let free: Vec<usize> = available.into_iter().filter(is_free).collect();
    let own = if free.is_empty() { client_cpus.clone() } else { free };
    Ok(Bench { program: &setup.program, server_cpus, client_cpus, own_cpus: own })
}

fn placed(row: &Row, round: u64, text: &str) -> String {
    format!("{}, round {round}: {text}", describe(row))
}

/// A row in words: `prefork (pool 10), 10 x 500, 4000 B, keep-alive, by epoll`.
pub fn describe(row: &Row) -> String {
    let Row { model, protocol, children, loops, bytes, pool, client } = row;
    let pool = if *pool > 0 { format!(" (pool {pool})") } else { String::new() };
    let protocol = match protocol {
        Protocol::Paper => "paper",
        Protocol::Http => "http",
        Protocol::KeepAlive => "keep-alive",
    };
    let client = match client {
        AskedBy::Processes => "",
        AskedBy::Threads => ", by threads",
        AskedBy::Epoll => ", by epoll",
    };
    format!("{model}{pool}, {children} x {loops}, {bytes} B, {protocol}{client}")
}
