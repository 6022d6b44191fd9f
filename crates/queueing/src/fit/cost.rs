//! How far a host is from what was measured.
//!
//! It owns the weights of disagreement. It must never search.

use super::point::{Point, Residual};
use crate::episode::Run;
use crate::host::{Fault, Host, OfferedLoad};
use crate::prediction::Prediction;

/// A median counts so much less than a goodput.
const MEDIAN_WEIGHT: f64 = 0.05;
/// A median that is measured where none is predicted counts as e^5 times too long or short.
const MEDIAN_MISSED: f64 = 5.0;
/// Goodput below this share of the peak is not asked for in proportion.
const SMALL_SHARE: f64 = 0.1;

/// Measured beside predicted, point by point; `run` as in [`super::Known`].
pub fn residuals(host: &Host, points: &[Point], run: Option<Run>) -> Result<Vec<Residual>, Fault> {
    let peak = peak(points);
    points.iter().map(|point| Ok(residual(point, &predict(host, &point.load, run)?, peak))).collect()
}

/// Sum of the squares of all disagreements; large and finite if the host cannot be.
pub(crate) fn costs(host: &Host, points: &[Point], run: Option<Run>) -> f64 {
    const IMPOSSIBLE: f64 = 1e12;
    let peak = peak(points);
    let cost = |point: &Point| {
        predict(host, &point.load, run).map_or(IMPOSSIBLE, |prediction| cost(point, &prediction, peak))
    };
    points.iter().map(cost).sum()
}

fn cost(point: &Point, prediction: &Prediction, peak: f64) -> f64 {
    let goodput = residual(point, prediction, peak).relative;
    let refused = point
        .refused_per_s
        .map_or(0.0, |refused| (prediction.refused_per_s - refused) / point.load.requests_per_s);
    let median = point.p50_s.map_or(0.0, |measured| {
        let off = prediction.in_time.map_or(MEDIAN_MISSED, |response| (response.p50_s / measured).ln());
        MEDIAN_WEIGHT * off
    });
    goodput.powi(2) + refused.powi(2) + median.powi(2)
}

fn predict(host: &Host, load: &OfferedLoad, run: Option<Run>) -> Result<Prediction, Fault> {
    match run {
        Some(run) => host.predict_run(load, &run),
        None => host.predict(load),
    }
}

fn residual(point: &Point, prediction: &Prediction, peak: f64) -> Residual {
    let (measured_per_s, predicted_per_s) = (point.goodput_per_s, prediction.goodput_per_s);
    let relative = (predicted_per_s - measured_per_s) / measured_per_s.max(SMALL_SHARE * peak);
    Residual { load: point.load, measured_per_s, predicted_per_s, relative }
}

/// The largest goodput; where there is none, what was offered.
fn peak(points: &[Point]) -> f64 {
    let largest = |of: fn(&Point) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let goodput = largest(|point| point.goodput_per_s);
    if goodput > 0.0 { goodput } else { largest(|point| point.load.requests_per_s) }
}
