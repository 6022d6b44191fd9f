//! What is decided of all ports, as one: for those who look at the whole, and for what the host does once.
//!
//! It must never be given to a port as an order.

use crate::controller::{Decision, Estimate};
use crate::observation::State;

/// The decisions of all ports, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Whole {
    /// Whether anybody is shed anywhere.
    pub(super) sheds: bool,
    /// Whether newcomers are tested anywhere.
    pub(super) verify: bool,
    /// Rates and lines are sums, waits those of the slowest port, shares those of the processor.
    pub(super) estimate: Estimate,
}

impl Whole {
    /// Of what was decided for each port.
    pub(super) fn of(decisions: &[Decision]) -> Self {
        let mut whole =
            Self { estimate: Estimate { asking_share: 1.0, ..Estimate::default() }, ..Self::default() };
        for decision in decisions {
            whole.sheds |= decision.orders.state == State::Shedding;
            whole.verify |= decision.orders.verify;
            add(&mut whole.estimate, &decision.estimate);
        }
        whole
    }
}

fn add(all: &mut Estimate, one: &Estimate) {
    all.served_per_s += one.served_per_s;
    all.waiting += one.waiting;
    all.syn_per_s += one.syn_per_s;
    all.syn_cost_share += one.syn_cost_share;
    all.wait_s = all.wait_s.max(one.wait_s);
    all.waited_s = all.waited_s.max(one.waited_s);
    all.syn_cost_ns = all.syn_cost_ns.max(one.syn_cost_ns);
    all.finished_share = all.finished_share.max(one.finished_share);
    all.asking_share = all.asking_share.min(one.asking_share);
    all.speaks_first |= one.speaks_first;
    all.small_queue |= one.small_queue;
    all.flood_passed |= one.flood_passed;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Orders;

    #[test]
    fn the_slowest_port_is_what_is_waited_for() {
        let decision = |state, served_per_s, wait_s| Decision {
            orders: Orders { state, ..Orders::default() },
            change: None,
            hint: None,
            asks_sockets: false,
            estimate: Estimate { served_per_s, wait_s, asking_share: 0.5, ..Estimate::default() },
        };
        let whole = Whole::of(&[decision(State::Open, 300.0, 0.01), decision(State::Shedding, 20.0, 0.3)]);
        assert_eq!((whole.sheds, whole.verify), (true, false));
        assert_eq!((whole.estimate.served_per_s, whole.estimate.wait_s), (320.0, 0.3));
        assert_eq!(whole.estimate.asking_share, 0.5);
        assert!(!Whole::of(&[decision(State::Open, 1.0, 0.0)]).sheds);
    }
}
