//! `staunch status`: whether a server runs, and how it is.
//!
//! Exit codes are those of a service's status (LSB 3.1): 0 runs, 3 does not run, 4 cannot be told.
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use staunch_config::units::show_size;
use staunch_figures::words;
use staunch_program::{Failure, output};
use staunch_server::metrics::{Readiness, Snapshot};

use super::whereabouts::{Whereabouts, Which};
use crate::top::{fetch, uptime};

const NOT_RUNNING: u8 = 3;
const UNKNOWN: u8 = 4;

/// What to show.
#[derive(Args, Debug)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    which: Which,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// A moment of a server. What only the admin address knows is missing without one.
#[derive(Debug, Serialize)]
struct Status {
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    seen: Option<Seen>,
}

#[derive(Debug, Serialize)]
struct Seen {
    version: String,
    io: String,
    readiness: Readiness,
    uptime_seconds: f64,
    connections: u64,
    connections_max: u64,
    requests: u64,
    resident_bytes: u64,
}

impl Seen {
    fn of(snapshot: Snapshot) -> Self {
        let sum = |figure: fn(&staunch_server::metrics::WorkerFigures) -> u64| {
            snapshot.workers.iter().map(figure).sum()
        };
        Self {
            readiness: snapshot.readiness,
            uptime_seconds: snapshot.uptime_seconds,
            connections: sum(|worker| worker.accepted.saturating_sub(worker.closed)),
            connections_max: snapshot.connections_max,
            requests: sum(|worker| worker.requests),
            resident_bytes: snapshot.process.resident_bytes,
            version: snapshot.version,
            io: snapshot.io,
        }
    }
}

/// Says whether the server runs.
///
/// # Errors
/// Nothing names a server, or the admin address of one that runs does not answer.
pub(crate) fn status(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let whereabouts = Whereabouts::of(&arguments.which)?;
    let found = whereabouts.server();
    let seen = match (&found, whereabouts.admin()) {
        (Ok(_), Some(admin)) => {
            let unknown = |text| Failure { code: UNKNOWN, text };
            Some(Seen::of(fetch::snapshot(admin).map_err(unknown)?))
        }
        _ => None,
    };
    let (pid, reason) = match found {
        Ok(server) => (Some(server.pid()), None),
        Err(why) => (None, Some(why)),
    };
    let status = Status { running: pid.is_some(), pid, reason, seen };
    if arguments.json {
        let text = serde_json::to_string(&status).map_err(|error| error.to_string())?;
        output::print(&format!("{text}\n"));
    } else {
        output::print(&(lines(&status).join("\n") + "\n"));
    }
    Ok(if status.running { ExitCode::SUCCESS } else { ExitCode::from(NOT_RUNNING) })
}

fn lines(status: &Status) -> Vec<String> {
    let Some(pid) = status.pid else {
        return vec![status.reason.clone().unwrap_or_default()];
    };
    let Some(seen) = &status.seen else {
        return vec![format!("running: PID {pid} (more with `admin` in its settings)")];
    };
    let readiness = match seen.readiness {
        Readiness::Preparing => "not ready yet",
        Readiness::Ready => "ready",
        Readiness::Draining => "ending",
    };
    vec![
        format!("running: PID {pid}, {readiness}, for {}", uptime(seen.uptime_seconds)),
        format!("  version      {}, {}", words::harmless(&seen.version), words::harmless(&seen.io)),
        format!(
            "  connections  {} of {}",
            words::count(seen.connections),
            words::count(seen.connections_max)
        ),
        format!("  requests     {}", words::count(seen.requests)),
        format!("  memory       {}", show_size(seen.resident_bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_run_is_told_with_its_reason() {
        let reason = Some("no server runs: there is no PID file /run/x".to_owned());
        let status = Status { running: false, pid: None, reason, seen: None };
        assert_eq!(lines(&status), ["no server runs: there is no PID file /run/x"]);
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(text, r#"{"running":false,"reason":"no server runs: there is no PID file /run/x"}"#);
    }
}
