//! Who comes how far: what the gate lets in, what reception takes, what is left to the application.
//!
//! It must never look at queues.

use crate::host::{Admission, Host, Load};
use crate::preemptive::{mu2r, p0};

/// The rates before the queue.
pub(crate) struct Flow {
    /// Requests let in per second.
    pub(crate) admitted_per_s: f64,
    /// Packets of the flood let in per second.
    pub(crate) flood_per_s: f64,
    /// Share of the processor taken by S1 and the gate.
    pub(crate) reception_share: f64,
    /// Service rate left to the application, per second.
    pub(crate) mu2r_per_s: f64,
}

impl Flow {
    /// Thinning before S1: `mu2r = mu2 (1 - arrivals d - let in/mu1)`; without a gate equation (4).
    pub(crate) fn of(host: &Host, load: &Load) -> Flow {
        let arrivals = load.requests_per_s + load.flood_per_s;
        let mu1 = host.reception.mu1(arrivals);
        let Some(gate) = host.gate else {
            return Flow {
                admitted_per_s: load.requests_per_s,
                flood_per_s: load.flood_per_s,
                reception_share: 1.0 - p0(arrivals, mu1),
                mu2r_per_s: mu2r(arrivals, mu1, host.mu2_per_s),
            };
        };
        let limit = match gate.admission {
            Admission::Share(share) => share * capacity(host, load),
            Admission::PerSecond(rate) => rate,
        };
        let admitted_per_s = load.requests_per_s.min(limit);
        let flood_per_s = load.flood_per_s.min(gate.flood_passed_per_s);
        let taken = arrivals * gate.residual_s + (admitted_per_s + flood_per_s) / mu1;
        let left = (1.0 - taken).max(0.0);
        Flow { admitted_per_s, flood_per_s, reception_share: 1.0 - left, mu2r_per_s: left * host.mu2_per_s }
    }
}

/// Requests let in per second that leave just the time to serve them: `c = mu2 (1 - gate - (c + flood)/mu1)`.
pub(crate) fn capacity(host: &Host, load: &Load) -> f64 {
    let arrivals = load.requests_per_s + load.flood_per_s;
    let mu1 = host.reception.mu1(arrivals);
    let (gate_share, flood) = match host.gate {
        Some(gate) => (arrivals * gate.residual_s, load.flood_per_s.min(gate.flood_passed_per_s)),
        None => (0.0, load.flood_per_s),
    };
    let left = (1.0 - gate_share - flood / mu1).max(0.0);
    left / (host.mu2_per_s.recip() + mu1.recip())
}
