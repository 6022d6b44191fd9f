//! What the model says.
//!
//! It must never hold what was measured.

/// What the model expects. Always `goodput <= throughput <= admitted <= offered`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Answers within the patience, per second.
    pub goodput_per_s: f64,
    /// Requests served per second, whether their client still waits or not: T2.
    pub throughput_per_s: f64,
    /// Requests let in by the gate per second; all of them if there is none.
    pub admitted_per_s: f64,
    /// Requests that found no place, per second.
    pub refused_per_s: f64,
    /// Share of the processor that S1 and the gate take, 0 to 1.
    pub reception_share: f64,
    /// Service rate left to the application, per second: mu2r, equation (4).
    pub mu2r_per_s: f64,
    /// Mean seconds from arrival to answer of all served; infinite if nobody is.
    pub response_mean_s: f64,
    /// The answers that came in time; none if there are none.
    pub in_time: Option<Response>,
}

/// Seconds from arrival to answer, among answers in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// Half of them are faster.
    pub p50_s: f64,
    /// 99 of 100 are faster.
    pub p99_s: f64,
}
