//! Whether the generator's own lateness shows in a time that was measured.
//!
//! Times count from the intended start, so what the generator was late is in them. It must never call a
//! figure the server's when a tenth of it may be the generator's.

/// Less than this is what a timer and a scheduler take on a host that is not busy.
const DRIFT_MIN_MS: f64 = 1.0;

/// Drift up to this share of a time leaves it what it is: rounds on a quiet host differ by as much.
const SHARE_MAX: f64 = 0.1;

/// Whether the drift at a percentile shows in the latency at the same percentile.
pub(crate) fn shows_in(drift_ms: Option<f64>, latency_ms: Option<f64>) -> bool {
    let drift_ms = drift_ms.unwrap_or(0.0);
    drift_ms > DRIFT_MIN_MS && drift_ms > SHARE_MAX * latency_ms.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_a_time_is_too_much() {
        let cases = [
            (None, None, false),
            (Some(0.9), Some(0.1), false),
            (Some(1.1), None, true),
            (Some(1.1), Some(10.9), true),
            (Some(1.1), Some(11.1), false),
            (Some(40.0), Some(300.0), true),
        ];
        for (drift, latency, expected) in cases {
            assert_eq!(shows_in(drift, latency), expected, "{drift:?} {latency:?}");
        }
    }
}
