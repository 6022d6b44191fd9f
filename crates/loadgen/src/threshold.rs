//! Thresholds: `--fail-if 'p99>20ms'` makes a run fail when it was measured so.
//!
//! It must never let a run pass for want of a measurement: a threshold on something that was not measured
//! fails.

mod expression;
use serde::Serialize;
use staunch_figures::words;

use crate::fault::Fault;
use crate::histogram::Histogram;
use crate::outcome::{Counts, RunOutcome, Times};
use crate::report::is_error;
use expression::{Expression, Metric, Operator, Unit};

/// A condition under which a run has failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    expression: Expression,
}

/// What became of a threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// As it was written.
    pub expression: String,
    /// What was measured, in the threshold's unit and with it; `-` when nothing was.
    pub measured: String,
    /// Whether the run failed by it.
    pub failed: bool,
}

impl std::fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Threshold {
    /// Reads `metric operator value`, for instance `p99>20ms`, `connect.p99.9 >= 1s`, `errors>1%`,
    /// `rate<1000/s`.
    ///
    /// Metrics: `p50`, `p99.9` and so on, `max` and `mean` of the latency, or of `connect.`, `handshake.`,
    /// `first_byte.` and `drift.`, in `us`, `ms` or `s`; every count of [`Counts`], `errors` and `status.503`
    /// as a number, in `%` of what was offered or as `/s`; `rate` and `goodput` for what was answered in
    /// time. Operators: `>`, `>=`, `<` and `<=`.
    ///
    /// # Errors
    /// Names the place, counted from 1, and what could stand there.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        Ok(Self { text: text.to_owned(), expression: expression::parse(text)? })
    }

    /// Whether it holds where times are short or nothing failed: then it was most likely meant the other way.
    pub fn is_met_by_good_runs(&self) -> bool {
        let Expression { metric, operator, .. } = &self.expression;
        let is_bad = match metric {
            Metric::Time { .. } | Metric::Errors => true,
            Metric::Count(field) => is_error(field) || field.name == "late",
            Metric::Status(_) => false,
        };
        is_bad && matches!(operator, Operator::Below | Operator::AtMost)
    }

    /// Judges a run by its main lane.
    pub fn judge(&self, outcome: &RunOutcome) -> Judgement {
        let Expression { metric, operator, limit, unit } = &self.expression;
        let measured = measure(metric, *unit, outcome);
        Judgement {
            expression: self.text.clone(),
            measured: measured.map_or_else(|| "-".to_owned(), |value| say(value, *unit)),
            failed: measured.is_none_or(|value| operator.holds(value, *limit)),
        }
    }
}

/// The measured value in base units: nanoseconds, a share in percent, a number, a number a second.
fn measure(metric: &Metric, unit: Unit, outcome: &RunOutcome) -> Option<f64> {
    let counts = outcome.counts();
    match metric {
        Metric::Time { kind, figure } => {
            let times = outcome.times();
            time(kind.of(&times), *figure)
        }
        Metric::Errors => in_unit(counts.errors(), unit, &counts, outcome),
        Metric::Count(field) => in_unit(field.get(&counts), unit, &counts, outcome),
        Metric::Status(status) => {
            let count = outcome.main().and_then(|lane| lane.statuses.get(status)).copied().unwrap_or(0);
            in_unit(count, unit, &counts, outcome)
        }
    }
}

fn time(histogram: &Histogram, figure: expression::Figure) -> Option<f64> {
    use expression::Figure;
    (histogram.count() > 0).then(|| match figure {
        Figure::Percentile(percentile) => histogram.percentile(percentile) as f64,
        Figure::Max => histogram.max() as f64,
        Figure::Mean => histogram.mean(),
    })
}

fn in_unit(count: u64, unit: Unit, counts: &Counts, outcome: &RunOutcome) -> Option<f64> {
    let seconds = outcome.lasted().as_secs_f64();
    match unit {
        Unit::Percent => (counts.offered > 0).then(|| count as f64 * 100.0 / counts.offered as f64),
        Unit::PerSecond => (seconds > 0.0).then(|| count as f64 / seconds),
        Unit::Number | Unit::Nanoseconds => Some(count as f64),
    }
}

fn say(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => words::time_ns(value),
        Unit::Percent => format!("{} %", words::number(value)),
        Unit::PerSecond => words::per_s(value),
        Unit::Number => words::number(value),
    }
}

impl expression::TermKind {
    fn of(self, times: &Times) -> &Histogram {
        match self {
            Self::Complete => &times.complete,
            Self::Connect => &times.connect,
            Self::Handshake => &times.handshake,
            Self::FirstByte => &times.first_byte,
            Self::Drift => &times.drift,
        }
    }
}

impl Operator {
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::outcome::{LaneOutcome, TlsOutcome};

    /// 1000 requests in 10 s: 900 in time after 1, 2, ... 900 ms, 60 given up, 40 refused; 5 answers were
    /// 503.
    fn outcome() -> RunOutcome {
        let counts = Counts {
            offered: 1_000,
            attempted: 1_000,
            in_time: 900,
            timed_out: 60,
            refused: 35,
            wrong_answer: 5,
            ..Counts::default()
        };
        let mut times = Times::default();
        (1..=900).for_each(|ms| times.complete.record(ms * 1_000_000));
        times.connect.record(70_000);
        let lane = LaneOutcome {
            name: "one".to_owned(),
            description: String::new(),
            lasted: Duration::from_secs(10),
            held: None,
            counts,
            statuses: BTreeMap::from([(200, 900), (503, 5)]),
            tls: TlsOutcome::default(),
            times,
        };
        RunOutcome {
            command: String::new(),
            began: SystemTime::UNIX_EPOCH,
            target: String::new(),
            engine: String::new(),
            lanes: vec![lane],
            floods: Vec::new(),
            moments: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn what_a_good_run_meets_is_known() {
        for text in ["p95<500ms", "errors<1%", "timed_out<=3", "late<5", "connect.p99<1ms"] {
            assert!(Threshold::parse(text).unwrap().is_met_by_good_runs(), "{text}");
        }
        for text in ["p95>500ms", "errors>1%", "rate<100/s", "goodput<1k/s", "status.200<5", "unfinished<1"] {
            let Ok(threshold) = Threshold::parse(text) else { continue };
            assert!(!threshold.is_met_by_good_runs(), "{text}");
            assert_eq!(threshold.to_string(), text);
        }
    }

    #[test]
    fn runs_are_judged_by_what_was_measured() {
        let outcome = outcome();
        let cases = [
            ("p50>449ms", true),
            ("p50>452ms", false),
            ("p99>0.9s", false),
            ("max >= 900ms", true),
            ("mean<440ms", false),
            ("connect.p99>71us", false),
            ("connect.max>69us", true),
            ("handshake.p99>1s", true),
            ("errors>99", true),
            ("errors>100", false),
            ("errors>=100", true),
            ("errors>9.9%", true),
            ("error_share>10%", false),
            ("refused>0", true),
            ("late>0", false),
            ("timed_out>6.1%", false),
            ("rate<91/s", true),
            ("rate<90/s", false),
            ("offered<100/s", false),
            ("goodput<90%", false),
            ("goodput<90.1%", true),
            ("goodput<=90/s", true),
            ("status.503>0.4%", true),
            ("status.404>0", false),
        ];
        for (text, failed) in cases {
            let judgement = Threshold::parse(text).unwrap().judge(&outcome);
            assert_eq!(judgement.failed, failed, "{judgement:?}");
            assert_eq!(judgement.expression, text);
        }
        let measured = |text| Threshold::parse(text).unwrap().judge(&outcome).measured;
        assert_eq!(measured("connect.p99>1ms"), "70.0 us");
        assert_eq!(measured("errors>1%"), "10.0 %");
        assert_eq!(measured("rate<1/s"), "90.0/s");
        assert_eq!(measured("errors>1"), "100");
    }

    #[test]
    fn what_was_not_measured_fails() {
        let mut nothing = outcome();
        nothing.lanes.clear();
        for text in ["p99>20ms", "p99<20ms", "drift.max>1s", "errors>1%", "rate>1/s"] {
            let judgement = Threshold::parse(text).unwrap().judge(&nothing);
            assert!(judgement.failed && judgement.measured == "-", "{judgement:?}");
        }
        assert!(!Threshold::parse("errors>0").unwrap().judge(&nothing).failed);
    }
}
