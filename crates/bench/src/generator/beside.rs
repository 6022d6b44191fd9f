//! Load beside something that happens to a server: what became of every request.
//!
//! It owns what is offered and what is said of it. It must never judge.
use std::time::Duration;

use super::running;
use crate::account::{self, lost, other_ends};
use crate::setting::Setting;

/// What came of it.
#[derive(Debug)]
pub(crate) struct Beside {
    /// Requests answered rightly.
    pub(crate) answered: u64,
    /// Requests that were sent, and ended otherwise; without those that nobody wanted to take.
    pub(crate) broken: u64,
    /// Requests whose connection was refused.
    pub(crate) refused: u64,
    /// Connections begun while the load lasted.
    pub(crate) connections_begun: u64,
    /// Idle connections that the server ended.
    pub(crate) connections_ended: u64,
    /// All ends, in words.
    pub(crate) words: String,
}

/// Offers so many requests a second over at most so many kept connections.
///
/// # Errors
/// A generator that fails.
pub(crate) fn kept(
    setting: &Setting,
    url: &str,
    rate: u32,
    connections: u32,
    seconds: u32,
) -> Result<Beside, String> {
    let (rate, length) = (format!("{rate}/s"), format!("{seconds}s"));
    let connections = connections.to_string();
    run(setting, url, &["--rate", &rate, "-c", &connections, "-d", &length], seconds)
}

/// So many clients at once ask one thing each, and no more.
///
/// # Errors
/// A generator that fails.
pub(crate) fn once(setting: &Setting, url: &str, clients: u32, seconds: u32) -> Result<Beside, String> {
    let clients = clients.to_string();
    let words =
        ["-c", &clients, "--requests", &clients, "--requests-per-connection", "1", "--patience", "60s"];
    run(setting, url, &words, seconds)
}

fn run(setting: &Setting, url: &str, words: &[&str], seconds: u32) -> Result<Beside, String> {
    let program = setting.programs.staunch.to_string_lossy();
    let engine = ["-t", "1", "--cpus", "1", "--expect-status", "200", "--quiet", "--json", "-"];
    let words = [&[&*program, "load", url], words, &engine].concat();
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let watched = running::run(&words, Duration::from_secs(seconds.into()), &setting.scratch)?;
    let report = account::read(&watched.output)?.main;
    let answered = report.in_time + report.late;
    Ok(Beside {
        answered,
        broken: lost(&report) - report.refused,
        refused: report.refused,
        connections_begun: report.connections_begun,
        connections_ended: report.connections_ended,
        words: format!("offered {}, answered {answered}, {}", report.offered, other_ends(&report)),
    })
}
