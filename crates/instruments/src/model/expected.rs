//! What the model says of one load, for files and tables.
//!
//! It must never say more digits than the model has.
use serde::{Deserialize, Serialize};
use staunch_figures::words;
use staunch_queueing::{Host, OfferedLoad, Prediction, Run};

/// What the model says of one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Expected {
    /// Answers in time a second.
    pub(crate) goodput_per_s: f64,
    /// Requests served a second, whether their client still waits or not.
    pub(crate) served_per_s: f64,
    /// Requests let in by the gate a second; all of them if there is none.
    pub(crate) admitted_per_s: f64,
    /// Requests a second that found no place.
    pub(crate) refused_per_s: f64,
    /// Share of the processor that reception and the gate take.
    pub(crate) reception_share: f64,
    /// Half of the answers in time come within this.
    pub(crate) p50_ms: Option<f64>,
    /// All but one of a hundred of them.
    pub(crate) p99_ms: Option<f64>,
}

/// Asks the model: of the long run, or of a measurement that sends for so long.
///
/// # Errors
/// A number that no host or load can have.
pub(crate) fn expect(host: &Host, load: &OfferedLoad, sending_s: Option<f64>) -> Result<Expected, String> {
    long_run(host.retry_s, sending_s)?;
    let prediction = match sending_s {
        Some(sending_s) => host.predict_run(load, &run(sending_s)),
        None => host.predict(load),
    };
    prediction.map(|prediction| Expected::of(&prediction)).map_err(|fault| fault.to_string())
}

/// Says what to do where clients try again in a measurement that ends.
///
/// # Errors
/// They do, and it ends.
pub(crate) fn long_run(retry_s: f64, sending_s: Option<f64>) -> Result<(), String> {
    match sending_s {
        Some(_) if retry_s > 0.0 => {
            Err("--retry is known of the long run only: leave out --sending (fit: --sending off)".to_owned())
        }
        _ => Ok(()),
    }
}

/// A run of `staunch load`: rates are counted over the time of sending.
pub(crate) fn run(sending_s: f64) -> Run {
    Run { sending_s, drain_counted: false }
}

impl Expected {
    fn of(prediction: &Prediction) -> Self {
        Self {
            goodput_per_s: prediction.goodput_per_s,
            served_per_s: prediction.throughput_per_s,
            admitted_per_s: prediction.admitted_per_s,
            refused_per_s: prediction.refused_per_s,
            reception_share: prediction.reception_share,
            p50_ms: prediction.in_time.map(|response| response.p50_s * 1e3),
            p99_ms: prediction.in_time.map(|response| response.p99_s * 1e3),
        }
    }
}

/// A whole number of things a second.
pub(crate) fn whole(value: f64) -> String {
    words::count(value.round() as u64)
}

/// A share of 1 in percent with one digit behind the point.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share in percent with its sign.
pub(crate) fn signed_percent(share: f64) -> String {
    // What is rounded to nothing has no sign.
    let percent = (share * 1000.0).round() / 10.0;
    if percent == 0.0 { "0.0 %".to_owned() } else { format!("{percent:+.1} %") }
}
