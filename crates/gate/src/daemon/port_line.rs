//! A protected port: its line of people, the law that decides for it, and what that is shown.
//!
//! It owns the law's state. Ports share the host and the program, and nothing else: a slow server's line is
//! in nobody's way who asks a fast one at another port. It must never read a map or a sensor.
//!
//! Order, each tick: [`PortLine::observe`], then [`PortLine::step`], then [`PortLine::orders_due`].

use super::tally::{self, Window};
use super::ticks::Ticks;
use crate::controller::{Controller, Decision, Settings};
use crate::layout::Counters;
use crate::observation::{Observation, Orders, State};
use crate::sensors::Seen;

/// While all come in the same orders are repeated so often: the program takes the daemon for dead after 900
/// ms.
const HEARTBEAT_NS: u64 = 100_000_000;

/// A protected port with its line and its law.
pub(super) struct PortLine {
    controller: Controller,
    counters: Counters,
    window: Window,
    orders: Orders,
    ordered_ns: u64,
    ticks: Ticks,
}

/// What is seen of the host and of all lines together.
pub(super) struct Around<'a> {
    pub(super) now_ns: u64,
    pub(super) interval_ns: u64,
    pub(super) host: &'a Seen,
}

impl PortLine {
    /// Nothing seen yet but what was counted before.
    pub(super) fn new(settings: Settings, counters: Counters) -> Self {
        Self {
            controller: Controller::new(settings),
            counters,
            window: Window::default(),
            orders: Orders::default(),
            ordered_ns: 0,
            ticks: Ticks::default(),
        }
    }

    /// What came since the tick before. `place` is that of the port among all.
    pub(super) fn observe(
        &mut self,
        place: usize,
        counters: &Counters,
        sockets_waiting: Option<u64>,
        around: &Around<'_>,
    ) -> Observation {
        let host = around.host;
        let listeners = host.listeners.as_ref().and_then(|listeners| listeners.get(place));
        let since = tally::between(&self.counters, counters);
        self.counters.clone_from(counters);
        Observation {
            now_ns: around.now_ns,
            interval_ns: around.interval_ns,
            prefixes: self.window.prefixes(self.orders.window, counters.prefixes),
            queue: listeners.map(|listeners| listeners.queue),
            cpu: host.cpu,
            receive_share: host.receive_share,
            sockets: host.sockets,
            memory: host.memory,
            listen_drops: listeners.map(|listeners| listeners.drops),
            sockets_waiting,
            ..since
        }
    }

    /// What the law says of it.
    pub(super) fn step(&mut self, observation: &Observation) -> Decision {
        let decision = self.controller.step(observation);
        self.ticks.see(observation, decision.estimate.served_per_s);
        decision
    }

    /// What the program is to be told now, if anything.
    pub(super) fn orders_due(&mut self, decision: &Decision, now_ns: u64) -> Option<Orders> {
        let before = std::mem::replace(&mut self.orders, decision.orders);
        let is_open = decision.orders.state == State::Open && before.state == State::Open;
        if is_open && now_ns < self.ordered_ns + HEARTBEAT_NS {
            return None;
        }
        self.ordered_ns = now_ns;
        Some(decision.orders)
    }

    /// Whether no client comes and none waits.
    pub(super) fn is_idle(&self) -> bool {
        self.ticks.is_idle
    }

    /// Until it wants to be looked at again.
    pub(super) fn every_ns(&self) -> u64 {
        self.ticks.every_ns(self.orders.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{FLOWS, Flows};
    use crate::observation::Queue;
    use crate::sensors::PortQueue;

    #[test]
    fn a_port_sees_its_own_queue_and_what_it_counted() {
        let mut line = PortLine::new(Settings::default(), Counters::default());
        let port = |waiting, drops| PortQueue { queue: Queue { waiting, ..Queue::default() }, drops };
        let host = Seen { listeners: Some(vec![port(3, 1), port(7, 2)]), ..Seen::default() };
        let around = Around { now_ns: 20, interval_ns: 10, host: &host };
        let mut counters = Counters { flows: Some(Flows::read(&[[0; FLOWS]])), ..Counters::default() };
        counters.outcomes[0][0] = 5;
        let seen = line.observe(1, &counters, Some(4), &around);
        assert_eq!((seen.syn, seen.listen_drops, seen.sockets_waiting), ([5, 0, 0], Some(2), Some(4)));
        assert_eq!(seen.queue.map(|queue| queue.waiting), Some(7));
        let seen = line.observe(1, &counters, None, &around);
        assert_eq!((seen.syn, seen.sockets_waiting), ([0; 3], None));
        assert_eq!(line.observe(2, &counters, None, &around).queue, None, "nobody told of a third");
    }

    #[test]
    fn orders_of_an_open_line_are_repeated_and_no_more() {
        let mut line = PortLine::new(Settings::default(), Counters::default());
        let host = Seen::default();
        let mut due = |now_ns| {
            let around = Around { now_ns, interval_ns: 10_000_000, host: &host };
            let seen = line.observe(0, &Counters::default(), None, &around);
            let decision = line.step(&seen);
            line.orders_due(&decision, now_ns).is_some()
        };
        assert!(due(HEARTBEAT_NS) && !due(HEARTBEAT_NS + 1));
        assert!(!due(2 * HEARTBEAT_NS - 1) && due(2 * HEARTBEAT_NS));
    }
}
