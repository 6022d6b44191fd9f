//! What the model says of the same servers, asked of `staunch model`: the host with the peak that was
//! measured before, and what else the first half of the loads tells of it; what it predicts for all of them.
//!
//! It owns the way to that program and back. It must never compute a curve itself.
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::record::{Offer, Record, Sides};

/// Between two measured loads so many are predicted, so that the curve is smooth.
const BETWEEN: u32 = 8;

/// What the gate costs for each SYN of a flood, on a veth pair: read off this demonstration at a million a
/// second (2026-11-22), so that the curves of floods behind the gate are no proof of it.
const GATE_COST: &str = "0.35us";

/// How long a queue each server asks for; whose own rules keep it shorter, as long as nobody lies.
const BACKLOG: [&str; 2] = ["--backlog", "4096"];
const KEEPS_ITS_LINE: &str = "staunch";
/// What three loads of requests alone do not tell, and a flood does.
const RECEPTION: [&str; 2] = ["--mu1", "200k/s"];

/// A curve of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    /// Of the server.
    pub(super) name: String,
    /// Over forged SYN segments instead of requests.
    pub(super) flood: bool,
    /// With the gate.
    pub(super) gate: bool,
    /// Goodput a second, by multiples of the peak or by SYN segments a second.
    pub(super) points: Vec<(f64, f64)>,
}

/// What `staunch model predict --json` says; more stands there.
#[derive(Debug, Deserialize)]
struct Said {
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    without_gate: Expected,
    with_gate: Expected,
}

#[derive(Debug, Deserialize)]
struct Expected {
    goodput_per_s: f64,
}

/// The curves of all servers, and what could not be had, in words.
pub(super) fn curves(
    record: &Record,
    file: &Path,
    staunch: &Path,
    scratch: &Path,
) -> (Vec<Curve>, Vec<String>) {
    let said = Command::new(staunch).args(["model", "--help"]).output();
    if !said.is_ok_and(|output| output.status.success()) {
        return (Vec::new(), vec!["this staunch has no `model`: its curves are left out".to_owned()]);
    }
    let model = Model { record, file, staunch, fit: scratch.join("fit.json") };
    let asked = record.servers.iter().map(|server| (server.name.as_str(), model.honest(server)));
    let flooded = record.floods.iter().map(|flood| (flood.name.as_str(), model.flooded(flood)));
    let (mut curves, mut notes) = (Vec::new(), Vec::new());
    for (name, answer) in asked.chain(flooded) {
        match answer {
            Ok(pair) => curves.extend(pair),
            Err(error) => notes.push(format!("no curve of the model for {name}: {error}")),
        }
    }
    (curves, notes)
}

struct Model<'a> {
    record: &'a Record,
    file: &'a Path,
    staunch: &'a Path,
    fit: std::path::PathBuf,
}

impl Model<'_> {
    fn honest(&self, server: &Sides<impl Offer>) -> Result<Vec<Curve>, String> {
        let peak = self.peak(&server.name)?;
        self.find(&server.name, "requests", "50%")?;
        let places = places(&server.gate_off);
        let rates: Vec<String> = places.iter().map(|multiple| format!("{:.0}/s", multiple * peak)).collect();
        let said = self.predict(&["--offered", &rates.join(",")])?;
        Ok(pair(&server.name, false, places.into_iter().zip(said.rows)))
    }

    /// A flood a question, for the program varies requests only.
    fn flooded(&self, flood: &Sides<impl Offer>) -> Result<Vec<Curve>, String> {
        let rate = format!("{:.0}/s", self.peak(&flood.name)?);
        self.find(&flood.name, "flood", &flood.gate_off.len().to_string())?;
        let mut rows = Vec::new();
        for place in places(&flood.gate_off) {
            let said = self.predict(&["--offered", &rate, "--flood", &format!("{place:.0}/s")])?;
            rows.extend(said.rows.into_iter().map(|row| (place, row)));
        }
        Ok(pair(&flood.name, true, rows.into_iter()))
    }

    fn peak(&self, name: &str) -> Result<f64, String> {
        self.record.peak_per_s(name).ok_or_else(|| "its peak is not known".to_owned())
    }

    /// Has the host found. A crowd was there before each measurement, so what is measured is the long run.
    fn find(&self, name: &str, over: &str, first: &str) -> Result<(), String> {
        let file = self.file.to_string_lossy();
        let which = ["model", "fit", &file, "--server", name, "--over", over, "--first", first];
        let peak = format!("{:.0}/s", self.peak(name)?);
        let known = ["--sending", "off", "--patience", "1s", "--peak", &peak, "--json"];
        let is_flood = over == "flood";
        let backlog: &[&str] = if name == KEEPS_ITS_LINE && !is_flood { &[] } else { &BACKLOG };
        let reception: &[&str] = if is_flood { &[] } else { &RECEPTION };
        let fit = self.ask(&[&which[..], &known, backlog, reception].concat())?;
        fs::write(&self.fit, fit).map_err(|error| format!("{}: {error}", self.fit.display()))
    }

    fn predict(&self, load: &[&str]) -> Result<Said, String> {
        let fit = self.fit.to_string_lossy();
        let host = ["model", "predict", "--fit", &fit, "--gate-cost", GATE_COST, "--json"];
        let said = self.ask(&[&host[..], load].concat())?;
        serde_json::from_slice(&said).map_err(|error| format!("staunch model predict: {error}"))
    }

    fn ask(&self, words: &[&str]) -> Result<Vec<u8>, String> {
        let output = Command::new(self.staunch).args(words).output();
        let output = output.map_err(|error| format!("staunch model: {error}"))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        // What is stored names no folder of this machine.
        let errors =
            String::from_utf8_lossy(&output.stderr).replace(&*self.file.to_string_lossy(), "overload.json");
        Err(errors.trim().to_owned())
    }
}

fn pair(name: &str, flood: bool, rows: impl Iterator<Item = (f64, Row)>) -> Vec<Curve> {
    let curve = |gate| Curve { name: name.to_owned(), flood, gate, points: Vec::new() };
    let (mut off, mut on) = (curve(false), curve(true));
    for (place, row) in rows {
        off.points.push((place, row.without_gate.goodput_per_s));
        on.points.push((place, row.with_gate.goodput_per_s));
    }
    vec![off, on]
}

/// Measured loads and those between, by equal factors.
fn places(points: &[super::record::Point<impl Offer>]) -> Vec<f64> {
    let measured: Vec<f64> = points.iter().map(|point| point.at.load()).collect();
    let between = measured.windows(2).flat_map(|ends| {
        let factor = ends[1] / ends[0];
        (0..BETWEEN).map(move |step| ends[0] * factor.powf(f64::from(step) / f64::from(BETWEEN)))
    });
    between.chain(measured.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::record::{Multiple, Point};
    use staunch_loadgen::report::Document;

    #[test]
    fn predictions_become_two_curves() {
        let text = r#"{"host":{},"rows":[{"requests_per_s":50.0,
            "without_gate":{"goodput_per_s":40.0,"p50_ms":null},"with_gate":{"goodput_per_s":49.0}}]}"#;
        let said: Said = serde_json::from_str(text).expect("the form of predict");
        let curves = pair("nginx", false, [0.5].into_iter().zip(said.rows));
        assert_eq!(curves[0].points, [(0.5, 40.0)]);
        assert_eq!((curves[1].gate, curves[1].points[0]), (true, (0.5, 49.0)));
    }

    #[test]
    fn places_go_from_the_first_to_the_last() {
        let point = |offered_multiple| Point::new(Multiple { offered_multiple }, &Document::default());
        let places = places(&[point(0.5), point(2.0), point(8.0)]);
        assert_eq!(places.len(), 17);
        assert!((places[4] - 1.0).abs() < 1e-9 && (places[16] - 8.0).abs() < 1e-9);
    }
}
