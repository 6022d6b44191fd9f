//! The run as JSON.
//!
//! It must never round a count or hide a warning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::outcome::LiveOutcome;
use crate::report::document::Percentiles;
use crate::report::{Machine, layout};

/// The format's number: grows when a name changes its meaning.
const FORMAT: u32 = 1;

/// A run as programs read it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveDocument {
    /// The format's number.
    pub format: u32,
    /// The version of the generator.
    pub version: String,
    /// The command line.
    pub command: String,
    /// Where readers went.
    pub target: String,
    /// What carried the load.
    pub engine: String,
    /// The machine that the load came from.
    pub machine: Machine,
    /// When it began, in RFC 3339.
    pub began: String,
    /// What has to be known before a figure is believed.
    pub warnings: Vec<String>,
    /// How readers read.
    pub way: String,
    /// How many readers there were to be.
    pub readers: u64,
    /// How many of them had stopped reading.
    pub stalled: u64,
    /// How many were there when it began.
    pub gathered: u64,
    /// How long that took, in seconds.
    pub gathering_s: f64,
    /// Streams opened a second meanwhile.
    pub opened_per_s: f64,
    /// How many were there at the end.
    pub open_at_end: u64,
    /// How long it published or listened, in seconds.
    pub seconds: f64,
    /// What became of publications: `published`, `refused`, `unanswered`, `unsent`.
    pub publications: BTreeMap<String, u64>,
    /// What became of readers and updates.
    pub counts: BTreeMap<String, u64>,
    /// Answers to readers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Numbers delivered a second.
    pub deliveries_per_s: f64,
    /// Bytes of streams for each update that came.
    pub bytes_per_update: Option<f64>,
    /// Processor time of the server from the first update to the last delivery, outside the kernel, in
    /// milliseconds; `null`: not asked for.
    pub server_user_ms: Option<u64>,
    /// Processor time of the server meanwhile in the kernel.
    pub server_system_ms: Option<u64>,
    /// Processor time of the server for each delivery, in microseconds.
    pub server_us_per_delivery: Option<f64>,
    /// From the meant publication to the reader.
    pub delay_ms: Percentiles,
    /// From the begin of a connection to the open stream.
    pub open_ms: Percentiles,
    /// From a publication sent to its answer.
    pub publish_ms: Percentiles,
    /// From the meant publication to its sending.
    pub drift_ms: Percentiles,
    /// The delay's histogram: HdrHistogram V2, deflated, base64, values in ns.
    pub delay_histogram: String,
}

impl LiveDocument {
    /// Of a run.
    pub fn new(outcome: &LiveOutcome) -> Self {
        let told = &outcome.publications;
        let publications = [
            ("published", told.published),
            ("refused", told.refused),
            ("unanswered", told.unanswered),
            ("unsent", told.unsent),
        ];
        let seconds = outcome.lasted.as_secs_f64();
        let times = &outcome.times;
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: outcome.command.clone(),
            target: outcome.target.clone(),
            engine: outcome.engine.clone(),
            machine: Machine::here(),
            began: humantime::format_rfc3339_millis(outcome.began).to_string(),
            warnings: outcome.warnings.clone(),
            way: outcome.way.name().to_owned(),
            readers: outcome.readers,
            stalled: outcome.stalled,
            gathered: outcome.gathered,
            gathering_s: outcome.gathering.as_secs_f64(),
            opened_per_s: outcome.opened_per_s(),
            open_at_end: outcome.open_at_end,
            seconds,
            publications: publications.map(|(name, count)| (name.to_owned(), count)).into(),
            counts: outcome.counts.named().map(|(name, count)| (name.to_owned(), count)).collect(),
            statuses: outcome.statuses.clone(),
            deliveries_per_s: outcome.counts.delivered as f64 / seconds.max(1e-9),
            bytes_per_update: outcome.bytes_per_update(),
            server_user_ms: outcome.server_ms.map(|(user, _)| user),
            server_system_ms: outcome.server_ms.map(|(_, system)| system),
            server_us_per_delivery: outcome.server_us_per_delivery(),
            delay_ms: Percentiles::of(&times.delay),
            open_ms: Percentiles::of(&times.open),
            publish_ms: Percentiles::of(&times.publish),
            drift_ms: Percentiles::of(&times.drift),
            delay_histogram: crate::report::histogram_text(&times.delay),
        }
    }
}

/// The run as JSON: see [`LiveDocument`].
pub fn json(outcome: &LiveOutcome) -> String {
    layout::write(&LiveDocument::new(outcome))
}
