//! M/M/1: Poisson arrivals, exponential service, one server, endless room.
//!
//! It must never be asked about overload: at `lambda >= mu` the queue grows without end, and the answers say
//! so (infinite, or certain).

/// Probability that nobody is there; equation (1): `p0 = 1 - lambda/mu`. Zero from `lambda = mu` on.
///
/// `lambda`, `mu`: per second, `mu > 0`.
pub fn empty(lambda: f64, mu: f64) -> f64 {
    (1.0 - lambda / mu).max(0.0)
}

/// Mean number in the system, `rho/(1-rho)`; infinite from `rho = 1` on.
pub fn mean_number(lambda: f64, mu: f64) -> f64 {
    if lambda < mu { lambda / (mu - lambda) } else { f64::INFINITY }
}

/// Mean time from arrival to the end of service in seconds, `1/(mu - lambda)`; infinite from `lambda = mu`
/// on.
pub fn mean_response(lambda: f64, mu: f64) -> f64 {
    if lambda < mu { (mu - lambda).recip() } else { f64::INFINITY }
}

/// Probability that a response takes longer than `time_s` seconds (first come, first served):
/// `exp(-(mu-lambda) t)`; 1 from `lambda = mu` on.
pub fn exceeds(lambda: f64, mu: f64, time_s: f64) -> f64 {
    if lambda < mu { (-(mu - lambda) * time_s).exp() } else { 1.0 }
}
