//! Who comes how far: what the gate lets in, what reception takes, what is left to the application.
//!
//! It must never look at queues.

use crate::host::{Admission, Host, Load};

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
    /// Thinning before S1, then what S1 leaves.
    pub(crate) fn of(host: &Host, load: &Load) -> Flow {
        let arrivals = load.requests_per_s + load.flood_per_s;
        let mut flow = Flow {
            admitted_per_s: load.requests_per_s,
            flood_per_s: load.flood_per_s,
            reception_share: 0.0,
            mu2r_per_s: 0.0,
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
        let answering_share = (flow.admitted_per_s + flow.flood_per_s) / host.reception.mu1(arrivals);
        let left = left(host, flow.admitted_per_s, gate_share, answering_share);
        flow.reception_share = 1.0 - left;
        flow.mu2r_per_s = left * host.mu2_per_s;
        flow
    }
}

/// Share of the processor left to S2: `1 - gate - answering`, equations (4) and (11), as long as that serves
/// all who are let in. If not, places are taken for some of the time, and a packet costs only phi of the rest
/// then. A connection must find a place twice, for its SYN and for the last packet of its handshake; let each
/// do so with the same chance `x`. Then `admitted x^2` are served, and that is mu2r:
///
/// `admitted x^2 = mu2 (1 - gate - answering (phi + (1-phi) x))`, equation (12).
fn left(host: &Host, admitted_per_s: f64, gate_share: f64, answering_share: f64) -> f64 {
    let at_least = 1.0 - gate_share - answering_share;
    let full_share = host.reception.full_share;
    if full_share >= 1.0 || at_least * host.mu2_per_s >= admitted_per_s {
        return at_least.max(0.0);
    }
    let at_most = 1.0 - gate_share - answering_share * full_share;
    if at_most <= 0.0 {
        return 0.0;
    }
    let demand = admitted_per_s / host.mu2_per_s;
    let between = answering_share * (1.0 - full_share);
    let chance = 2.0 * at_most / (between + (between.powi(2) + 4.0 * demand * at_most).sqrt());
    demand * chance.powi(2)
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
