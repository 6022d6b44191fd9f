//! The truth server as a process: its service time is known, and it counts what it did.
//!
//! It owns the process, which ends with its [`TruthServer`]. It must never judge.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Stdio};

use serde::Deserialize;

use crate::process;
use crate::servers::pinned;
use crate::setup::Programs;

/// A running truth server on CPU 0.
#[derive(Debug)]
pub(super) struct TruthServer {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Where it listens, as a URL without a path.
    pub(super) url: String,
    /// The command that started it.
    pub(super) command: String,
}

/// What it did.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Truth {
    /// Answers given to the kernel whole, by status.
    pub(super) answers: BTreeMap<String, u64>,
}

impl TruthServer {
    /// Starts one whose single worker is busy for `service_time` with each request, and whose clients wait
    /// in an accept queue of `backlog`.
    ///
    /// # Errors
    /// A program that is not there, or that does not say where it listens.
    pub(super) fn start(programs: &Programs, service_time: &str, backlog: u32) -> Result<Self, String> {
        let queue = ["--work", "burn", "--queue", "accept", "--backlog", &backlog.to_string()];
        Self::start_with(programs, service_time, &queue)
    }

    /// Starts one whose single worker serves the requests of all connections in the order they came.
    ///
    /// # Errors
    /// As [`TruthServer::start`].
    pub(super) fn start_shared(programs: &Programs, service_time: &str) -> Result<Self, String> {
        Self::start_with(programs, service_time, &["--work", "burn", "--queue", "connection"])
    }

    /// Starts one whose workers only wait for `service_time` with each request, in the order they came. With
    /// a `backlog` its clients wait in an accept queue of that length. `changes` are further arguments.
    ///
    /// # Errors
    /// As [`TruthServer::start`].
    pub(super) fn start_sleeping(
        programs: &Programs,
        service_time: &str,
        workers: u32,
        backlog: Option<u32>,
        changes: &[&str],
    ) -> Result<Self, String> {
        let (workers, backlog) = (workers.to_string(), backlog.map(|backlog| backlog.to_string()));
        let queue: &[&str] = match &backlog {
            None => &["--queue", "connection"],
            Some(backlog) => &["--queue", "accept", "--backlog", backlog],
        };
        let work = ["--work", "sleep", "--workers", &workers];
        Self::start_with(programs, service_time, &[&work[..], queue, changes].concat())
    }

    /// Where it listens.
    ///
    /// # Errors
    /// It said something else.
    pub(super) fn address(&self) -> Result<SocketAddr, String> {
        let text = self.url.strip_prefix("http://").unwrap_or_default();
        text.parse().map_err(|_| format!("the truth server listens at '{}'", self.url))
    }

    fn start_with(programs: &Programs, service_time: &str, queue: &[&str]) -> Result<Self, String> {
        let program = programs.truth.to_string_lossy();
        let words = [&*program, "--service-time", service_time, "--end-with-input"];
        let words = [&words[..], queue].concat();
        let mut child = pinned(0)
            .args(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let mut output = BufReader::new(child.stdout.take().ok_or("truth server without output")?);
        let mut line = String::new();
        output.read_line(&mut line).map_err(|error| format!("{program}: {error}"))?;
        let url = line.trim().strip_prefix("listening on ").unwrap_or_default().to_owned();
        let server = Self { child, output, url, command: words.join(" ") };
        if server.url.starts_with("http://") {
            Ok(server)
        } else {
            Err(format!("{program} says '{}' instead of where it listens", line.trim()))
        }
    }

    /// Ends it, and gives its counts.
    ///
    /// # Errors
    /// It was not there any more.
    pub(super) fn finish(mut self) -> Result<Truth, String> {
        drop(self.child.stdin.take());
        let mut counts = String::new();
        self.output.read_to_string(&mut counts).map_err(|error| format!("truth server: {error}"))?;
        serde_json::from_str(counts.trim()).map_err(|error| format!("the truth server's counts: {error}"))
    }
}

impl Drop for TruthServer {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        // Collects the ended child; there is nothing to do about a failure.
        let _ = self.child.wait();
    }
}
