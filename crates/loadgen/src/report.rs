//! What a run says: files for programs, a page and a summary for people.
//!
//! It owns the form of every file. It must never round a count, hide a warning, or ask the time: all it says
//! stands in the outcome, but for the machine's name. Each kind of file has its own room here.

mod blob;
pub mod document;
mod fields;
mod folded;
pub mod layout;
mod log;
mod machine;
#[cfg(test)]
pub(crate) mod made_up;
mod moments;
mod page;
mod series;
mod server_side;
mod summary;
mod sweep;
mod sweep_page;

pub use document::Document;
pub use log::{hdr_log, hgrm};
pub use machine::Machine;
pub use moments::{LatencyColumns, Moments};
pub use page::{document_page, html, svg};
pub use series::{csv, ndjson_line};
pub use summary::summary;
pub use sweep::{PointDocument, SweepDocument, sweep_csv, sweep_json, sweep_text};
pub use sweep_page::sweep_html;

pub(crate) use fields::{CountField, ENDS, find as find_count, is_error};
pub(crate) use server_side::PROCESS_CPU;
use staunch_figures::words;

use crate::drift;
use crate::outcome::RunOutcome;

/// What is said at the times when only p99.9 and beyond are partly the generator's own. Where p99 is, a
/// warning says so.
fn drift_note(figures: &document::Figures) -> Option<String> {
    let (drift, latency) = (&figures.drift_ms, &figures.latency_ms);
    let beyond = drift::shows_in(drift.p999, latency.p999) && !drift::shows_in(drift.p99, latency.p99);
    beyond.then(|| {
        format!(
            "p99.9 and max are partly the generator's: one start in a thousand was {} late or more.",
            words::time_ms_or_dash(drift.p999)
        )
    })
}

pub(crate) use blob::encode as histogram_text;

/// The run as JSON: see [`Document`].
pub fn json(outcome: &RunOutcome) -> String {
    Document::new(outcome).write()
}
