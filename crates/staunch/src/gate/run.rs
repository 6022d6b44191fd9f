//! The daemon as a program: signals, the block at its start, its end.
//!
//! It must never wake up while there is nothing to do: the loop is a thread of its own.

use std::fmt::Write as _;
use std::io;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use staunch_config::syntax::text::AdminAddress;
use staunch_gate::daemon::{Daemon, Event, Say};
use staunch_gate::snapshot::Snapshot;
use staunch_server::log::LineQueue;

use super::arguments::Protection;
use super::{log, metrics};

/// How long the end waits for the last lines.
const PATIENCE: Duration = Duration::from_millis(500);
/// What the thread of the loop sends when it ends by itself: a fault of ours.
const LOOP_ENDED: i32 = SIGQUIT;

/// Protects until it is ended.
///
/// # Errors
/// Why it cannot, in a sentence.
pub(super) fn run(protection: Protection) -> Result<ExitCode, String> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, LOOP_ENDED])
        .map_err(|error| format!("cannot watch for signals: {error}"))?;
    let (lines, block_lines) = queues().map_err(|error| format!("cannot write lines: {error}"))?;
    let say = log::say(Arc::clone(&lines), protection.json);
    let daemon = Daemon::start(protection.plan(), env!("CARGO_PKG_VERSION"), Arc::clone(&say))?;
    let served = protection
        .metrics
        .map(|address| metrics::serve(address, &protection.metrics_hosts, daemon.board()))
        .transpose()?;
    let block = block(&daemon, served.as_ref().map(|(address, _)| address));
    if protection.json {
        say(&Event { kind: "start", interface: None, port: None, text: one_line(&block) });
    } else {
        block_lines.say(block.trim_end());
    }
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let work = thread::Builder::new().name("gate".into()).spawn(move || {
        // When it panics somebody has to wake up.
        let _alarm = Alarm;
        daemon.run(&stopped);
    });
    let work = work.map_err(|error| format!("cannot start a thread: {error}"))?;
    wait(&mut signals, &say);
    stop.store(true, Relaxed);
    let ended = work.join();
    block_lines.finish(PATIENCE);
    lines.finish(PATIENCE);
    ended.map_err(|_| "the loop of the gate failed; the program was taken off".to_owned())?;
    Ok(ExitCode::SUCCESS)
}

/// Lines for standard error, where the form is that of an event, and for standard output.
fn queues() -> io::Result<(Arc<LineQueue>, LineQueue)> {
    let lines = io::stderr().as_fd().try_clone_to_owned()?;
    let lines = LineQueue::new(lines.into(), Box::new(|line| format!("{line}\n")), Arc::default());
    let block = LineQueue::of_standard_output(Arc::default())?;
    lines.start()?;
    block.start()?;
    Ok((Arc::new(lines), block))
}

/// Until a signal ends it.
fn wait(signals: &mut Signals, say: &Say) {
    for signal in signals.forever() {
        if signal != SIGHUP {
            return;
        }
        let text = "HUP: there is nothing to be read again; the gate stays as it is".to_owned();
        say(&Event { kind: "signal", interface: None, port: None, text });
    }
}

/// Tells the first thread that the loop has ended.
struct Alarm;

impl Drop for Alarm {
    fn drop(&mut self) {
        let _ = signal_hook::low_level::raise(LOOP_ENDED);
    }
}

/// The block that says what is protected, and what is lost on this host.
fn block(daemon: &Daemon, metrics: Option<&AdminAddress>) -> String {
    let Snapshot { ports, mode, policy, dry_run, notes, .. } = daemon.board().latest();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let interfaces: Vec<String> = daemon.interfaces().map(|(name, way)| format!("{name} ({way})")).collect();
    let mut block =
        format!("staunch gate on {}\n  ports        {}\n", interfaces.join(", "), ports.join(", "));
    let counted = if dry_run { ", only counted (dry run)" } else { "" };
    // Writing to a string does not fail.
    let _ = writeln!(block, "  shed         by {mode}, policy {policy}{counted}");
    if let Some(address) = metrics {
        let _ = writeln!(block, "  metrics      http://{address}/metrics");
    }
    for note in notes {
        let _ = writeln!(block, "  lost         {note}");
    }
    block
}

fn one_line(block: &str) -> String {
    let lines: Vec<String> =
        block.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.join("; ")
}
