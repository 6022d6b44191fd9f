//! A sweep as a document, a table and CSV: what came of each offered load, median with smallest and largest
//! round.
//!
//! It must never hide a round: files hold each one.
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use staunch_figures::statistics::Spread;
use staunch_figures::style::{LOUD, paint};
use staunch_figures::table::{Align, lines};
use staunch_figures::words;

use crate::fault::Fault;
use crate::report::document::{self, FORMAT, Figures};
use crate::report::folded::folded;
use crate::report::layout;
use crate::report::machine::Machine;
use crate::sweep_outcome::{SweepOutcome, SweepPoint};

/// A sweep as it stands in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepDocument {
    /// The form's version, as in [`crate::report::Document`].
    pub format: u32,
    /// Version of the program that wrote it.
    pub version: String,
    /// The command line of the first round.
    pub command: String,
    /// When the first round began, RFC 3339 in UTC.
    pub began: String,
    /// The target as it was given.
    pub target: String,
    /// What carried the load.
    pub engine: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What concerns the whole sweep, then warnings of all rounds; those that differ in their figures alone
    /// are one.
    pub warnings: Vec<String>,
    /// What the server was found to answer at most, right answers a second.
    pub capacity_per_s: f64,
    /// Answers after more than this are late; not there when clients waited for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<f64>,
    /// What was offered, growing.
    pub points: Vec<PointDocument>,
}

/// An offered load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointDocument {
    /// Offered load as a factor of the capacity.
    pub factor: f64,
    /// Offered load that was asked for, requests a second.
    pub offered_per_s: f64,
    /// How long each round was.
    pub seconds: Vec<f64>,
    /// What each round measured.
    pub rounds: Vec<Figures>,
}

impl PointDocument {
    fn new(point: &SweepPoint) -> Self {
        Self {
            factor: point.factor,
            offered_per_s: point.offered_per_s,
            seconds: point.rounds.iter().map(|round| round.lasted().as_secs_f64()).collect(),
            rounds: point.rounds.iter().map(Figures::of_main).collect(),
        }
    }

    /// Whether the generator left more than a hundredth of it unsent in some round: the server never saw what
    /// is called offered then, and nothing that was measured is a verdict on it.
    pub fn is_saturated(&self) -> bool {
        self.rounds.iter().any(|round| round.unsent * 100 > round.offered)
    }

    /// Requests that did not end well, but for those that the generator did not send.
    pub(crate) fn failed(&self) -> Option<Spread> {
        self.rate(|round| round.counts.errors() - round.counts.unsent)
    }

    /// A figure over the rounds.
    pub fn spread(&self, of: impl Fn(&Figures) -> Option<f64>) -> Option<Spread> {
        Spread::of(&self.rounds.iter().filter_map(of).collect::<Vec<f64>>())
    }

    /// A count a second over the rounds.
    pub fn rate(&self, of: impl Fn(&Figures) -> u64) -> Option<Spread> {
        let rounds = self.rounds.iter().zip(&self.seconds);
        let rates = rounds.filter(|(_, seconds)| **seconds > 0.0);
        Spread::of(&rates.map(|(round, seconds)| of(round) as f64 / seconds).collect::<Vec<f64>>())
    }
}

impl SweepDocument {
    /// Of a sweep on this machine.
    pub fn new(sweep: &SweepOutcome) -> Self {
        let rounds = || sweep.points.iter().flat_map(|point| &point.rounds);
        let first = rounds().next();
        let words =
            |of: fn(&crate::outcome::RunOutcome) -> &String| first.map(of).cloned().unwrap_or_default();
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: words(|round| &round.command),
            began: first
                .map(|round| humantime::format_rfc3339_millis(round.began).to_string())
                .unwrap_or_default(),
            target: words(|round| &round.target),
            engine: words(|round| &round.engine),
            machine: Machine::here(),
            warnings: [sweep.notes.clone(), folded(rounds().flat_map(|round| &round.warnings))].concat(),
            capacity_per_s: sweep.capacity_per_s,
            patience_ms: sweep.patience.map(|patience| patience.as_secs_f64() * 1e3),
            points: sweep.points.iter().map(PointDocument::new).collect(),
        }
    }
}

impl SweepDocument {
    /// Reads a file written by `staunch load sweep --json`. `name` is the file's, for the errors.
    ///
    /// # Errors
    /// It is no JSON, not of this form, or of another version of it.
    pub fn read(name: &str, text: &str) -> Result<Self, Fault> {
        document::read(name, text, "a sweep")
    }
}

/// A sweep as JSON: see [`SweepDocument`].
pub fn sweep_json(sweep: &SweepOutcome) -> String {
    layout::write(&SweepDocument::new(sweep))
}

/// A row per round, below a header that names each column with its unit.
pub fn sweep_csv(sweep: &SweepOutcome) -> String {
    let mut text = String::from(
        "factor,asked_per_s,round,offered_per_s,in_time_per_s,late_per_s,refused_per_s,reset_per_s,\
         wrong_answer_per_s,timed_out_per_s,failed_per_s,unsent_per_s,unfinished_per_s,\
         latency_p50_ms,latency_p90_ms,latency_p99_ms,latency_p999_ms,latency_max_ms,drift_p999_ms\n",
    );
    for point in &SweepDocument::new(sweep).points {
        for (index, (round, seconds)) in point.rounds.iter().zip(&point.seconds).enumerate() {
            let _ = write!(text, "{},{},{}", point.factor, point.offered_per_s, index + 1);
            let counts = [
                round.offered,
                round.in_time,
                round.late,
                round.refused,
                round.reset,
                round.wrong_answer,
                round.timed_out,
                round.failed,
                round.unsent,
                round.unfinished,
            ];
            for count in counts {
                let rate = if *seconds > 0.0 { count as f64 / seconds } else { 0.0 };
                let _ = write!(text, ",{rate}");
            }
            let latency = &round.latency_ms;
            let times =
                [latency.p50, latency.p90, latency.p99, latency.p999, latency.max, round.drift_ms.p999];
            for time in times {
                let _ = write!(text, ",{}", time.map_or_else(String::new, |ms| ms.to_string()));
            }
            text.push('\n');
        }
    }
    text
}

/// A sweep as a table: a row an offered load.
pub fn sweep_text(sweep: &SweepOutcome, colour: bool) -> String {
    let document = SweepDocument::new(sweep);
    let mut text = format!(
        "{}\n\n",
        paint(
            &format!(
                "{}: capacity {}",
                words::harmless(&document.target),
                words::per_s(document.capacity_per_s)
            ),
            LOUD,
            colour
        )
    );
    for warning in &document.warnings {
        let warning = format!("WARNING: {}", words::harmless(warning));
        let _ = writeln!(text, "{}\n", paint(&warning, staunch_figures::style::BAD, colour));
    }
    let header = ["load", "offered/s", "in time/s", "late/s", "failed/s", "unsent/s", "p50", "p99"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(document.points.iter().map(table_row));
    for line in lines(&rows, &[Align::Right; 8]) {
        let _ = writeln!(text, "{line}");
    }
    text.push_str("\nMedians of the rounds, with smallest and largest in parentheses.\n");
    text
}

fn table_row(point: &PointDocument) -> Vec<String> {
    let spread = |spread: Option<Spread>, words: fn(f64) -> String| {
        spread.map_or_else(|| "-".to_owned(), |spread| spread.text(words))
    };
    let whole = |value: f64| words::count(value.round() as u64);
    vec![
        format!("x{}", words::short(point.factor)),
        spread(point.rate(|round| round.offered), whole),
        spread(point.rate(|round| round.in_time), whole),
        spread(point.rate(|round| round.late), whole),
        spread(point.failed(), whole),
        spread(point.rate(|round| round.counts.unsent), whole),
        spread(point.spread(|round| round.latency_ms.p50), words::time_ms),
        spread(point.spread(|round| round.latency_ms.p99), words::time_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn files_hold_every_round() {
        let sweep = made_up::sweep();
        let rounds: usize = sweep.points.iter().map(|point| point.rounds.len()).sum();
        let csv = sweep_csv(&sweep);
        let columns = csv.lines().next().unwrap().split(',').count();
        assert!(csv.lines().all(|line| line.split(',').count() == columns));
        assert_eq!(csv.lines().count(), rounds + 1);
        let document: SweepDocument = serde_json::from_str(&sweep_json(&sweep)).unwrap();
        assert_eq!(document, SweepDocument::new(&sweep));
        assert_eq!(document.points.iter().map(|point| point.rounds.len()).sum::<usize>(), rounds);
        assert_eq!(document.warnings.len(), 1);
    }

    #[test]
    fn the_table_has_a_row_an_offered_load() {
        let sweep = made_up::sweep();
        let text = sweep_text(&sweep, false);
        for point in &sweep.points {
            let load = format!("x{} ", words::short(point.factor));
            assert_eq!(text.lines().filter(|line| line.trim_start().starts_with(&load)).count(), 1, "{text}");
        }
        assert!(text.contains(" to ") && !text.contains('\u{1b}'));
        let nothing =
            SweepOutcome { capacity_per_s: 0.0, patience: None, notes: Vec::new(), points: Vec::new() };
        assert!(sweep_text(&nothing, false).contains("capacity 0/s"));
        assert_eq!(sweep_csv(&nothing).lines().count(), 1);
    }
}
