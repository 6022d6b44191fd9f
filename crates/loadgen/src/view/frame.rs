//! What the view shows, as lines: pure, from where the run stands.
//!
//! It owns their order and their widths. No line is longer than the terminal is wide, or drawing over it
//! would leave rests behind.
use std::collections::VecDeque;
use std::time::Duration;

use console::truncate_str;
use staunch_figures::spark;
use staunch_figures::style::{BAD, CARE, LOUD, QUIET, paint};
use staunch_figures::words;

use crate::outcome::{Counts, Moment};
use crate::report::{ENDS, is_error};

/// Width of a line's name, and the blank behind it.
const NAME_WIDTH: usize = 11;
/// A bar is not wider than this; more shows nothing more.
const BAR_WIDTH_MAX: usize = 40;

/// What the view is told before the run.
#[derive(Debug, Clone)]
pub struct Facts {
    /// What is done, for instance `open loop, 10000/s Poisson`.
    pub title: String,
    /// The target as it was given.
    pub target: String,
    /// How long requests are offered; `None`: until stopped.
    pub duration: Option<Duration>,
    /// Which keys do what, shown on the last line; empty: no keys are read.
    pub keys: String,
}

/// Where the run stands.
pub(super) struct Standing<'a> {
    pub(super) facts: &'a Facts,
    pub(super) factor: f64,
    pub(super) total: &'a Counts,
    pub(super) recent: Recent,
    pub(super) kept: &'a VecDeque<Moment>,
}

/// The last second.
#[derive(Debug, Default)]
pub(super) struct Recent {
    at_ms: u64,
    seconds: f64,
    counts: Counts,
    connections: u64,
    in_flight: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    drift_max_ns: u64,
}

impl Recent {
    /// Of steps, the last first. Percentiles are the largest of the steps.
    pub(super) fn of<'a>(steps: impl Iterator<Item = &'a Moment>) -> Self {
        let mut recent = Self::default();
        for (index, step) in steps.enumerate() {
            if index == 0 {
                recent.at_ms = step.at_ms;
                recent.connections = step.connections;
                recent.in_flight = step.in_flight;
            }
            recent.seconds += crate::outcome::MOMENT_MS as f64 / 1e3;
            recent.counts += step.counts;
            recent.p50_ns = recent.p50_ns.max(step.latency.p50_ns);
            recent.p99_ns = recent.p99_ns.max(step.latency.p99_ns);
            recent.max_ns = recent.max_ns.max(step.latency.max_ns);
            recent.drift_max_ns = recent.drift_max_ns.max(step.drift_max_ns);
        }
        recent
    }

    fn rate(&self, count: u64) -> String {
        if self.seconds > 0.0 { words::per_s((count as f64 / self.seconds).round()) } else { "-".to_owned() }
    }
}

/// The lines of a terminal.
pub(super) fn lines(standing: &Standing<'_>, width: usize, colour: bool) -> Vec<String> {
    let recent = &standing.recent;
    let ns = |value: u64| if value == 0 { "-".to_owned() } else { words::time_ns(value as f64) };
    let pairs = |pairs: &[(&str, String)]| {
        pairs.iter().map(|(name, value)| format!("{name} {value:<10}")).collect::<Vec<String>>().join(" ")
    };
    let (rates, latency, held) = (
        pairs(&[
            ("offered", recent.rate(recent.counts.offered)),
            ("in time", recent.rate(recent.counts.in_time)),
        ]),
        pairs(&[("p50", ns(recent.p50_ns)), ("p99", ns(recent.p99_ns)), ("max", ns(recent.max_ns))]),
        pairs(&[
            ("open", words::count(recent.connections)),
            ("in flight", words::count(recent.in_flight)),
            ("drift", ns(recent.drift_max_ns)),
        ]),
    );
    let title =
        format!("{}  {}", words::harmless(&standing.facts.target), words::harmless(&standing.facts.title));
    let code = if standing.total.errors() > 0 { BAD } else { QUIET };
    let mut lines = vec![
        (title, LOUD),
        (progress(standing, width), ""),
        (named("rate", &rates), ""),
        (named("latency", &latency), ""),
        (named("p99", &sparkline(standing, width)), ""),
        (named("held", &held), if recent.drift_max_ns > 1_000_000 { CARE } else { "" }),
        (named("errors", &errors(standing.total)), code),
    ];
    if !standing.facts.keys.is_empty() {
        lines.push((words::harmless(&standing.facts.keys), QUIET));
    }
    let fit = |line: String| truncate_str(line.trim_end(), width, "…").into_owned();
    lines
        .into_iter()
        .map(|(line, code)| (fit(line), code))
        .map(|(line, code)| painted(&line, code, colour))
        .collect()
}

/// The one line a second of what is no terminal.
pub(super) fn line(standing: &Standing<'_>) -> String {
    let recent = &standing.recent;
    let p99 = if recent.p99_ns == 0 { "-".to_owned() } else { words::time_ns(recent.p99_ns as f64) };
    format!(
        "{:6.1} s  offered {:>10}  in time {:>10}  p99 {:>8}  drift {:>8}  open {:>7}  errors {}",
        recent.at_ms as f64 / 1e3,
        recent.rate(recent.counts.offered),
        recent.rate(recent.counts.in_time),
        p99,
        words::time_ns(recent.drift_max_ns as f64),
        words::count(recent.connections),
        errors(standing.total)
    )
}

fn painted(line: &str, code: &str, colour: bool) -> String {
    paint(line, code, colour && !code.is_empty())
}

fn named(name: &str, words: &str) -> String {
    format!("{name:<NAME_WIDTH$}{words}")
}

fn progress(standing: &Standing<'_>, width: usize) -> String {
    let elapsed = standing.recent.at_ms as f64 / 1e3;
    let factor =
        if standing.factor == 1.0 { String::new() } else { format!("   rate x{:.2}", standing.factor) };
    let Some(duration) = standing.facts.duration else {
        return named(&format!("{elapsed:.1} s"), &factor);
    };
    let total = duration.as_secs_f64();
    let share = if total > 0.0 { (elapsed / total).min(1.0) } else { 1.0 };
    let words = format!("{elapsed:.1} s of {total:.1} s  {:.0} %{factor}", share * 100.0);
    let room = width.saturating_sub(NAME_WIDTH + words.chars().count() + 3).min(BAR_WIDTH_MAX);
    if room < 5 {
        return words;
    }
    let full = (share * room as f64).round() as usize;
    named("time", &format!("[{}{}] {words}", "#".repeat(full), "-".repeat(room - full)))
}

/// p99 of the steps, with the range it is drawn in.
fn sparkline(standing: &Standing<'_>, width: usize) -> String {
    let values: Vec<f64> = standing.kept.iter().map(|step| step.latency.p99_ns as f64).collect();
    let present = || values.iter().copied().filter(|value| *value > 0.0);
    let highest = present().fold(0.0, f64::max);
    if highest == 0.0 {
        return "-".to_owned();
    }
    let lowest = present().fold(f64::INFINITY, f64::min);
    let range = format!("  {} to {}", words::time_ns(lowest), words::time_ns(highest));
    let room = width.saturating_sub(NAME_WIDTH + range.chars().count());
    format!("{}{range}", spark::line(&values, room))
}

/// Errors since the beginning, by kind.
fn errors(total: &Counts) -> String {
    let kinds: Vec<String> = ENDS
        .iter()
        .filter(|end| is_error(end) && end.get(total) > 0)
        .map(|end| format!("{} {}", end.words, words::count(end.get(total))))
        .collect();
    if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") }
}
