//! How far requests come: what the gate lets in, what reception takes, what is left to the application.
//!
//! It must never look at queues.

use crate::host::{Admission, Host, OfferedLoad};

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
    /// x of equation (12), the share of handshakes that are completed; 1 if all are.
    pub(crate) found_share: f64,
}

impl Flow {
    /// Thinning before S1, then what S1 leaves.
    pub(crate) fn of(host: &Host, load: &OfferedLoad) -> Flow {
        let arrivals = load.requests_per_s + load.flood_per_s;
        let mut flow = Flow {
            admitted_per_s: load.requests_per_s,
            flood_per_s: load.flood_per_s,
            reception_share: 0.0,
            mu2r_per_s: 0.0,
            found_share: 1.0,
        };
        let mut gate_share = 0.0;
        if let Some(gate) = host.gate {
            let limit = match gate.admission {
                Admission::Share(share) => share * capacity(host, load),
                Admission::PerSecond(rate) => rate,
            };
            flow.admitted_per_s = load.requests_per_s.min(limit);
            flow.flood_per_s = load.flood_per_s.min(gate.flood_passed_per_s);
            gate_share = arrivals * gate.residual_s;
        }
        let received = flow.admitted_per_s + flow.flood_per_s;
        let taken = [host.reception.mu1(arrivals), host.reception.mu1_full(arrivals)]
            .map(|mu1| gate_share + received / mu1);
        let left = left(flow.admitted_per_s / host.mu2_per_s, taken);
        flow.reception_share = 1.0 - left;
        flow.mu2r_per_s = left * host.mu2_per_s;
        if flow.mu2r_per_s < flow.admitted_per_s {
            flow.found_share = (flow.mu2r_per_s / flow.admitted_per_s).sqrt();
        }
        flow
    }
}

/// Share of the processor left to S2: 1 less what reception and gate have `taken` of it, equations (4) and
/// (11), as long as that serves all who are let in, who want the share `demand`. If not, places are taken for
/// some of the time, and the second of `taken` is true then, with phi c1 for c1. A connection must find a
/// place twice, for its SYN and for the last packet of its handshake; let each do so with the same chance
/// `x`. Then `demand x^2` is done, and that is what is left:
///
/// `demand x^2 = 1 - taken x - taken when full (1-x)`, equation (12).
fn left(demand: f64, [taken, taken_full]: [f64; 2]) -> f64 {
    let (at_least, at_most) = (1.0 - taken, 1.0 - taken_full);
    let between = taken - taken_full;
    if at_least >= demand || at_most <= 0.0 || between <= 0.0 {
        return at_least.max(0.0);
    }
    let chance = 2.0 * at_most / (between + (between.powi(2) + 4.0 * demand * at_most).sqrt());
    demand * chance.powi(2)
}

/// Requests let in per second that leave just the time to serve them: `c = mu2 (1 - gate - (c + flood)/mu1)`.
pub(crate) fn capacity(host: &Host, load: &OfferedLoad) -> f64 {
    let arrivals = load.requests_per_s + load.flood_per_s;
    let mu1 = host.reception.mu1(arrivals);
    let (gate_share, flood) = match host.gate {
        Some(gate) => (arrivals * gate.residual_s, load.flood_per_s.min(gate.flood_passed_per_s)),
        None => (0.0, load.flood_per_s),
    };
    let left = (1.0 - gate_share - flood / mu1).max(0.0);
    left / (host.mu2_per_s.recip() + mu1.recip())
}
