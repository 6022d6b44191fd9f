//! The machine of the simulation: one processor, S1 before S2, queues, interrupts.
//!
//! It owns the order of events. It must never take a decision about admission: a rule is asked.

use std::collections::VecDeque;

use super::measured::Measured;
use super::random::Random;
use super::scenario::{Arrival, Scenario};
use crate::limits::EVENTS_MAX;

struct Packet {
    arrived_s: f64,
    is_request: bool,
    admitted: bool,
}

/// What happens next.
#[derive(Clone, Copy)]
enum Event {
    Arrive,
    Interrupt,
    Received,
    Connected,
    Served,
}

pub(crate) struct Simulator<'a, Rule> {
    scenario: &'a Scenario,
    admit: Rule,
    random: Random,
    now_s: f64,
    next_arrival_s: f64,
    /// Packets that came and wait for an interrupt.
    arrived: VecDeque<Packet>,
    /// Packets that an interrupt took; S1 is at the first of them until `received_at_s`.
    in_work: VecDeque<Packet>,
    received_at_s: Option<f64>,
    /// When handshakes end, and when their requests arrived.
    handshakes: VecDeque<(f64, f64)>,
    /// Arrival times of the requests before S2; the first is in service.
    requests: VecDeque<f64>,
    left_s: f64,
    served: u64,
    measured: Measured,
}

impl<'a, Rule: FnMut(&Arrival) -> bool> Simulator<'a, Rule> {
    pub(crate) fn new(scenario: &'a Scenario, admit: Rule) -> Self {
        let mut machine = Simulator {
            scenario,
            admit,
            random: Random::new(scenario.seed),
            now_s: 0.0,
            next_arrival_s: 0.0,
            arrived: VecDeque::new(),
            in_work: VecDeque::new(),
            received_at_s: None,
            handshakes: VecDeque::new(),
            requests: VecDeque::new(),
            left_s: 0.0,
            served: 0,
            measured: Measured::default(),
        };
        machine.plan_arrival();
        machine
    }

    pub(crate) fn play(mut self) -> Measured {
        for _ in 0..EVENTS_MAX {
            let (at_s, event) = self.next();
            if at_s >= self.end_s() {
                break;
            }
            self.advance(at_s);
            match event {
                Event::Arrive => self.arrive(),
                Event::Interrupt => self.interrupt(),
                Event::Received => self.received(),
                Event::Connected => self.connected(),
                Event::Served => self.finish(),
            }
        }
        self.count_to_the_end()
    }

    fn next(&self) -> (f64, Event) {
        let mut next = (self.next_arrival_s, Event::Arrive);
        let mut consider = |at_s: f64, event| {
            if at_s < next.0 {
                next = (at_s, event);
            }
        };
        if let Some((at_s, _)) = self.handshakes.front() {
            consider(*at_s, Event::Connected);
        }
        if let Some(at_s) = self.received_at_s {
            consider(at_s, Event::Received);
        } else {
            if let Some(first) = self.arrived.front() {
                let opens_s = first.arrived_s + self.scenario.host.reception.window_s;
                consider(opens_s.max(self.now_s), Event::Interrupt);
            }
            if !self.requests.is_empty() {
                consider(self.now_s + self.left_s, Event::Served);
            }
        }
        next
    }

    /// Counting ends with the last arrival, or when the last client who may be served has left.
    fn end_s(&self) -> f64 {
        let sending_s = self.scenario.sending_s;
        let waits = !self.requests.is_empty()
            || !self.handshakes.is_empty()
            || !self.arrived.is_empty()
            || !self.in_work.is_empty();
        match self.scenario.drain {
            true if waits => sending_s + self.scenario.host.patience_s,
            true => sending_s.max(self.now_s),
            false => sending_s,
        }
    }

    fn advance(&mut self, at_s: f64) {
        let passed_s = at_s - self.now_s;
        let counted_s = at_s - self.now_s.max(self.scenario.warm_up_s).min(at_s);
        self.measured.mean_number += counted_s * self.requests.len() as f64;
        if self.received_at_s.is_some() {
            self.measured.reception_s += counted_s;
        } else if !self.requests.is_empty() {
            self.left_s -= passed_s;
        }
        self.now_s = at_s;
    }

    fn plan_arrival(&mut self) {
        let load = &self.scenario.load;
        let gap_s = self.random.exponential((load.requests_per_s + load.flood_per_s).recip());
        let at_s = self.now_s + gap_s;
        self.next_arrival_s = if at_s < self.scenario.sending_s { at_s } else { f64::INFINITY };
    }

    fn counts(&self) -> bool {
        self.now_s >= self.scenario.warm_up_s
    }

    fn arrive(&mut self) {
        let load = &self.scenario.load;
        let requests_share = load.requests_per_s / (load.requests_per_s + load.flood_per_s);
        let is_request = self.random.chance() < requests_share;
        let chance = self.random.chance();
        let (now_s, waiting, served) = (self.now_s, self.requests.len(), self.served);
        let admitted = (self.admit)(&Arrival { now_s, waiting, served, is_request, chance });
        let finds_place = self.arrived.len() + self.in_work.len() < self.scenario.reception_places as usize;
        if self.counts() {
            self.measured.offered += u64::from(is_request);
            self.measured.admitted += u64::from(is_request && admitted);
            self.measured.received += 1;
            self.measured.lost += u64::from(!finds_place);
        }
        if finds_place {
            self.arrived.push_back(Packet { arrived_s: now_s, is_request, admitted });
        }
        self.plan_arrival();
    }

    /// Takes all who wait at once. They are dealt with one by one; what the interrupt itself costs falls on
    /// those let in.
    fn interrupt(&mut self) {
        std::mem::swap(&mut self.arrived, &mut self.in_work);
        let all = self.in_work.len() as f64;
        let admitted = self.in_work.iter().filter(|packet| packet.admitted).count() as f64;
        self.receive(self.scenario.host.reception.interrupt_s * admitted / all);
        self.measured.interrupts += u64::from(self.counts());
    }

    /// Begins with the next packet of the interrupt, if there is one, after `before_s` seconds. It is less
    /// work if all places are taken.
    fn receive(&mut self, before_s: f64) {
        let host = &self.scenario.host;
        let share = if self.is_full() { host.reception.full_share } else { 1.0 };
        self.received_at_s = self.in_work.front().map(|packet| {
            let packet_s = if packet.admitted { host.reception.packet_s } else { 0.0 };
            let gate_s = host.gate.map_or(0.0, |gate| gate.residual_s);
            self.now_s + before_s + self.random.service(host.service, share * packet_s) + gate_s
        });
    }

    fn received(&mut self) {
        let passed = self.in_work.pop_front().filter(|packet| packet.is_request && packet.admitted);
        self.receive(0.0);
        let Some(packet) = passed else { return };
        if self.scenario.handshake_s > 0.0 && !self.is_full() {
            self.handshakes.push_back((self.now_s + self.scenario.handshake_s, packet.arrived_s));
        } else {
            self.join(packet.arrived_s);
        }
    }

    fn connected(&mut self) {
        if let Some((_, arrived_s)) = self.handshakes.pop_front() {
            self.join(arrived_s);
        }
    }

    fn join(&mut self, arrived_s: f64) {
        if self.is_full() {
            self.measured.refused += u64::from(self.counts());
            return;
        }
        if self.requests.is_empty() {
            self.begin();
        }
        self.requests.push_back(arrived_s);
    }

    fn is_full(&self) -> bool {
        self.requests.len() >= self.scenario.host.places as usize
    }

    fn begin(&mut self) {
        let host = &self.scenario.host;
        self.left_s = self.random.service(host.service, host.mu2_per_s.recip());
    }

    fn finish(&mut self) {
        let Some(arrived_s) = self.requests.pop_front() else { return };
        self.served += 1;
        let response_s = self.now_s - arrived_s;
        if self.counts() {
            self.measured.served += 1;
            self.measured.good += u64::from(response_s <= self.scenario.host.patience_s);
            self.measured.responses_s.push(response_s);
        }
        if !self.requests.is_empty() {
            self.begin();
        }
    }

    fn count_to_the_end(mut self) -> Measured {
        let end_s = self.end_s();
        self.advance(end_s.max(self.now_s));
        self.measured.elapsed_s = self.now_s - self.scenario.warm_up_s;
        self.measured.mean_number /= self.measured.elapsed_s;
        self.measured.responses_s.sort_unstable_by(f64::total_cmp);
        self.measured
    }
}
