//! A run as a document: what `--json` writes and what comparing reads.
//!
//! It owns the names and units of the file. It must never lose a count: totals, lanes and moments can be
//! checked against each other. Times are milliseconds, `null` where nothing was measured.
use std::collections::BTreeMap;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::flood::FloodOutcome;
use crate::histogram::Histogram;
use crate::outcome::{Counts, LaneOutcome, RunOutcome, TlsOutcome};
use crate::report::machine::Machine;
use crate::report::moments::Moments;
use crate::report::{blob, layout};

/// The version of the file's form. It grows when a name changes its meaning.
pub const FORMAT: u32 = 2;

/// The oldest version that is read: in it the names at the top were those of all lanes together.
const FORMAT_MIN: u32 = 1;

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The version of this form: [`FORMAT`].
    pub format: u32,
    /// Version of the program that wrote it.
    pub version: String,
    /// The command line, as it can be typed again.
    pub command: String,
    /// When offering began, RFC 3339 in UTC.
    pub began: String,
    /// What the main lane's rates are over: as long as requests were offered; of so many requests, or those
    /// of a trace, from the first start to the end of the last.
    pub seconds: f64,
    /// The target as it was given.
    pub target: String,
    /// What carried the load: backend, threads, processors.
    pub engine: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What has to be known before believing a figure, the gravest first.
    pub warnings: Vec<String>,
    /// What was flooded beside the lanes; not there when nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floods: Vec<FloodOutcome>,
    /// The main lane; its names stand at the top of the file.
    #[serde(flatten)]
    pub main: Figures,
    /// Each lane of its own, the main one first.
    pub lanes: Vec<LaneDocument>,
    /// The run in steps.
    pub moments: Moments,
}

/// The outcome of a lane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneDocument {
    /// Its name, unique in a run.
    pub name: String,
    /// What it did.
    pub description: String,
    /// What its rates are over, as at the top of the file.
    #[serde(default)]
    pub seconds: f64,
    /// Connections that stood at the end, of a lane that holds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// What it measured.
    #[serde(flatten)]
    pub figures: Figures,
}

/// What was measured: counts of requests, then times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// What became of requests and connections.
    #[serde(flatten)]
    pub counts: Counts,
    /// Right answers in time, a second.
    pub rate_per_s: f64,
    /// Answers by status.
    pub statuses: BTreeMap<String, u64>,
    /// SYN segments sent, the repeated ones included.
    pub syn_sent: u64,
    /// From the intended start to the last byte of right answers.
    pub latency_ms: Percentiles,
    /// From the begin of connecting until connected.
    pub connect_ms: Percentiles,
    /// From connected until the last of the server's part of the handshake of TLS has come.
    #[serde(default)]
    pub handshake_ms: Percentiles,
    /// Counts of handshakes; left out without TLS.
    #[serde(default, skip_serializing_if = "TlsOutcome::is_empty")]
    pub tls: TlsOutcome,
    /// From the intended start to the first byte of the answer.
    pub first_byte_ms: Percentiles,
    /// How far the generator was behind its own schedule.
    pub drift_ms: Percentiles,
    /// The histograms these come from.
    pub histograms: Blobs,
}

/// Percentiles in milliseconds; `None` when nothing was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half were at most so long.
    pub p50: Option<f64>,
    /// Nine of ten.
    pub p90: Option<f64>,
    /// All but one of a hundred.
    pub p99: Option<f64>,
    /// All but one of a thousand.
    pub p999: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
}

/// Histograms of nanoseconds as text: HdrHistogram V2, deflated, base64; empty when nothing was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blobs {
    /// Of `latency_ms`.
    pub complete: String,
    /// Of `connect_ms`.
    pub connect: String,
    /// Of `handshake_ms`.
    #[serde(default)]
    pub handshake: String,
    /// Of `first_byte_ms`.
    pub first_byte: String,
    /// Of `drift_ms`.
    pub drift: String,
}

impl Percentiles {
    /// Of a histogram of nanoseconds.
    pub fn of(histogram: &Histogram) -> Self {
        let is_measured = histogram.count() > 0;
        let ms = |ns: u64| is_measured.then_some(ns as f64 / 1e6);
        Self {
            p50: ms(histogram.percentile(50.0)),
            p90: ms(histogram.percentile(90.0)),
            p99: ms(histogram.percentile(99.0)),
            p999: ms(histogram.percentile(99.9)),
            max: ms(histogram.max()),
            mean: is_measured.then(|| histogram.mean() / 1e6),
        }
    }
}

impl Figures {
    /// Of a lane.
    pub fn of(lane: &LaneOutcome) -> Self {
        let (counts, times, statuses) = (lane.counts, &lane.times, &lane.statuses);
        let seconds = lane.lasted.as_secs_f64();
        Self {
            counts,
            rate_per_s: if seconds > 0.0 { counts.in_time as f64 / seconds } else { 0.0 },
            statuses: statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect(),
            syn_sent: counts.connections_begun + counts.syn_retransmitted,
            latency_ms: Percentiles::of(&times.complete),
            connect_ms: Percentiles::of(&times.connect),
            handshake_ms: Percentiles::of(&times.handshake),
            tls: lane.tls.clone(),
            first_byte_ms: Percentiles::of(&times.first_byte),
            drift_ms: Percentiles::of(&times.drift),
            histograms: Blobs {
                complete: blob::encode(&times.complete),
                connect: blob::encode(&times.connect),
                handshake: blob::encode(&times.handshake),
                first_byte: blob::encode(&times.first_byte),
                drift: blob::encode(&times.drift),
            },
        }
    }

    /// Of the main lane of a run.
    pub fn of_main(outcome: &RunOutcome) -> Self {
        outcome.main().map(Self::of).unwrap_or_default()
    }
}

impl Deref for Figures {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.counts
    }
}

impl LaneDocument {
    fn new(lane: &LaneOutcome) -> Self {
        Self {
            name: lane.name.clone(),
            description: lane.description.clone(),
            seconds: lane.lasted.as_secs_f64(),
            held: lane.held,
            figures: Figures::of(lane),
        }
    }
}

impl Document {
    /// Of a run on this machine.
    pub fn new(outcome: &RunOutcome) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: outcome.command.clone(),
            began: humantime::format_rfc3339_millis(outcome.began).to_string(),
            seconds: outcome.lasted().as_secs_f64(),
            target: outcome.target.clone(),
            engine: outcome.engine.clone(),
            machine: Machine::here(),
            warnings: outcome.warnings.clone(),
            floods: outcome.floods.clone(),
            main: Figures::of_main(outcome),
            lanes: outcome.lanes.iter().map(LaneDocument::new).collect(),
            moments: Moments::new(&outcome.moments),
        }
    }

    /// Reads a file written by [`Document::write`]. `name` is the file's, for the errors.
    ///
    /// # Errors
    /// It is no JSON, not of this form, of another version of it, or its columns differ in length.
    pub fn read(name: &str, text: &str) -> Result<Self, Fault> {
        let mut document: Self = read(name, text, "a run")?;
        if document.format < FORMAT {
            document.renew();
        }
        document.moments.add_later();
        document.moments.check().map_err(|words| Fault::new(format!("{name}: {words}")))?;
        Ok(document)
    }

    /// Makes a document of the first form one of this: the main lane's figures stand in it among the lanes'.
    fn renew(&mut self) {
        self.format = FORMAT;
        self.lanes.iter_mut().for_each(|lane| lane.seconds = self.seconds);
        if let Some(main) = self.lanes.first() {
            self.main = main.figures.clone();
        }
    }

    /// As JSON, with a line break at its end.
    pub fn write(&self) -> String {
        layout::write(self)
    }
}

/// Reads a file of this version of the form, or of one before that has the same names. `name` is the file's,
/// `kind` what it should be, for the errors.
pub(super) fn read<D: DeserializeOwned>(name: &str, text: &str, kind: &str) -> Result<D, Fault> {
    let fault = |words: String| Fault::new(format!("{name}: {words}"));
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| fault(format!("is not JSON: {error}")))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    if !format.is_some_and(|format| (u64::from(FORMAT_MIN)..=u64::from(FORMAT)).contains(&format)) {
        let found = format.map_or("no `format`".to_owned(), |format| format!("`format` {format}"));
        return Err(fault(format!(
            "has {found}, not {FORMAT}: it was not written by `staunch load --json` of this version"
        )));
    }
    serde_json::from_str(text).map_err(|error| fault(format!("is not {kind}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{fields, made_up};

    #[test]
    fn a_document_is_read_as_it_was_written() {
        let outcome = made_up::overload();
        let document = Document::new(&outcome);
        assert_eq!(Document::read("a.json", &document.write()).unwrap(), document);
        assert_eq!(document.main.counts, outcome.counts());
        assert_eq!(document.began, "2025-11-21T08:00:00.123Z");
        let empty = RunOutcome { lanes: Vec::new(), moments: Vec::new(), ..outcome };
        let empty = Document::new(&empty);
        assert_eq!(Document::read("a.json", &empty.write()).unwrap(), empty);
        assert_eq!(empty.main.latency_ms.p50, None);
    }

    #[test]
    fn a_document_of_the_first_form_is_read_as_its_main_lane() {
        let document = Document::new(&made_up::overload());
        let mut old: serde_json::Value = serde_json::from_str(&document.write()).unwrap();
        old["format"] = 1.into();
        old["offered"] = 123_456_789.into();
        old["lanes"].as_array_mut().unwrap().iter_mut().for_each(|lane| {
            let lane = lane.as_object_mut().unwrap();
            for name in ["seconds", "handshake_ms", "handshakes"] {
                lane.remove(name);
            }
        });
        old["moments"]["counts"].as_object_mut().unwrap().remove("handshakes_failed");
        assert_eq!(Document::read("a.json", &old.to_string()).unwrap(), document);
    }

    #[test]
    fn the_promised_names_stand_at_the_top() {
        let outcome = made_up::overload();
        let value: serde_json::Value = serde_json::from_str(&Document::new(&outcome).write()).unwrap();
        let counts = outcome.counts();
        assert_eq!(value["offered"], counts.offered);
        assert_eq!(value["attempted"], counts.attempted);
        for field in &fields::ENDS {
            assert_eq!(value[field.name], field.get(&counts), "{}", field.name);
            let column = value["moments"]["counts"][field.name].as_array().unwrap();
            let sum: u64 = column.iter().map(|count| count.as_u64().unwrap()).sum();
            assert_eq!(sum, field.get(&counts), "{}", field.name);
        }
        assert_eq!(value["rate_per_s"], outcome.rate_per_s());
        for name in ["p50", "p90", "p99", "p999", "max"] {
            for kind in ["latency_ms", "connect_ms", "first_byte_ms", "drift_ms"] {
                assert!(
                    value[kind][name].is_f64() && value["lanes"][0][kind][name].is_f64(),
                    "{kind} {name}"
                );
            }
        }
        assert_eq!(value["latency_ms"]["p99"], outcome.times().complete.percentile(99.0) as f64 / 1e6);
    }

    #[test]
    fn what_is_no_document_is_refused_with_its_place() {
        let good = Document::new(&made_up::overload()).write();
        let words = |text: &str| Document::read("a.json", text).unwrap_err().to_string();
        let replaced = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            words(&good.replacen(from, to, 1))
        };
        let cases = [
            (words("{"), "a.json: is not JSON: EOF while parsing an object at line 1 column 1"),
            (words("[]"), "a.json: has no `format`, not 2"),
            (replaced("\"format\": 2", "\"format\": 3"), "a.json: has `format` 3, not 2"),
            (replaced("\"offered\": ", "\"offred\": "), "a.json: is not a run: missing field `offered`"),
            (
                replaced("\"in_flight\": [", "\"in_flight\": [1,"),
                "a.json: column `in_flight` of `moments` has 101",
            ),
            (replaced("\"unsent\": [", "\"unsnt\": ["), "a.json: `moments.counts` has no column `unsent`"),
            (replaced("[100,200,", "[100,100,"), "a.json: `moments.at_ms` does not grow at value 2"),
        ];
        for (found, expected) in cases {
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
    }
}
