//! What the view shows, as lines: pure, from figures and rates.
//!
//! No line is longer than the terminal is wide, or drawing over it would leave rests behind.
use std::collections::VecDeque;

use console::truncate_str;
use staunch_config::units::show_size;
use staunch_figures::spark;
use staunch_figures::style::{BAD, CARE, GOOD, LOUD, QUIET, paint};
use staunch_figures::words;
use staunch_server::metrics::{ByReason, Readiness, Snapshot, WorkerFigures};
use staunch_server::{DictionaryFigures, ProxyFigures, ProxyServerFigures};

use super::figures::{Rates, sum};

/// Width of a line's name, and the blank behind it.
const NAME_WIDTH: usize = 13;

/// The lines. `live`: with the keys, in colour or not.
pub(super) fn lines(
    snapshot: &Snapshot,
    rates: &Rates,
    kept: &VecDeque<f64>,
    live: Option<bool>,
    width: usize,
) -> Vec<String> {
    let mut lines = vec![
        title(snapshot),
        (named("requests", &requests(rates)), ""),
        (named("latency", &times(rates)), ""),
    ];
    if !kept.is_empty() {
        lines.push((named("", &sparkline(kept, width)), GOOD));
    }
    lines.extend([
        connections(snapshot, rates),
        (named("answers", &answers(rates)), ""),
        reasons("refusals", snapshot, |worker| &worker.refusals, BAD),
        reasons("timeouts", snapshot, |worker| &worker.timeouts, CARE),
        (named("content", &content(snapshot)), ""),
        log(snapshot),
    ]);
    lines.extend(differences(snapshot));
    lines.extend([
        (named("process", &process(snapshot, rates)), ""),
        (
            format!("{:>6} {:>12} {:>12} {:>9} {:>9}", "worker", "requests/s", "open", "sending", "waiting"),
            QUIET,
        ),
    ]);
    lines.extend(snapshot.workers.iter().zip(&rates.workers_per_s).enumerate().map(worker));
    if let Some(proxy) = &snapshot.proxy {
        lines.extend(applications(proxy));
    }
    if live.is_some() {
        lines.push(("q: end".to_owned(), QUIET));
    }
    let fit = |line: String| truncate_str(line.trim_end(), width, "…").into_owned();
    lines
        .into_iter()
        .map(|(line, code)| paint(&fit(line), code, live == Some(true) && !code.is_empty()))
        .collect()
}

/// Servers of applications: what they are given, and what waits for them.
fn applications(proxy: &ProxyFigures) -> Vec<(String, &'static str)> {
    let (limit, work, waiting, rate) = ("limit", "in work", "waiting", "answers/s");
    let head = format!("{limit:>6} {work:>8} {waiting:>8} {rate:>10} {:>9}  application", "refused");
    let line = |server: &ProxyServerFigures| {
        let limit = server.limit.map_or("-".to_owned(), |limit| limit.to_string());
        let code = if server.is_well { "" } else { BAD };
        let text = format!(
            "{limit:>6} {:>8} {:>8} {:>10.1} {:>9}  {}",
            server.in_work,
            server.waiting,
            server.rate_per_s,
            words::count(server.refused),
            words::harmless(&server.server)
        );
        (text, code)
    };
    let mut lines = vec![(head, QUIET)];
    for server in &proxy.servers {
        lines.push(line(server));
        let classes = server.classes_in_words();
        lines.extend(classes.map(|words| (format!("       {}", words::harmless(&words)), QUIET)));
    }
    let (connections, in_line) = (proxy.excess_connections, proxy.excess_line);
    if connections + in_line > 0 {
        let text = format!(
            "refused as one client's excess: {} of connections, {} of a line",
            words::count(connections),
            words::count(in_line)
        );
        lines.push((text, CARE));
    }
    lines
}

fn title(snapshot: &Snapshot) -> (String, &'static str) {
    let up = uptime(snapshot.uptime_seconds);
    let (version, io) = (words::harmless(&snapshot.version), words::harmless(&snapshot.io));
    let (readiness, code) = match snapshot.readiness {
        Readiness::Ready => ("ready", LOUD),
        Readiness::Preparing => ("preparing", CARE),
        Readiness::Draining => ("draining", CARE),
    };
    (format!("staunch {version}, {io}, process {}, up {up}, {readiness}", snapshot.process_id), code)
}

/// A time since a start, as people say it.
pub(crate) fn uptime(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

fn requests(rates: &Rates) -> String {
    let (requests, bytes) = (words::per_s(rates.requests_per_s), words::bytes(rates.sent_bytes_per_s));
    format!("{requests}   sent {bytes}/s   new connections {}", words::per_s(rates.accepted_per_s))
}

fn times(rates: &Rates) -> String {
    let pair = |pair: Option<[f64; 2]>| match pair {
        Some([p50, p99]) => format!("p50 {:<8} p99 {:<8}", words::time_ns(p50), words::time_ns(p99)),
        None => format!("p50 {:<8} p99 {:<8}", "-", "-"),
    };
    format!("{}   queue age {}", pair(rates.latency_ns), pair(rates.queue_age_ns))
}

fn sparkline(kept: &VecDeque<f64>, width: usize) -> String {
    let values: Vec<f64> = kept.iter().copied().collect();
    let highest = format!("  up to {}", words::per_s(values.iter().copied().fold(0.0, f64::max)));
    let room = width.saturating_sub(NAME_WIDTH + highest.chars().count());
    format!("{}{highest}", spark::line(&values, room))
}

fn connections(snapshot: &Snapshot, _rates: &Rates) -> (String, &'static str) {
    let workers = &snapshot.workers;
    let (open, sending) = (sum(workers, WorkerFigures::open), sum(workers, |worker| worker.sending));
    let waiting = sum(workers, |worker| worker.waiting);
    let stops = sum(workers, |worker| worker.accept_stops);
    let most = snapshot.connections_max;
    let text = format!(
        "{} of {}: idle {}, sending {}, waiting {}, stops {}",
        words::count(open),
        words::count(most),
        words::count(open.saturating_sub(sending + waiting)),
        words::count(sending),
        words::count(waiting),
        words::count(stops)
    );
    (named("connections", &text), if open * 10 > most * 9 { BAD } else { "" })
}

fn answers(rates: &Rates) -> String {
    let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().zip(rates.classes_per_s);
    let shown: Vec<String> =
        classes.skip(1).map(|(class, rate)| format!("{class} {}", words::per_s(rate))).collect();
    shown.join("   ")
}

/// Counts since the start, by reason; only those that happened.
fn reasons(
    name: &str,
    snapshot: &Snapshot,
    of: fn(&WorkerFigures) -> &ByReason,
    code: &'static str,
) -> (String, &'static str) {
    let mut shown = Vec::new();
    for reason in snapshot.workers.first().into_iter().flat_map(|worker| of(worker).keys()) {
        let count = sum(&snapshot.workers, |worker| of(worker).get(reason).copied().unwrap_or(0));
        if count > 0 {
            shown.push(format!("{} {}", words::harmless(reason), words::count(count)));
        }
    }
    if shown.is_empty() { (named(name, "none"), "") } else { (named(name, &shown.join(", ")), code) }
}

fn content(snapshot: &Snapshot) -> String {
    let sites = &snapshot.sites;
    let (held, budget) = (
        sites.iter().map(|site| site.held_bytes).sum::<u64>(),
        sites.iter().map(|site| site.budget_bytes).sum::<u64>(),
    );
    let prepared: u64 = sites.iter().map(|site| site.prepared).sum();
    let answers = if prepared == 1 { "answer" } else { "answers" };
    let (prepared, held, budget) = (words::count(prepared), show_size(held), show_size(budget));
    format!("{prepared} {answers} held in {held} of {budget}")
}

fn log(snapshot: &Snapshot) -> (String, &'static str) {
    let log = snapshot.log;
    let counts = [("written", log.written), ("dropped", log.dropped), ("failed", log.failed)];
    let shown: Vec<String> = counts.map(|(name, count)| format!("{name} {}", words::count(count))).to_vec();
    (named("log lines", &shown.join(", ")), if log.dropped + log.failed > 0 { CARE } else { "" })
}

/// Answers that were differences to what clients had, once somebody asked for any.
fn differences(snapshot: &Snapshot) -> Option<(String, &'static str)> {
    let mut all = DictionaryFigures::default();
    snapshot.dictionaries().iter().for_each(|(_, figures)| all.add(figures));
    let DictionaryFigures { asked, answered, unknown, saved_bytes } = all;
    let text = format!(
        "{} of {} that asked, {} of versions not known   saved {}",
        words::count(answered),
        words::count(asked),
        words::count(unknown),
        show_size(saved_bytes)
    );
    (asked > 0).then(|| (named("differences", &text), ""))
}

fn process(snapshot: &Snapshot, rates: &Rates) -> String {
    let process = &snapshot.process;
    format!(
        "{:.0} % of a processor   memory {}   descriptors {} of {}",
        rates.cpu_share * 100.0,
        show_size(process.resident_bytes),
        words::count(process.open_descriptors),
        words::count(process.descriptors_max)
    )
}

fn worker((index, (worker, rate)): (usize, (&WorkerFigures, &f64))) -> (String, &'static str) {
    let (rate, open) = (words::number(*rate), words::count(worker.open()));
    let (sending, waiting) = (words::count(worker.sending), words::count(worker.waiting));
    (format!("{index:>6} {rate:>12} {open:>12} {sending:>9} {waiting:>9}"), "")
}

fn named(name: &str, words: &str) -> String {
    format!("{name:<NAME_WIDTH$}{words}")
}
