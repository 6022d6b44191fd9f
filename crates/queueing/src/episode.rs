//! A run that begins with an empty queue and more load than can be served: how the queue fills, and who is
//! served in time meanwhile.
//!
//! It owns the fluid approximation. It must never be asked below capacity, where chance rules and not the
//! trend.

use crate::host::Host;
use crate::prediction::{Prediction, Response};

/// A measurement of a load: it begins with an empty queue, and answers after the last request still count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Seconds in which requests are sent.
    pub sending_s: f64,
    /// Whether rates are over the time until the last answer in time, too, or over the time of sending alone
    /// (as `staunch load` has them, where each request belongs to the time at which it was due).
    pub drain_counted: bool,
}

/// What such a run shows; `steady` is the long run of the same load.
pub(crate) fn overloaded(host: &Host, steady: &Prediction, run: &Run) -> Prediction {
    let (arrivals, served, sending_s) = (steady.admitted_per_s, steady.mu2r_per_s, run.sending_s);
    let growth = arrivals - served;
    // An admitted request finds at most K-1 others; then the queue is full: as many are admitted as leave.
    let others_most = f64::from(host.places - 1);
    let filling_s = sending_s.min(others_most / growth);
    let full_s = sending_s - filling_s;
    let response = |time_s: f64| (growth * time_s + 1.0) / served;
    let last_s = response(filling_s);
    let all = arrivals * filling_s + served * full_s;
    let patient_s = ((served * host.patience_s - 1.0) / growth).clamp(0.0, filling_s);
    let rising = arrivals * patient_s;
    let good = if last_s <= host.patience_s { all } else { rising };
    // When nobody sends any more, reception takes nothing from the application.
    let drain_s = host.patience_s.min((growth * filling_s + 1.0) / host.mu2_per_s);
    let counted_s = if run.drain_counted { sending_s + drain_s } else { sending_s };
    let (fastest_s, slowest_s) = (served.recip(), response(patient_s));
    let quantile = |share: f64| {
        let so_far = if rising > 0.0 { (share * good / rising).min(1.0) } else { 1.0 };
        fastest_s + (slowest_s - fastest_s) * so_far
    };
    let rising_mean_s = f64::midpoint(fastest_s, last_s);
    Prediction {
        goodput_per_s: good / counted_s,
        throughput_per_s: all / counted_s,
        admitted_per_s: arrivals * sending_s / counted_s,
        refused_per_s: (arrivals * sending_s - all).max(0.0) / counted_s,
        response_mean_s: (arrivals * filling_s * rising_mean_s + served * full_s * last_s) / all,
        in_time: (good > 0.0).then(|| Response { p50_s: quantile(0.5), p99_s: quantile(0.99) }),
        ..*steady
    }
}
