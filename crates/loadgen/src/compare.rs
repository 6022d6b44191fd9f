//! Two runs, or two groups of runs, side by side: how much better or worse the second is, and how sure that
//! is.
//!
//! It must never call a difference real that chance explains: a verdict needs an interval of 95 % that leaves
//! out no difference at all. Nor may it compare what was measured differently without saying so.

mod samples;
mod text;
use serde::Serialize;
use staunch_figures::statistics::{self, Interval};

use crate::fault::Fault;
use crate::report::Document;
use samples::{METRICS, Metric, Samples};

pub use samples::{RUNS_MIN, Side};
pub use text::{json, text};

/// What comparing has found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The name of the first side.
    pub a: String,
    /// The name of the second side.
    pub b: String,
    /// How the intervals were made.
    pub method: String,
    /// Beyond how many percent a change for the worse is too much.
    pub tolerance_percent: f64,
    /// A row a metric.
    pub rows: Vec<Row>,
    /// What the reader has to know before believing it.
    pub notes: Vec<String>,
    /// Whether there are runs enough to judge by. If not, nothing has failed.
    pub judged: bool,
    /// Whether any metric is worse beyond the tolerance: the exit code.
    pub failed: bool,
}

/// What becomes of a comparison of one run a side. Its batches tell how steady each run was, not how much two
/// runs of the same server differ: minutes apart, that is often more than any tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Single {
    /// The difference is shown, and nothing is judged by it.
    Show,
    /// The difference is judged, with an interval made of batches.
    Judge,
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name with its unit, for instance `p99 ms`.
    pub metric: String,
    /// The first side's mean.
    pub a: f64,
    /// The second side's mean.
    pub b: f64,
    /// How much the second is above (+) or below (-) the first.
    pub difference_percent: f64,
    /// The 95 % interval of that, its lower end; `None` where there are too few values for one.
    pub low_percent: Option<f64>,
    /// Its upper end.
    pub high_percent: Option<f64>,
    /// What that means.
    pub verdict: Difference,
    /// Whether it is worse beyond the tolerance.
    pub failed: bool,
}

/// What a difference means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The second side is better.
    Better,
    /// The second side is worse.
    Worse,
    /// Chance explains the difference.
    NotSeparable,
}

/// Compares the second side with the first. A metric fails when it is worse and its difference is larger than
/// `tolerance_percent`.
///
/// With several runs on each side, their figures are compared by Welch's test. With one run on each, nothing
/// is judged unless `single` says so; then it is cut into batches of steps, whose means are compared (see
/// [`crate::report::Moments`]).
///
/// Each metric has its own interval of 95 %. So of five metrics about one comparison in ten of equal servers
/// finds some metric worse; it is the tolerance that keeps such findings from failing.
///
/// # Errors
/// A side has no run; one has a single run and the other several; a run that is to be judged is too short to
/// be cut into batches.
pub fn compare(a: &Side, b: &Side, tolerance_percent: f64, single: Single) -> Result<Comparison, Fault> {
    let judged = single == Single::Judge || !samples::are_single(a, b);
    let samples = Samples::new(a, b, judged)?;
    let mut notes = differences(a, b);
    let mut rows = Vec::new();
    for metric in METRICS {
        match row(metric, &samples, tolerance_percent, judged) {
            Some(row) => {
                notes.extend(samples.correlation_note(metric));
                rows.push(row);
            }
            None => notes.extend(samples.missing_note(metric)),
        }
    }
    if rows.is_empty() {
        notes.push("Nothing could be compared: it counts as failed".to_owned());
    }
    Ok(Comparison {
        a: a.name.clone(),
        b: b.name.clone(),
        method: samples.method(),
        tolerance_percent,
        judged,
        failed: rows.is_empty() || rows.iter().any(|row| row.failed),
        rows,
        notes,
    })
}

fn row(metric: &Metric, samples: &Samples, tolerance_percent: f64, judged: bool) -> Option<Row> {
    let (a, b) = samples.of(metric)?;
    let interval = statistics::ratio(&a, &b);
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let verdict = interval.map_or(Difference::NotSeparable, |interval| verdict(metric, &interval));
    let ratio = match interval {
        Some(interval) => interval.ratio,
        None if judged => return None,
        None => Some(statistics::mean(&b) / statistics::mean(&a)).filter(|ratio| ratio.is_finite())?,
    };
    let difference_percent = percent(ratio);
    Some(Row {
        metric: samples.name(metric),
        a: statistics::mean(&a),
        b: statistics::mean(&b),
        difference_percent,
        low_percent: interval.map(|interval| percent(interval.low)),
        high_percent: interval.map(|interval| percent(interval.high)),
        verdict,
        failed: judged && verdict == Difference::Worse && difference_percent.abs() > tolerance_percent,
    })
}

fn verdict(metric: &Metric, interval: &Interval) -> Difference {
    match (interval.low > 1.0, interval.high < 1.0) {
        (false, false) => Difference::NotSeparable,
        (is_above, _) if is_above == metric.is_more_better => Difference::Better,
        _ => Difference::Worse,
    }
}

/// What differs besides the figures, and what the runs themselves warn of.
fn differences(a: &Side, b: &Side) -> Vec<String> {
    let words: Vec<_> = a.runs.iter().chain(&b.runs).map(circumstances).collect();
    let mut notes = Vec::new();
    let offered = a.runs[0].main.offered;
    let all_as_many = a.runs.iter().chain(&b.runs).all(|run| run.main.offered == offered);
    for (kind, (name, one)) in words[0].iter().enumerate() {
        // How long as many requests took is what was measured.
        if *name == "lengths" && all_as_many {
            continue;
        }
        if let Some(run) = words.iter().find(|run| run[kind].1 != *one) {
            notes.push(format!("The {name} differ: `{one}` and `{}`", run[kind].1));
        }
    }
    for side in [a, b] {
        let warned = side.runs.iter().filter(|run| !run.warnings.is_empty()).count();
        if let Some(warning) = side.runs.iter().flat_map(|run| &run.warnings).next() {
            let (count, name) = (side.runs.len(), &side.name);
            notes.push(format!("{warned} of {count} runs of {name} have warnings, the first: {warning}"));
        }
    }
    notes
}

/// What has to be the same in two runs, or their figures differ for another reason than the server.
fn circumstances(run: &Document) -> [(&'static str, String); 5] {
    let lanes = run.lanes.iter().map(|lane| format!("{}: {}", lane.name, lane.description));
    let machine = format!("{}, {} processors", run.machine.processor, run.machine.processors);
    [
        ("lanes", lanes.collect::<Vec<String>>().join("; ")),
        ("engines of the generator", run.engine.clone()),
        ("machines", machine),
        ("kernels", run.machine.kernel.clone()),
        ("lengths", format!("{:.1} s", run.seconds)),
    ]
}

#[cfg(test)]
mod tests;
