//! `staunch reload`, `stop`, `upgrade` and `status`: a running server, found by its PID file or its admin
//! address, and told by the signals of `docs/operations.md`.
//!
//! A signal must never reach a process that is no server: a process is held by a descriptor before it is
//! looked at, so that its PID cannot pass to another meanwhile.

mod server;
mod status;
mod whereabouts;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;
use staunch_config::units;
use staunch_netio::clock;
use staunch_program::{Failure, output};
use staunch_service::life::ReloadNote;

use crate::config::Loader;
use whereabouts::Whereabouts;

pub(crate) use status::{StatusArguments, status};
pub(crate) use whereabouts::{Which, admin_of};

/// Between two looks whether another process serves.
const LOOK: Duration = Duration::from_millis(50);
/// An upgrade is given up after 30 s by the server that began it.
const UPGRADE_MAX: Duration = Duration::from_secs(35);
/// A reload may be an upgrade, and may have to wait for one before.
const RELOAD_MAX: Duration = Duration::from_secs(2 * UPGRADE_MAX.as_secs());
/// A server takes two signals within a second for one wish.
const SECOND_SIGNAL: Duration = Duration::from_millis(1_200);

/// How to stop.
#[derive(Args, Debug)]
pub(crate) struct StopArguments {
    #[command(flatten)]
    which: Which,

    /// Cut answers under way instead of completing them
    #[arg(long)]
    now: bool,

    /// Time to wait until the process has ended
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "60s")]
    timeout: Duration,
}

/// Tells the server to read its configuration again, if that would do, and waits for what comes of it.
///
/// # Errors
/// No server, or a configuration that cannot be used.
pub(crate) fn reload(which: &Which) -> Result<ExitCode, Failure> {
    let whereabouts = Whereabouts::of(which)?;
    let server = whereabouts.server()?;
    if let Some(file) = whereabouts.file() {
        Loader::new(Vec::new(), Some(file.to_owned())).load()?;
    }
    let before = whereabouts.last_reload();
    server.send(Signal::HUP)?;
    let until_ns = clock::now_ns() + RELOAD_MAX.as_nanos() as u64;
    while clock::now_ns() < until_ns {
        clock::pause(LOOK);
        // Between two processes there may be no answer for a moment.
        match whereabouts.last_reload().filter(|note| Some(note) != before.as_ref()) {
            Some(ReloadNote { is_applied: true, process, text, .. }) => {
                return print(&format!("process {process}: {text}"));
            }
            Some(ReloadNote { process, text, .. }) => {
                return Err(format!("process {process} goes on as it was: {text}").into());
            }
            None if server.has_ended_within(Duration::ZERO) && whereabouts.server().is_err() => {
                return Err(format!("process {} has ended meanwhile", server.pid()).into());
            }
            None => {}
        }
    }
    Err(format!("process {} does not tell what came of it; its error log may", server.pid()).into())
}

/// Ends the server, and waits until it has ended.
///
/// # Errors
/// No server, or one that has not ended in time.
pub(crate) fn stop(arguments: &StopArguments) -> Result<ExitCode, Failure> {
    let server = Whereabouts::of(&arguments.which)?.server()?;
    server.send(Signal::TERM)?;
    if arguments.now && !server.has_ended_within(SECOND_SIGNAL) {
        server.send(Signal::TERM)?;
    }
    if server.has_ended_within(arguments.timeout) {
        return print(&format!("process {} has ended", server.pid()));
    }
    let seconds = arguments.timeout.as_secs_f64();
    Err(format!("process {} has not ended within {seconds} s: answers are still under way", server.pid())
        .into())
}

/// Starts the program anew in the server's place, and waits until it serves.
///
/// # Errors
/// No server, or one that goes on because the new process does not serve.
pub(crate) fn upgrade(which: &Which) -> Result<ExitCode, Failure> {
    let whereabouts = Whereabouts::of(which)?;
    let server = whereabouts.server()?;
    server.send(Signal::USR2)?;
    let until_ns = clock::now_ns() + UPGRADE_MAX.as_nanos() as u64;
    while clock::now_ns() < until_ns {
        clock::pause(LOOK);
        // Between two processes there may be no answer for a moment.
        if let Ok(now) = whereabouts.server()
            && now.pid() != server.pid()
        {
            return print(&format!("process {} serves now, in place of {}", now.pid(), server.pid()));
        }
    }
    Err(format!("process {} goes on: no other serves; its error log says why", server.pid()).into())
}

fn print(line: &str) -> Result<ExitCode, Failure> {
    output::print(&format!("{line}\n"));
    Ok(ExitCode::SUCCESS)
}
