//! Clients that come once: a connection per request, for the scenarios that press on a server.
//!
//! It owns what they are offered and what is said of it. It must never judge.
use std::time::Duration;

use super::running;
use super::tool::Tool;
use crate::account::{self, Account, lost, other_ends};
use crate::machine;
use crate::setting::Setting;

/// Clients that come again and again without a pause: enough that a server of one processor never waits.
const PATIENT_CLIENTS: u32 = 8;

/// Until then queues fill.
const FILLING_S: f64 = 1.0;

/// What came of an offered load.
#[derive(Debug)]
pub(crate) struct Offered {
    /// Requests answered rightly and in time, a second.
    pub(crate) in_time_per_s: f64,
    /// Their latency at the 99th percentile, in ms; none was answered if it is not known.
    pub(crate) p99_ms: Option<f64>,
    /// The processors that offered it, as `taskset` names them.
    pub(crate) cpus: &'static str,
    /// All ends, in words.
    pub(crate) words: String,
}

/// How many requests a second a server answers at most, each on a connection of its own.
///
/// # Errors
/// A generator that fails, or a server that refuses a patient client.
pub(crate) fn strangers_peak(setting: &Setting, url: &str) -> Result<f64, String> {
    let mut words = Tool::Epoll.closed(&setting.programs, 1, PATIENT_CLIENTS, setting.seconds, url);
    words.insert(words.len() - 1, "--no-keep-alive".to_owned());
    let watched = running::run(&words, Duration::from_secs(setting.seconds.into()), &setting.scratch)?;
    Ok(account::read(&watched.output)?.said()?.per_second)
}

/// Offers so many requests a second, whose clients wait one second. Answers are counted from the second
/// second on and until nothing more is offered: before, queues fill; after, they empty.
///
/// # Errors
/// A generator that fails.
pub(crate) fn strangers(setting: &Setting, url: &str, rate: u32) -> Result<Offered, String> {
    let seconds = setting.seconds.max(2);
    let words = Tool::Uring.strangers(&setting.programs, rate, seconds, url);
    let (cpus, words) = with_room(words);
    let watched = running::run_on(cpus, &words, Duration::from_secs(seconds.into()), &setting.scratch)?;
    let report = account::read(&watched.output)?;
    let (offered, in_time, others) = (report.main.offered, report.main.in_time, other_ends(&report.main));
    Ok(Offered {
        in_time_per_s: report.in_time_between(FILLING_S, f64::from(seconds)),
        p99_ms: report.main.latency_ms.p99,
        cpus,
        words: format!("offered {offered} at {rate}/s, in time {in_time}, {others}"),
    })
}

/// Tens of thousands of connections begun a second are too much for the ports of one address, and nearly too
/// much for one processor: where there are four, two of them offer the load.
fn with_room(mut words: Vec<String>) -> (&'static str, Vec<String>) {
    let url = words.len() - 1;
    let sources = (2..8).map(|last| format!("127.0.0.{last}")).collect::<Vec<_>>().join(",");
    words.splice(url..url, ["--source".to_owned(), sources]);
    if machine::processors() < 4 {
        return ("1", words);
    }
    for (flag, value) in [("-t", "2"), ("--cpus", "2,3")] {
        if let Some(place) = words.iter().position(|word| word == flag) {
            words[place + 1] = value.to_owned();
        }
    }
    ("2,3", words)
}

/// What honest clients saw.
#[derive(Debug)]
pub(crate) struct Honest {
    /// Latency at the 99th percentile, in ms.
    pub(crate) p99_ms: f64,
    /// Requests not answered rightly.
    pub(crate) lost: u64,
}

/// Offers so many requests a second over kept connections, and waits for every answer.
///
/// # Errors
/// A generator that fails, or no answer at all.
pub(crate) fn honest(setting: &Setting, url: &str, rate: u32) -> Result<Honest, String> {
    let words = Tool::Epoll.open(&setting.programs, rate, setting.seconds, url);
    let watched = running::run(&words, Duration::from_secs(setting.seconds.into()), &setting.scratch)?;
    let report = account::read(&watched.output)?;
    let lost = lost(&report.main) + report.main.unsent;
    Ok(Honest { p99_ms: report.answers()?.p99_ms, lost })
}
