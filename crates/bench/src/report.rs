//! What was measured: samples, figures, bars and the report that is stored.
//!
//! It owns the words and the arithmetic of results. It must never measure, print or read a file.
use serde::{Deserialize, Serialize};
use staunch_figures::statistics::{Spread, median};

/// The samples of one measure of one server, one per round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Figure {
    /// Name of the server.
    pub(super) server: String,
    /// What was measured, for instance "CPU per request".
    pub(super) measure: String,
    /// Its unit, for instance "us".
    pub(super) unit: String,
    /// A sample per round, in the order of the rounds.
    pub(super) samples: Vec<f64>,
}

/// Which side of the limit is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Direction {
    /// The figure must be at most the limit.
    AtMost,
    /// The figure must be at least the limit.
    AtLeast,
}

/// How a bar ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BarVerdict {
    /// The median is on the good side.
    Pass,
    /// The median is on the bad side.
    Missed,
    /// There was nothing to judge: the server or its rival was left out or failed.
    NotMeasured,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bar {
    /// Whose promise.
    pub(super) server: String,
    /// In words, for instance "CPU per request, of nginx".
    pub(super) promise: String,
    /// Which side is good.
    pub(super) direction: Direction,
    /// The value that decides whether the bar is met.
    pub(super) limit: f64,
    /// Unit of limit and samples; empty for a ratio.
    pub(super) unit: String,
    /// What was measured, one per round.
    pub(super) samples: Vec<f64>,
    /// The verdict on the median of the samples.
    pub(super) verdict: BarVerdict,
}

impl Bar {
    /// Judges samples by their median.
    pub(super) fn judge(
        server: &str,
        promise: &str,
        direction: Direction,
        limit: f64,
        unit: &str,
        samples: Vec<f64>,
    ) -> Self {
        let verdict = match (median(&samples), direction) {
            (None, _) => BarVerdict::NotMeasured,
            (Some(median), Direction::AtMost) if median <= limit => BarVerdict::Pass,
            (Some(median), Direction::AtLeast) if median >= limit => BarVerdict::Pass,
            _ => BarVerdict::Missed,
        };
        let (server, promise, unit) = (server.to_owned(), promise.to_owned(), unit.to_owned());
        Self { server, promise, direction, limit, unit, samples, verdict }
    }
}

/// What one scenario gave.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ScenarioOutcome {
    /// Name on the command line.
    pub(super) name: String,
    /// A sentence: what was done.
    pub(super) title: String,
    /// Everything measured. The first measure is the one that is plotted first.
    pub(super) figures: Vec<Figure>,
    /// The promises.
    pub(super) bars: Vec<Bar>,
    /// What a reader must know: commands used, disturbances, what was left out.
    pub(super) notes: Vec<String>,
    /// Causes outside the server that made figures worse: time that the host took, a generator at its limit.
    #[serde(default)]
    pub(super) disturbances: Vec<String>,
    /// What went wrong. A scenario with errors has failed whatever its bars say.
    pub(super) errors: Vec<String>,
    /// Why it was left out, when this machine has not what it needs. That is no failure.
    #[serde(default)]
    pub(super) skipped: Option<String>,
}

impl ScenarioOutcome {
    /// An empty outcome.
    pub(super) fn new(name: &str, title: &str) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), ..Self::default() }
    }

    /// Adds one sample to a figure, which is made when it is the first.
    pub(super) fn add(&mut self, server: &str, measure: &str, unit: &str, sample: f64) {
        let known =
            self.figures.iter_mut().find(|figure| figure.server == server && figure.measure == measure);
        match known {
            Some(figure) => figure.samples.push(sample),
            None => self.figures.push(Figure {
                server: server.to_owned(),
                measure: measure.to_owned(),
                unit: unit.to_owned(),
                samples: vec![sample],
            }),
        }
    }

    /// The samples of one measure of one server; empty when there are none.
    pub(super) fn samples(&self, server: &str, measure: &str) -> &[f64] {
        let known = self.figures.iter().find(|figure| figure.server == server && figure.measure == measure);
        known.map_or(&[], |figure| &figure.samples)
    }

    /// Judges one measure of one server, which is a promise.
    pub(super) fn judge(
        &mut self,
        server: &str,
        measure: &str,
        direction: Direction,
        limit: f64,
        unit: &str,
    ) {
        let samples = self.samples(server, measure).to_vec();
        self.bars.push(Bar::judge(server, measure, direction, limit, unit, samples));
    }

    /// Ratio of two servers round by round, so that a slow drift of the machine falls out. Empty when either
    /// is missing.
    pub(super) fn ratios(&self, server: &str, rival: &str, measure: &str) -> Vec<f64> {
        let pairs = self.samples(server, measure).iter().zip(self.samples(rival, measure));
        pairs.filter(|(_, rival)| **rival > 0.0).map(|(own, rival)| own / rival).collect()
    }

    /// Which of these servers has the smallest median of a measure.
    pub(super) fn cheapest<'n>(&self, servers: &[&'n str], measure: &str) -> Option<&'n str> {
        let medians =
            servers.iter().filter_map(|server| Some((median(self.samples(server, measure))?, *server)));
        medians.min_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, server)| server)
    }

    /// Median and ends of one measure of one server.
    pub(super) fn spread(&self, server: &str, measure: &str) -> Option<Spread> {
        Spread::of(self.samples(server, measure))
    }

    /// The measures, each once, in the order in which they came.
    pub(super) fn measures(&self) -> Vec<(&str, &str)> {
        let mut measures = Vec::new();
        for figure in &self.figures {
            let pair = (figure.measure.as_str(), figure.unit.as_str());
            if !measures.contains(&pair) {
                measures.push(pair);
            }
        }
        measures
    }

    /// Leaves the scenario out.
    pub(super) fn skip(mut self, reason: impl Into<String>) -> Self {
        self.skipped = Some(reason.into());
        self
    }

    /// Notes something once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Says what made figures worse, once.
    pub(super) fn disturbed(&mut self, by: String) {
        if !self.disturbances.contains(&by) {
            self.disturbances.push(by);
        }
    }

    /// Whether every bar passed and nothing went wrong.
    pub(super) fn passed(&self) -> bool {
        self.errors.is_empty() && self.bars.iter().all(|bar| bar.verdict == BarVerdict::Pass)
    }
}

/// A run of the benchmark, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Report {
    /// When it began, UTC, `YYYY-MM-DD HH:MM`.
    pub(super) began: String,
    /// Short hash of the commit, with `-dirty` when the tree had changes, `-given` when staunch was not built
    /// from it in this run.
    pub(super) commit: String,
    /// The command that was given.
    pub(super) command: String,
    /// CPU model, cores, kernel and memory, as names and values.
    pub(super) machine: Vec<(String, String)>,
    /// Name and version of every server and load tool.
    pub(super) versions: Vec<(String, String)>,
    /// Rounds of each scenario.
    pub(super) rounds: u32,
    /// Seconds of each measurement.
    pub(super) seconds: u32,
    /// The outcome of each scenario.
    pub(super) outcomes: Vec<ScenarioOutcome>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_judged_by_its_median() {
        let at_most = |samples: &[f64]| {
            Bar::judge("own", "cost", Direction::AtMost, 0.65, "", samples.to_vec()).verdict
        };
        assert_eq!(at_most(&[0.6, 0.64, 9.0]), BarVerdict::Pass);
        assert_eq!(at_most(&[0.1, 0.66, 0.67]), BarVerdict::Missed);
        assert_eq!(at_most(&[]), BarVerdict::NotMeasured);
        assert_eq!(
            Bar::judge("own", "rate", Direction::AtLeast, 3.0, "", vec![3.0]).verdict,
            BarVerdict::Pass
        );
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        for (own, rival) in [(1.0, 2.0), (3.0, 4.0)] {
            outcome.add("own", "cost", "us", own);
            outcome.add("rival", "cost", "us", rival);
        }
        assert_eq!(outcome.ratios("own", "rival", "cost"), [0.5, 0.75]);
        assert_eq!(outcome.cheapest(&["rival", "own"], "cost"), Some("own"));
        assert!(outcome.ratios("own", "absent", "cost").is_empty());
        assert_eq!(outcome.measures(), [("cost", "us")]);
    }

    #[test]
    fn an_error_or_an_unmeasured_bar_is_no_pass() {
        let mut outcome = ScenarioOutcome::new("name", "title");
        assert!(outcome.passed());
        outcome.bars.push(Bar::judge("own", "cost", Direction::AtMost, 1.0, "", Vec::new()));
        assert!(!outcome.passed());
        outcome.bars.clear();
        outcome.errors.push("connection refused".to_owned());
        assert!(!outcome.passed());
    }

    #[test]
    fn what_was_left_out_has_not_failed() {
        let outcome = ScenarioOutcome::new("name", "title").skip("no such program");
        assert!(outcome.passed());
        assert_eq!(outcome.skipped.as_deref(), Some("no such program"));
    }
}
