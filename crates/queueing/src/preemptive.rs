//! Reception (S1) before application (S2) on one processor: S1 takes it whenever a packet comes.
//!
//! It owns equations (1) and (4) to (7). It must never be asked with rates below 0. What they leave out: they
//! take the departures of S1 as Poisson and S2's slowing as a lower rate, which is right as long as one
//! packet costs much less than one request (the simulator shows where that ends).

use crate::mm1;
use crate::mm1k;

/// Share of the processor that S1 leaves; equation (1): `p0 = 1 - lambda/mu1`, at least 0.
///
/// `lambda`: packets a second to S1. `mu1`: packets a second it can deal with.
pub fn p0(lambda: f64, mu1: f64) -> f64 {
    mm1::empty(lambda, mu1)
}

/// Service rate left to S2 per second; equation (4): `mu2r = p0 mu2`.
pub fn mu2r(lambda: f64, mu1: f64, mu2: f64) -> f64 {
    p0(lambda, mu1) * mu2
}

/// Requests served by S2 a second; equation (5): M/M/1/l2 with the rate of equation (4).
///
/// `l2`: places of S2, the one in service included.
pub fn t2(lambda: f64, mu1: f64, mu2: f64, l2: u32) -> f64 {
    mm1k::throughput(lambda, mu2r(lambda, mu1, mu2), l2)
}

/// Refused share of S2's arrivals in heavy load, as equation (6) simplifies equation (5):
/// `1 - rho^(l2+1) = -rho^(l2+1)`, which leaves `1 - 1/rho2r`. At least 0.
pub fn loss_heavy(lambda: f64, mu1: f64, mu2: f64) -> f64 {
    if lambda > 0.0 { (1.0 - mu2r(lambda, mu1, mu2) / lambda).max(0.0) } else { 0.0 }
}

/// Requests served by S2 a second in heavy load; equation (7): `T2 = (1 - lambda/mu1) mu2`.
pub fn t2_heavy(lambda: f64, mu1: f64, mu2: f64) -> f64 {
    mu2r(lambda, mu1, mu2)
}

/// Slope of equation (7) over the load, without unit: `-mu2/mu1` (the paper's conclusion 4; it measured
/// -0.09).
pub fn slope(mu1: f64, mu2: f64) -> f64 {
    -mu2 / mu1
}
