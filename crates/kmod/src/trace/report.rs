//! The report of `staunch kernel trace`: its figures, and its text for a terminal.

use std::collections::BTreeMap;

use serde::Serialize;
use staunch_figures::table::{Align, lines};
use staunch_figures::words;

use super::creation::CreationReport;
use super::graph::{Call, FunctionCost, Graph};
use super::part::KernelPart;
use super::requests::{Request, Seen, Thread};

/// The slowest requests and the costliest functions that are listed: what fits on a screen.
const SLOWEST: usize = 10;
const FUNCTIONS: usize = 15;

/// The report; its fields are those of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct TraceReport {
    /// The module's parameter `mode`.
    pub(super) mode: String,
    /// How long events were recorded.
    pub(super) seconds: f64,
    /// What could not be recorded, and why.
    pub(super) missing: Vec<String>,
    /// Events of the module, by name.
    pub(super) events: BTreeMap<String, u64>,
    /// Requests that were answered.
    pub(super) answered: usize,
    /// From the wake of a request's socket until TCP had the answer: the median.
    pub(super) median_us: Option<f64>,
    /// Time that 99 % of the requests did not exceed, in microseconds.
    pub(super) p99_us: Option<f64>,
    /// The part of that time until the request was parsed, the median.
    pub(super) waited_median_us: Option<f64>,
    /// Requests that ended on another processor than they began on.
    pub(super) moved: usize,
    /// How often a processor turned to a thread that served, a request; `None` without `sched_switch`.
    pub(super) switches_per_request: Option<f64>,
    pub(super) threads: Vec<Thread>,
    pub(super) slowest: Vec<Request>,
    /// How new connections got who serves them; `None` without `--threads`.
    pub(super) creation: Option<CreationReport>,
    /// What the function graph has shown; `None` if it was not recorded.
    pub(super) graph: Option<GraphReport>,
}

/// What the function graph has shown.
#[derive(Debug, Serialize)]
pub(super) struct GraphReport {
    /// Outermost calls in which requests were parsed.
    pub(super) requests: usize,
    /// The first so many of them, among which the typical one was chosen.
    pub(super) requests_kept: usize,
    /// The functions that took most time themselves, the costliest first.
    pub(super) functions: Vec<(String, FunctionCost)>,
    /// Each part's share of all time beneath the module.
    pub(super) shares: Vec<(KernelPart, f64)>,
    /// The calls of the request whose time is the median.
    pub(super) typical: Vec<Call>,
}

impl GraphReport {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut functions: Vec<(String, FunctionCost)> =
            graph.functions.iter().map(|(name, cost)| (name.clone(), cost.clone())).collect();
        functions.sort_by(|one, other| other.1.own_us.total_cmp(&one.1.own_us));
        functions.truncate(FUNCTIONS);
        let whole: f64 = graph.parts.values().sum();
        let share = |part: KernelPart| graph.parts.get(&part).copied().unwrap_or(0.0) / whole;
        let shares =
            if whole > 0.0 { KernelPart::ALL.map(|part| (part, share(part))).to_vec() } else { Vec::new() };
        let typical = graph.typical().unwrap_or(&[]).to_vec();
        let (requests, requests_kept) = (graph.requests_count, graph.requests.len());
        Self { requests, requests_kept, functions, shares, typical }
    }
}

impl TraceReport {
    /// The report of recorded events; `switches` says whether `sched_switch` was among them.
    pub(super) fn of(mode: String, seconds: f64, seen: Seen, switches: bool) -> Self {
        let threads = seen.threads();
        let mut slowest = seen.requests;
        slowest.sort_by(|one, other| other.total_us.total_cmp(&one.total_us));
        let answered = slowest.len();
        let turned: u64 = threads.iter().map(|thread| thread.switches).sum();
        let mut waited: Vec<f64> = slowest.iter().map(|request| request.waited_us).collect();
        waited.sort_by(|one, other| other.total_cmp(one));
        let total = |share: f64| from_top(&slowest, share).map(|request| request.total_us);
        let (median_us, p99_us) = (total(0.5), total(0.01));
        let moved = slowest.iter().filter(|request| request.moved()).count();
        slowest.truncate(SLOWEST);
        Self {
            mode,
            seconds,
            missing: Vec::new(),
            events: seen.counts,
            answered,
            median_us,
            p99_us,
            waited_median_us: from_top(&waited, 0.5).copied(),
            moved,
            switches_per_request: (switches && answered > 0).then(|| turned as f64 / answered as f64),
            threads,
            slowest,
            creation: None,
            graph: None,
        }
    }

    /// The main figures, each with its name.
    pub(super) fn glance(&self) -> Vec<(&'static str, String)> {
        let time = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), time);
        let moved = words::share(self.moved as u64, self.answered.max(1) as u64);
        let switches = self.switches_per_request.map_or_else(|| "-".to_owned(), words::number);
        vec![
            ("requests answered", words::count(self.answered as u64)),
            ("time, median", time(self.median_us)),
            ("time, 99 %", time(self.p99_us)),
            ("of it waiting, median", time(self.waited_median_us)),
            ("ended on another processor", format!("{} ({moved})", words::count(self.moved as u64))),
            ("switches a request", switches),
        ]
    }

    /// The table of the slowest requests: the names of its columns, and its rows.
    pub(super) fn slowest_rows(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let head = vec!["path", "time", "waiting", "began on", "ended on", "cache", "served by"];
        let row = |request: &Request| {
            let cache = request.hit.map_or("-", |hit| if hit { "hit" } else { "miss" });
            vec![
                words::harmless(&request.path),
                time(request.total_us),
                time(request.waited_us),
                request.began_on.to_string(),
                request.ended_on.to_string(),
                cache.to_owned(),
                words::harmless(&request.served_by),
            ]
        };
        (head, self.slowest.iter().map(row).collect())
    }

    /// The report as lines for a terminal.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut all = vec![format!("khttpd in mode {}, watched for {:.1} s", self.mode, self.seconds)];
        all.extend(self.missing.iter().map(|missing| format!("missing: {missing}")));
        let rows: Vec<Vec<String>> =
            self.glance().into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        all.extend(lines(&rows, &[Align::Left, Align::Right]));
        let (head, rows) = self.slowest_rows();
        section(&mut all, "The slowest requests", &head, rows);
        section(&mut all, "Threads that served", &["thread", "switches"], thread_rows(&self.threads));
        if let Some(creation) = &self.creation {
            creation_section(&mut all, creation);
        }
        if let Some(graph) = &self.graph {
            section(
                &mut all,
                "Functions, by their own time (traced, so slower)",
                &FUNCTION_HEAD,
                function_rows(graph),
            );
            section(&mut all, "Shares of all time beneath the module", &["part", "share"], share_rows(graph));
        }
        all
    }
}

pub(super) const FUNCTION_HEAD: [&str; 4] = ["function", "calls", "own time", "with what it calls"];

pub(super) fn function_rows(graph: &GraphReport) -> Vec<Vec<String>> {
    let row = |(name, cost): &(String, FunctionCost)| {
        vec![words::harmless(name), words::count(cost.calls), time(cost.own_us), time(cost.total_us)]
    };
    graph.functions.iter().map(row).collect()
}

pub(super) fn thread_rows(threads: &[Thread]) -> Vec<Vec<String>> {
    let row = |thread: &Thread| {
        vec![format!("{} ({})", words::harmless(&thread.name), thread.pid), words::count(thread.switches)]
    };
    threads.iter().take(FUNCTIONS).map(row).collect()
}

fn creation_section(all: &mut Vec<String>, creation: &CreationReport) {
    for (title, delays) in creation.histograms() {
        section(all, title, &["time", "count", ""], delays.rows());
        all.push(delays.glance());
    }
    all.extend([String::new(), creation.beside()]);
}

fn share_rows(graph: &GraphReport) -> Vec<Vec<String>> {
    graph.shares.iter().map(|(part, share)| vec![part.name().to_owned(), words::percent(*share)]).collect()
}

/// Adds a table beneath a title; nothing if it has no rows.
fn section(all: &mut Vec<String>, title: &str, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let head = head.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let mut aligns = vec![Align::Right; rows[0].len()];
    aligns[0] = Align::Left;
    all.extend([String::new(), title.to_owned()]);
    all.extend(lines(&rows, &aligns));
}

/// Microseconds in the unit that suits them.
pub(super) fn time(us: f64) -> String {
    words::time_ns(us * 1000.0)
}

/// Of values in falling order, the one that this share of all values is above.
fn from_top<T>(values: &[T], share: f64) -> Option<&T> {
    values.get((values.len() as f64 * share) as usize)
}
