//! What the demonstration found, in the form of `bench/runs/overload.json`.
//!
//! It owns the names in that file. It must never compute anything that was not measured.
use std::collections::BTreeMap;

use serde::Serialize;
use staunch_loadgen::report::Document;

use crate::account::Account;

/// The whole file.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Record {
    /// Goodput when more and more want to be served.
    pub(super) servers: Vec<Sides<Multiple>>,
    /// Goodput for clients seen before, at about the peak, under a flood of forged SYN segments.
    pub(super) floods: Vec<Sides<Syn>>,
    /// Processor, cores, kernel, memory.
    pub(super) machine: BTreeMap<String, String>,
    /// What each program says of its version.
    pub(super) versions: BTreeMap<String, String>,
    /// Servers there was no time for, each in a sentence.
    pub(super) left_out: Vec<String>,
    /// Short hash, `-dirty` when the tree had changes.
    pub(super) commit: String,
}

/// A server without the gate and with it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Sides<X> {
    /// Of the server.
    pub(super) name: String,
    /// Without.
    pub(super) gate_off: Vec<Point<X>>,
    /// With; empty when there was no gate to measure.
    pub(super) gate_on: Vec<Point<X>>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Point<X> {
    /// What was varied.
    #[serde(flatten)]
    pub(super) at: X,
    /// Requests offered, a second.
    pub(super) offered_per_s: f64,
    /// Answered rightly within the clients' patience, a second.
    pub(super) goodput_per_s: f64,
    /// Half of these took at most so long; none if nobody was answered.
    pub(super) p50_ms: Option<f64>,
    /// All but one of a hundred did.
    pub(super) p99_ms: Option<f64>,
    /// Connections refused or cut, in all.
    pub(super) refused: u64,
    /// Given up by the client, in all.
    pub(super) timed_out: u64,
}

/// Offered load.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Multiple {
    /// As a multiple of the server's peak.
    pub(super) offered_multiple: f64,
}

/// A flood.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Syn {
    /// Forged SYN segments a second.
    pub(super) syn_per_s: u32,
}

/// The load offered at one point of a plot.
pub(super) trait Offer {
    /// Whether it is a flood.
    const IS_FLOOD: bool;

    /// Multiples of the peak, or segments a second.
    fn load(&self) -> f64;
}

impl Offer for Multiple {
    const IS_FLOOD: bool = false;

    fn load(&self) -> f64 {
        self.offered_multiple
    }
}

impl Offer for Syn {
    const IS_FLOOD: bool = true;

    fn load(&self) -> f64 {
        f64::from(self.syn_per_s)
    }
}

impl<X> Sides<X> {
    /// None measured yet.
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), gate_off: Vec::new(), gate_on: Vec::new() }
    }

    /// The points of one side.
    pub(super) fn side(&mut self, gate: bool) -> &mut Vec<Point<X>> {
        if gate { &mut self.gate_on } else { &mut self.gate_off }
    }
}

impl<X> Point<X> {
    /// What came of a crowd.
    pub(super) fn new(at: X, answers: &Document) -> Self {
        Self {
            at,
            offered_per_s: rounded(answers.offered_per_s()),
            goodput_per_s: rounded(answers.goodput_per_s()),
            p50_ms: answers.main.latency_ms.p50.map(rounded),
            p99_ms: answers.main.latency_ms.p99.map(rounded),
            refused: answers.main.refused + answers.main.reset,
            timed_out: answers.main.timed_out,
        }
    }
}

/// To the tenth.
fn rounded(value: f64) -> f64 {
    (10.0 * value).round() / 10.0
}

impl Record {
    /// The server's peak: all that was offered, divided by all multiples, for arrivals by chance differ a
    /// little from what was meant.
    pub(super) fn peak_per_s(&self, name: &str) -> Option<f64> {
        let server = self.servers.iter().find(|server| server.name == name)?;
        let points = || server.gate_off.iter().chain(&server.gate_on);
        let multiples: f64 = points().map(|point| point.at.offered_multiple).sum();
        (multiples > 0.0).then(|| points().map(|point| point.offered_per_s).sum::<f64>() / multiples)
    }
}

#[cfg(test)]
mod tests {
    use staunch_loadgen::Counts;

    use super::*;
    use crate::account::made_up;

    #[test]
    fn the_file_has_the_names_it_promises() {
        let counts = Counts { offered: 40, refused: 1, reset: 2, timed_out: 5, ..Counts::default() };
        let mut answers = made_up(2.0, counts, &[20]);
        answers.moments.at_ms = vec![2000];
        let mut server = Sides::new("nginx");
        server.side(false).push(Point::new(Multiple { offered_multiple: 0.5 }, &answers));
        let mut flood = Sides::new("nginx");
        flood.side(true).push(Point::new(Syn { syn_per_s: 7 }, &answers));
        let record = Record { servers: vec![server], floods: vec![flood], ..Record::default() };
        assert_eq!(record.peak_per_s("nginx"), Some(40.0));
        let json = serde_json::to_value(&record).expect("JSON");
        let names: Vec<&String> = json.as_object().expect("an object").keys().collect();
        assert_eq!(names, ["commit", "floods", "left_out", "machine", "servers", "versions"]);
        let point = serde_json::json!({"offered_multiple": 0.5, "offered_per_s": 20.0, "goodput_per_s": 10.0,
            "p50_ms": null, "p99_ms": null, "refused": 3, "timed_out": 5});
        assert_eq!(json["servers"][0]["gate_off"][0], point);
        assert_eq!(json["floods"][0]["gate_on"][0]["syn_per_s"], 7);
    }
}
