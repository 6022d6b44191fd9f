//! The story of applications behind proxies: their answers in time when more and more is asked of them, and
//! when their capacity changes.
//!
//! This module owns the order of the story, its names in `bench/runs/proxy.json`, and the words on the way.
//! This demonstration must never configure a proxy: see `generator/front.rs`. Applications sleep, so that
//! neither they nor the speed of the machine decide what can be served; those of one step are measured at
//! the same time.

use std::collections::BTreeMap;
use std::thread;

use serde::Serialize;

use crate::account::Account as _;
use crate::generator::Proxy;
use crate::generator::proxied::{APPLICATIONS, ServedRun, SleepingApplication, serve};
use crate::setting::Setting;

/// Offered loads, as multiples of the application's peak.
const MULTIPLES: [f64; 5] = [0.5, 0.9, 1.5, 3.0, 10.0];
/// Seconds before those that count, in which a proxy may learn, and those that count: with four proxies and
/// the changes all of it takes less than four minutes, with five less than five.
const LEARNING_S: u32 = 4;
const COUNTED_S: u32 = 3;
/// Proxies in the order in which they are measured and shown.
const PROXIES: [Proxy; 5] = [Proxy::Nothing, Proxy::Nginx, Proxy::Haproxy, Proxy::Caddy, Proxy::Uring];

/// The application whose workers change, and how: what can be served a second, from a second on.
const CHANGED: SleepingApplication = APPLICATIONS[1];
pub(super) const PHASES: [(u32, u32); 3] = [(0, 40), (12, 10), (24, 80)];
const CHANGES: [&str; 4] = ["--then", "2@12s", "--then", "16@24s"];
const CHANGED_S: u32 = 36;
/// Requests a second that are offered meanwhile: more than can be served at any time.
const CHANGED_PER_S: u32 = 200;

/// The whole file.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ProxyRecord {
    /// More and more is offered.
    pub(super) points: Vec<ProxyPoint>,
    /// A steady load on an application that changes.
    pub(super) changes: Vec<ProxyChange>,
    /// Processor, cores, kernel, memory.
    pub(super) machine: BTreeMap<String, String>,
    /// The command of each proxy, and what it says of its version.
    pub(super) commands: Vec<String>,
    /// Proxies that are not installed.
    pub(super) left_out: Vec<String>,
    /// Short hash, `-dirty` when the tree had changes.
    pub(super) commit: String,
}

/// A load.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ProxyPoint {
    /// By its workers and its service time.
    pub(super) application: String,
    /// As tables name it.
    pub(super) proxy: String,
    /// As a multiple of the application's peak.
    pub(super) offered_multiple: f64,
    /// Answered rightly within the clients' patience, as a part of the peak.
    pub(super) goodput: f64,
    /// The part of the application's answers that nobody waited for any more.
    pub(super) wasted: f64,
    /// Half of the answers in time took at most so long; none if nobody was answered.
    pub(super) p50_ms: Option<f64>,
    /// All but one of a hundred did.
    pub(super) p99_ms: Option<f64>,
}

/// A run in which the application changes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ProxyChange {
    /// As tables name it.
    pub(super) proxy: String,
    /// Answers in time, in each second.
    pub(super) in_time_per_s: Vec<f64>,
}

/// Measures everything.
///
/// # Errors
/// A program that is not there or fails.
pub(super) fn run(setting: &Setting) -> Result<ProxyRecord, String> {
    let (proxies, left_out): (Vec<Proxy>, Vec<Proxy>) =
        PROXIES.into_iter().partition(|proxy| proxy.is_installed());
    let mut record = ProxyRecord {
        left_out: left_out.iter().map(|proxy| proxy.name().to_owned()).collect(),
        ..ProxyRecord::default()
    };
    setting.expect_steps(proxies.len() * MULTIPLES.len() + 1);
    for proxy in &proxies {
        let mut command = None;
        for multiple in MULTIPLES {
            setting.step(&format!("{}, {multiple} times the peak", proxy.name()));
            for (point, started) in offered(*proxy, multiple, setting)? {
                setting.progress.suspend(|| println!("{}", words(&point)));
                record.points.push(point);
                command.get_or_insert(started);
            }
        }
        record.commands.extend(command);
    }
    setting.step("the application changes");
    record.changes = changed(&proxies, setting)?;
    Ok(record)
}

/// A load, on each of the applications at the same time.
fn offered(proxy: Proxy, multiple: f64, setting: &Setting) -> Result<Vec<(ProxyPoint, String)>, String> {
    let seconds = LEARNING_S + COUNTED_S;
    let served = at_once(APPLICATIONS.iter().map(|application| {
        let setting = apart(setting, application.name);
        let per_s = (multiple * f64::from(application.peak_per_s)).round() as u32;
        move || serve(proxy, application, &[], per_s, seconds, &setting)
    }));
    let points = APPLICATIONS.iter().zip(served).map(|(application, served)| {
        let served = served.map_err(|error| format!("{}, {}: {error}", proxy.name(), application.name))?;
        Ok((point(proxy, application, multiple, &served), served.command))
    });
    points.collect()
}

fn point(proxy: Proxy, application: &SleepingApplication, multiple: f64, served: &ServedRun) -> ProxyPoint {
    let good = served.report.in_time_between(f64::from(LEARNING_S), f64::from(LEARNING_S + COUNTED_S));
    let latency_ms = &served.report.main.latency_ms;
    ProxyPoint {
        application: application.name.to_owned(),
        proxy: proxy.name().to_owned(),
        offered_multiple: multiple,
        goodput: rounded(good / f64::from(application.peak_per_s)),
        wasted: rounded(served.wasted().max(0.0)),
        p50_ms: latency_ms.p50.map(rounded),
        p99_ms: latency_ms.p99.map(rounded),
    }
}

/// The application changes behind all proxies at the same time.
fn changed(proxies: &[Proxy], setting: &Setting) -> Result<Vec<ProxyChange>, String> {
    let served = at_once(proxies.iter().map(|proxy| {
        let setting = apart(setting, proxy.name());
        move || serve(*proxy, &CHANGED, &CHANGES, CHANGED_PER_S, CHANGED_S, &setting)
    }));
    let changes = proxies.iter().zip(served).map(|(proxy, served)| {
        let report = served.map_err(|error| format!("{}: {error}", proxy.name()))?.report;
        let second = |second: u32| report.in_time_between(f64::from(second), f64::from(second + 1));
        let in_time_per_s = (0..CHANGED_S).map(second).map(rounded).collect();
        Ok(ProxyChange { proxy: proxy.name().to_owned(), in_time_per_s })
    });
    changes.collect()
}

fn at_once<T: Send, F: FnOnce() -> T + Send>(works: impl Iterator<Item = F>) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = works.map(|work| scope.spawn(work)).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// The setting with a folder of its own: what runs at the same time must not write to the same files.
fn apart(setting: &Setting, name: &str) -> Setting {
    Setting { scratch: setting.scratch.join("demo-proxy").join(name.replace(' ', "-")), ..setting.clone() }
}

fn words(point: &ProxyPoint) -> String {
    let ProxyPoint { application, proxy, offered_multiple, goodput, wasted, .. } = point;
    format!(
        "{proxy:<14} {application:<10} {offered_multiple:>4} x: answered in time {:>3.0} % of the peak, for \
         nobody {:>3.0} %",
        100.0 * goodput,
        100.0 * wasted
    )
}

/// To the thousandth.
fn rounded(value: f64) -> f64 {
    (1_000.0 * value).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_as_possible_is_what_the_application_is_told() {
        let told: Vec<String> =
            PHASES[1..].iter().map(|(at_s, per_s)| format!("{}@{at_s}s", per_s / 5)).collect();
        assert_eq!([CHANGES[1], CHANGES[3]], [told[0].as_str(), told[1].as_str()]);
        assert_eq!(PHASES[0].1, CHANGED.peak_per_s);
        assert!(PHASES.iter().all(|(at_s, per_s)| *at_s < CHANGED_S && *per_s < CHANGED_PER_S));
    }
}
