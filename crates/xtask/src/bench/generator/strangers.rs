//! Clients that come once: a connection a request, for the scenarios that press on a server.
//!
//! It owns what they are offered and what is said of it. It must never judge.

use std::time::Duration;

use super::reading::Report;
use super::running;
use super::tool::Tool;
use crate::bench::setting::Setting;

/// Clients that come again and again without a pause: enough that a server of one processor never waits.
const PATIENT_CLIENTS: u32 = 8;

/// What came of an offered load.
#[derive(Debug)]
pub(crate) struct Offered {
    /// Requests answered rightly and in time, a second.
    pub(crate) in_time_per_s: f64,
    /// Their latency at the 99th percentile, in ms; none was answered if it is not known.
    pub(crate) p99_ms: Option<f64>,
    /// All ends, in words.
    pub(crate) words: String,
}

/// How many requests a second a server answers at most, each on a connection of its own.
///
/// # Errors
/// A generator that fails, or a server that refuses a patient client.
pub(crate) fn strangers_peak(setting: &Setting, url: &str) -> Result<f64, String> {
    let mut words = Tool::Epoll.closed(&setting.programs, PATIENT_CLIENTS, setting.seconds, url);
    words.insert(words.len() - 1, "--no-keep-alive".to_owned());
    let watched = running::run(&words, Duration::from_secs(setting.seconds.into()), &setting.scratch)?;
    Ok(Report::read(&watched.output)?.said()?.per_second)
}

/// Offers so many requests a second, whose clients wait one second.
///
/// # Errors
/// A generator that fails.
pub(crate) fn strangers(setting: &Setting, url: &str, rate: u32) -> Result<Offered, String> {
    let words = Tool::Epoll.strangers(&setting.programs, rate, setting.seconds, url);
    let watched = running::run(&words, Duration::from_secs(setting.seconds.into()), &setting.scratch)?;
    let report = Report::read(&watched.output)?;
    let ends = format!(
        "offered {} at {rate}/s, in time {}, refused {}, reset {}, wrong answer {}, timed out {}, \
         failed {}, unsent {}",
        report.offered,
        report.in_time,
        report.refused,
        report.reset,
        report.wrong_answer,
        report.timed_out,
        report.failed,
        report.unsent
    );
    Ok(Offered {
        in_time_per_s: report.in_time as f64 / f64::from(setting.seconds),
        p99_ms: report.latency_ms.p99,
        words: ends,
    })
}
