//! The run in steps, as columns: what a reader plots, and what comparing two single runs is made from.
//!
//! It must never hold columns of different lengths: a file that does is refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::outcome::{MOMENT_MS, Moment};
use crate::report::fields;
use crate::report::server_side::SERVER;

/// The steps of a run. Every column has one value per step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Length of a step in milliseconds.
    pub step_ms: u64,
    /// End of each step, milliseconds since the run began.
    pub at_ms: Vec<u64>,
    /// What happened in each step alone, by the names of the counts.
    pub counts: BTreeMap<String, Vec<u64>>,
    /// Connections open at its end.
    pub connections: Vec<u64>,
    /// Requests begun and not settled at its end.
    pub in_flight: Vec<u64>,
    /// Latency of the right answers of each step in milliseconds; `null` where none came.
    pub latency_ms: LatencyColumns,
    /// How far the generator was behind its schedule at most, in milliseconds.
    pub drift_max_ms: Vec<f64>,
    /// The server's side; no column when it was not probed, `null` where it could not be read.
    #[serde(default)]
    pub server: BTreeMap<String, Vec<Option<f64>>>,
}

/// Percentiles of each step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyColumns {
    /// Half were at most so long.
    pub p50: Vec<Option<f64>>,
    /// Nine of ten.
    pub p90: Vec<Option<f64>>,
    /// All but one of a hundred.
    pub p99: Vec<Option<f64>>,
    /// The longest.
    pub max: Vec<Option<f64>>,
}

impl Moments {
    /// From the steps of a run.
    pub fn new(moments: &[Moment]) -> Self {
        let ms = |ns: u64| (ns > 0).then_some(ns as f64 / 1e6);
        let column = |of: fn(&Moment) -> u64| moments.iter().map(of).collect();
        let times = |of: fn(&Moment) -> u64| moments.iter().map(|moment| ms(of(moment))).collect();
        Self {
            step_ms: MOMENT_MS,
            at_ms: column(|moment| moment.at_ms),
            counts: fields::all()
                .map(|field| {
                    let values = moments.iter().map(|moment| field.get(&moment.counts)).collect();
                    (field.name.to_owned(), values)
                })
                .collect(),
            connections: column(|moment| moment.connections),
            in_flight: column(|moment| moment.in_flight),
            latency_ms: LatencyColumns {
                p50: times(|moment| moment.latency.p50_ns),
                p90: times(|moment| moment.latency.p90_ns),
                p99: times(|moment| moment.latency.p99_ns),
                max: times(|moment| moment.latency.max_ns),
            },
            drift_max_ms: moments.iter().map(|moment| moment.drift_max_ns as f64 / 1e6).collect(),
            server: server(moments),
        }
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.at_ms.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.at_ms.is_empty()
    }

    /// The column of a count, by the name it has in the file.
    ///
    /// # Panics
    /// There is no such count: [`Moments::check`] sees to it that there is every one.
    pub fn count(&self, name: &str) -> &[u64] {
        &self.counts[name]
    }

    /// The column of a figure of the server's side, if it was probed.
    pub fn server(&self, name: &str) -> Option<&[Option<f64>]> {
        self.server.get(name).map(Vec::as_slice)
    }

    /// Adds what files of earlier versions do not have: nothing of it happened in them.
    pub(super) fn add_later(&mut self) {
        let steps = self.len();
        for name in fields::LATER {
            self.counts.entry(name.to_owned()).or_insert_with(|| vec![0; steps]);
        }
    }

    /// Checks what a file holds.
    ///
    /// # Errors
    /// A count has no column, a column has another length than `at_ms`, or time does not grow.
    pub fn check(&self) -> Result<(), Fault> {
        if let Some(field) = fields::all().find(|field| !self.counts.contains_key(field.name)) {
            return Err(Fault::new(format!("`moments.counts` has no column `{}`", field.name)));
        }
        let latency = &self.latency_ms;
        let lengths = [
            ("connections", self.connections.len()),
            ("in_flight", self.in_flight.len()),
            ("latency_ms.p50", latency.p50.len()),
            ("latency_ms.p90", latency.p90.len()),
            ("latency_ms.p99", latency.p99.len()),
            ("latency_ms.max", latency.max.len()),
            ("drift_max_ms", self.drift_max_ms.len()),
        ];
        let counts = self.counts.iter().map(|(name, column)| (name.as_str(), column.len()));
        let server = self.server.iter().map(|(name, column)| (name.as_str(), column.len()));
        let wanted = self.len();
        if let Some((name, found)) =
            lengths.into_iter().chain(counts).chain(server).find(|(_, found)| *found != wanted)
        {
            return Err(Fault::new(format!(
                "column `{name}` of `moments` has {found} values, `at_ms` has {wanted}"
            )));
        }
        match self.at_ms.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(at) => Err(Fault::new(format!("`moments.at_ms` does not grow at value {}", at + 2))),
            None => Ok(()),
        }
    }
}

fn server(moments: &[Moment]) -> BTreeMap<String, Vec<Option<f64>>> {
    if moments.iter().all(|moment| moment.server.is_none()) {
        return BTreeMap::new();
    }
    SERVER
        .iter()
        .map(|field| {
            let value = |moment: &Moment| moment.server.as_ref().and_then(field.of);
            (field.name.to_owned(), moments.iter().map(value).collect())
        })
        .collect()
}
