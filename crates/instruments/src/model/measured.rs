//! What was measured: goodput against offered load, from a file of `staunch load sweep --json` or of the
//! measurement of the gate (`bench/runs/overload.json`).
//!
//! It must never guess what was offered: a figure that is missing is named with its place.
use std::fs;
use std::path::Path;

use serde::Deserialize;
use staunch_figures::statistics::{Spread, median};
use staunch_loadgen::report::document::Figures;
use staunch_loadgen::report::{PointDocument, SweepDocument};
use staunch_queueing::OfferedLoad;

/// A server under growing load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    /// The server's name, or its address.
    pub(crate) name: String,
    /// What grows.
    pub(crate) over: Over,
    /// How long clients waited, in seconds, where the file tells.
    pub(crate) patience_s: Option<f64>,
    /// How long each load was offered, in seconds, where the file tells.
    pub(crate) sending_s: Option<f64>,
    /// Without a gate, by growing load.
    pub(crate) off: Vec<Mark>,
    /// Behind a gate, by growing load; may be empty.
    pub(crate) on: Vec<Mark>,
}

/// What grows from point to point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// Requests alone.
    Requests,
    /// Forged SYN beside requests.
    Flood,
}

/// An offered load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mark {
    /// What was offered.
    pub(crate) load: OfferedLoad,
    /// How much of it the generator left unsent, in the worst round.
    pub(crate) unsent_share: f64,
    /// Answers in time a second: median, smallest and largest round.
    pub(crate) goodput: Spread,
    /// Half of the answers came within this.
    pub(crate) p50_ms: Option<f64>,
    /// All but one of a hundred.
    pub(crate) p99_ms: Option<f64>,
}

impl Over {
    /// As on the command line and in files.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Over::Requests => "requests",
            Over::Flood => "flood",
        }
    }

    /// Where a load stands along it.
    pub(crate) fn place(self, load: &OfferedLoad) -> f64 {
        match self {
            Over::Requests => load.requests_per_s,
            Over::Flood => load.flood_per_s,
        }
    }

    /// The load with another place along it.
    pub(crate) fn at(self, load: &OfferedLoad, place: f64) -> OfferedLoad {
        match self {
            Over::Requests => OfferedLoad { requests_per_s: place, ..*load },
            Over::Flood => OfferedLoad { flood_per_s: place, ..*load },
        }
    }
}

/// The word of the command line.
///
/// # Errors
/// A sentence with the right words.
pub(crate) fn over(text: &str) -> Result<Over, String> {
    match text {
        "requests" => Ok(Over::Requests),
        "flood" => Ok(Over::Flood),
        _ => Err("write requests or flood".into()),
    }
}

/// All curves of a file.
///
/// # Errors
/// It cannot be read, is of neither form, or a figure is missing.
pub(crate) fn read(path: &Path) -> Result<Vec<Curve>, String> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("{name}: is not JSON: {error}"))?;
    let mut curves = if value.get("servers").is_some() {
        let document: Overload = serde_json::from_value(value)
            .map_err(|error| format!("{name}: is not a measurement of the gate: {error}"))?;
        document.curves().map_err(|words| format!("{name}: {words}"))?
    } else {
        let document = SweepDocument::read(&name, &text).map_err(|fault| fault.to_string())?;
        vec![of_sweep(&document)]
    };
    for curve in &mut curves {
        let over = curve.over;
        for marks in [&mut curve.off, &mut curve.on] {
            marks.sort_by(|one, other| over.place(&one.load).total_cmp(&over.place(&other.load)));
        }
    }
    if curves.iter().all(|curve| curve.off.is_empty()) {
        return Err(format!("{name}: holds no measured point"));
    }
    Ok(curves)
}

fn of_sweep(document: &SweepDocument) -> Curve {
    let seconds: Vec<f64> = document.points.iter().flat_map(|point| &point.seconds).copied().collect();
    Curve {
        name: document.target.clone(),
        over: Over::Requests,
        patience_s: document.patience_ms.map(|ms| ms / 1e3),
        sending_s: median(&seconds),
        off: document.points.iter().filter_map(of_point).collect(),
        on: Vec::new(),
    }
}

/// A point without a round has nothing to say.
fn of_point(point: &PointDocument) -> Option<Mark> {
    let offered = point.rate(|round| round.offered)?.median;
    Some(Mark {
        load: OfferedLoad::requests(offered),
        unsent_share: point.rounds.iter().map(unsent_share).fold(0.0, f64::max),
        goodput: point.rate(|round| round.in_time)?,
        p50_ms: point.spread(|round| round.latency_ms.p50).map(|spread| spread.median),
        p99_ms: point.spread(|round| round.latency_ms.p99).map(|spread| spread.median),
    })
}

fn unsent_share(round: &Figures) -> f64 {
    round.unsent as f64 / round.offered.max(1) as f64
}

/// The measurement of the gate.
#[derive(Deserialize)]
struct Overload {
    servers: Vec<Subject>,
    #[serde(default)]
    floods: Vec<Subject>,
    patience_ms: Option<f64>,
    seconds: Option<f64>,
}

#[derive(Deserialize)]
struct Subject {
    name: String,
    #[serde(default)]
    gate_off: Vec<Row>,
    #[serde(default)]
    gate_on: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    offered_per_s: Option<f64>,
    syn_per_s: Option<f64>,
    goodput_per_s: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

impl Overload {
    fn curves(&self) -> Result<Vec<Curve>, String> {
        let of = |list: &'static str, subjects: &[Subject], over| {
            let curve = |(at, subject)| self.curve(&format!("{list}[{at}]"), subject, over);
            subjects.iter().enumerate().map(curve).collect::<Result<Vec<Curve>, String>>()
        };
        let mut curves = of("servers", &self.servers, Over::Requests)?;
        curves.extend(of("floods", &self.floods, Over::Flood)?);
        Ok(curves)
    }

    fn curve(&self, place: &str, subject: &Subject, over: Over) -> Result<Curve, String> {
        let marks = |list: &str, rows: &[Row]| {
            let mark = |(at, row): (usize, &Row)| row.mark(over, &format!("{place}.{list}[{at}]"));
            rows.iter().enumerate().map(mark).collect::<Result<Vec<Mark>, String>>()
        };
        Ok(Curve {
            name: subject.name.clone(),
            over,
            patience_s: self.patience_ms.map(|ms| ms / 1e3),
            sending_s: self.seconds,
            off: marks("gate_off", &subject.gate_off)?,
            on: marks("gate_on", &subject.gate_on)?,
        })
    }
}

impl Row {
    fn mark(&self, over: Over, place: &str) -> Result<Mark, String> {
        let requests_per_s = self.offered_per_s.ok_or_else(|| format!("{place} has no `offered_per_s`"))?;
        let flood_per_s = match over {
            Over::Requests => self.syn_per_s.unwrap_or(0.0),
            Over::Flood => self.syn_per_s.ok_or_else(|| format!("{place} has no `syn_per_s`"))?,
        };
        let goodput = self.goodput_per_s;
        Ok(Mark {
            load: OfferedLoad { requests_per_s, flood_per_s },
            unsent_share: 0.0,
            goodput: Spread { median: goodput, min: goodput, max: goodput },
            p50_ms: self.p50_ms,
            p99_ms: self.p99_ms,
        })
    }
}
