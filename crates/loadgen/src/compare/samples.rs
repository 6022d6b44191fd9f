//! From runs to samples: a figure of each run, or of each batch of a single one.
//!
//! A single run is cut into batches, whose means are nearly independent when batches are long: the method of
//! batch means (A. M. Law, Simulation Modeling and Analysis, chapter 9; how many: B. Schmeiser,
//! Operations Research 30, 1982, who finds 10 to 30 enough). It must never use steps after the last request
//! was offered.
use staunch_figures::statistics::correlation;

use crate::fault::Fault;
use crate::report::{Document, PROCESS_CPU};

/// Runs of one kind, repeated or single.
#[derive(Debug, Clone)]
pub struct Side {
    /// How it is called, for instance its files.
    pub name: String,
    /// The reports of the runs.
    pub runs: Vec<Document>,
}

/// Batches of a run that is long enough for batches of [`STEPS_LONG_MIN`] steps each.
const BATCHES_MAX: usize = 20;
/// Batches of a shorter run: with fewer, the interval says nothing.
const BATCHES_MIN: usize = 10;
/// Steps of a batch in a run that is cut into [`BATCHES_MAX`]: half a second.
const STEPS_LONG_MIN: usize = 5;
/// Steps of a batch at least: one alone is not a mean.
const STEPS_MIN: usize = 2;

/// Runs a side from which on an interval says something: with two, Student's t is up to 12.7, with three 2.8
/// to 4.3.
pub const RUNS_MIN: usize = 3;

/// Whether there is but one run a side.
pub(super) fn are_single(a: &Side, b: &Side) -> bool {
    (a.runs.len(), b.runs.len()) == (1, 1)
}

/// A figure that is compared.
#[derive(Debug)]
pub(super) struct Metric {
    name: &'static str,
    unit: &'static str,
    /// Whether a larger value is a better one.
    pub(super) is_more_better: bool,
    whole: fn(&Document) -> Option<f64>,
    part: fn(&Document, std::ops::Range<usize>) -> Option<f64>,
}

/// What is compared, in the order of the table.
pub(super) static METRICS: &[Metric] = &[
    Metric {
        name: "rate",
        unit: "/s",
        is_more_better: true,
        whole: |run| Some(run.main.rate_per_s),
        part: |run, steps| {
            let seconds = steps.len() as f64 * run.moments.step_ms as f64 / 1e3;
            Some(run.moments.count("in_time")[steps].iter().sum::<u64>() as f64 / seconds)
        },
    },
    Metric {
        name: "p50",
        unit: "ms",
        is_more_better: false,
        whole: |run| run.main.latency_ms.p50,
        part: |run, steps| weighted(run, &run.moments.latency_ms.p50, steps),
    },
    Metric {
        name: "p90",
        unit: "ms",
        is_more_better: false,
        whole: |run| run.main.latency_ms.p90,
        part: |run, steps| weighted(run, &run.moments.latency_ms.p90, steps),
    },
    Metric {
        name: "p99",
        unit: "ms",
        is_more_better: false,
        whole: |run| run.main.latency_ms.p99,
        part: |run, steps| weighted(run, &run.moments.latency_ms.p99, steps),
    },
    Metric {
        name: "CPU a right answer",
        unit: "us",
        is_more_better: false,
        whole: |run| cpu_us(run, 0..run.moments.len()),
        part: cpu_us,
    },
];

/// The samples of both sides.
pub(super) struct Samples<'a> {
    a: &'a Side,
    b: &'a Side,
    batches: Option<usize>,
}

impl<'a> Samples<'a> {
    /// Of two sides. A single run a side is cut into batches if it is to be judged.
    pub(super) fn new(a: &'a Side, b: &'a Side, judged: bool) -> Result<Self, Fault> {
        let batches = match (a.runs.len(), b.runs.len()) {
            (0, _) | (_, 0) => return Err(Fault::new("each side needs at least one run")),
            (1, 1) if judged => Some(batches_of(a)?.min(batches_of(b)?)),
            (1, 1) => None,
            (1, count) | (count, 1) => {
                return Err(Fault::new(format!(
                    "one side has a single run, the other {count}: give one a side, or at least two a side"
                )));
            }
            _ => None,
        };
        Ok(Self { a, b, batches })
    }

    /// How the intervals are made, in words.
    pub(super) fn method(&self) -> String {
        match self.batches {
            Some(batches) => format!(
                "one run a side, cut into {batches} batches; Welch's t on the logarithms of batch means, \
                 95 %; percentiles are means of those of the run's steps"
            ),
            None if are_single(self.a, self.b) => "one run a side, so no interval".to_owned(),
            None => format!(
                "{} and {} runs; Welch's t on the logarithms of their figures, 95 %",
                self.a.runs.len(),
                self.b.runs.len()
            ),
        }
    }

    /// The metric's name for the table, with its unit.
    pub(super) fn name(&self, metric: &Metric) -> String {
        format!("{} {}", metric.name, metric.unit)
    }

    /// Both sides' samples of a metric; `None` when some are missing.
    pub(super) fn of(&self, metric: &Metric) -> Option<(Vec<f64>, Vec<f64>)> {
        Some((self.side(self.a, metric)?, self.side(self.b, metric)?))
    }

    fn side(&self, side: &Side, metric: &Metric) -> Option<Vec<f64>> {
        match self.batches {
            None => side.runs.iter().map(metric.whole).collect(),
            Some(batches) => {
                let run = &side.runs[0];
                let steps = steps_of(run);
                let length = steps / batches;
                // What does not fill a batch is left out at the beginning, where the run warms up.
                let first = steps - length * batches;
                (0..batches)
                    .map(|batch| first + batch * length)
                    .map(|start| (metric.part)(run, start..start + length))
                    .collect()
            }
        }
    }

    /// What is said when batches are not independent: the interval is then too narrow.
    pub(super) fn correlation_note(&self, metric: &Metric) -> Option<String> {
        let limit = 2.0 / (self.batches? as f64).sqrt();
        let (a, b) = self.of(metric)?;
        let largest = correlation(&a).max(correlation(&b));
        (largest > limit).then(|| {
            format!(
                "Batches of {} follow each other (correlation {largest:.2}), so its interval is too narrow: \
                 compare several runs a side",
                metric.name
            )
        })
    }

    /// What is said when a metric cannot be compared. Nothing when the server was not probed.
    pub(super) fn missing_note(&self, metric: &Metric) -> Option<String> {
        let is_probed = |run: &Document| run.moments.server(PROCESS_CPU).is_some();
        if metric.name.starts_with("CPU") && !self.a.runs.iter().chain(&self.b.runs).any(is_probed) {
            return None;
        }
        let place = if self.batches.is_some() { "batch" } else { "run" };
        Some(format!("{} cannot be compared: it was not measured in every {place}", metric.name))
    }
}

/// Into how many batches a side's only run can be cut.
fn batches_of(side: &Side) -> Result<usize, Fault> {
    let run = &side.runs[0];
    let steps = steps_of(run);
    if steps >= BATCHES_MAX * STEPS_LONG_MIN {
        return Ok(BATCHES_MAX);
    }
    if steps >= BATCHES_MIN * STEPS_MIN {
        return Ok(BATCHES_MIN);
    }
    Err(Fault::new(format!(
        "{} has {steps} steps of {} ms while requests were offered: a single run needs at least {}, or give \
         several runs a side",
        side.name,
        run.moments.step_ms,
        BATCHES_MIN * STEPS_MIN
    )))
}

/// Steps that ended while requests were offered.
fn steps_of(run: &Document) -> usize {
    let end_ms = run.seconds * 1e3 + run.moments.step_ms as f64 / 2.0;
    run.moments.at_ms.iter().take_while(|at| **at as f64 <= end_ms).count()
}

/// Right answers of a step, late ones included.
fn answers(run: &Document, step: usize) -> u64 {
    run.moments.count("in_time")[step] + run.moments.count("late")[step]
}

/// The mean of a column, each step weighing as much as it had answers.
fn weighted(run: &Document, column: &[Option<f64>], steps: std::ops::Range<usize>) -> Option<f64> {
    let (mut sum, mut weight) = (0.0, 0.0);
    for step in steps {
        if let Some(value) = column[step] {
            let answers = answers(run, step) as f64;
            sum += value * answers;
            weight += answers;
        }
    }
    (weight > 0.0).then(|| sum / weight)
}

/// The server process's time on processors for each right answer.
fn cpu_us(run: &Document, steps: std::ops::Range<usize>) -> Option<f64> {
    let column = run.moments.server(PROCESS_CPU)?;
    let ms = column[steps.clone()].iter().copied().sum::<Option<f64>>()?;
    let answers: u64 = steps.map(|step| answers(run, step)).sum();
    (answers > 0).then(|| ms * 1e3 / answers as f64)
}
