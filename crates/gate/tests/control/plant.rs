//! A host, played from a seed: one processor, reception with absolute priority, a server that takes
//! connections in order, clients with a kernel's retransmission and a person's patience, a flood, and the
//! gate before it all.
//!
//! Time is simulated, in seconds; events are taken in order of time. The controller is the real one.

mod clients;

use crate::program::Program;
use crate::scenario::{Outcome, Phase, Scenario, Service};
use crate::sensors::Sensors;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use staunch_gate::controller::Controller;
use staunch_gate::observation::{State, UNKNOWN};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// How long a server takes to accept a connection on which nothing comes.
const ACCEPT_S: f64 = 30e-6;
/// Frames a receive ring holds: what comes beyond is lost before anybody sees it.
const RING_S: f64 = 256.0 * 5e-6;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Arrival,
    Forged,
    Syn(usize),
    Handshake(usize),
    Sends(usize),
    Done(u64),
    Tick,
    Stall,
    Pause,
    Throttle,
    Silent,
    Leaves,
    Request,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct At(f64, u64, Event);

impl Eq for At {}

impl Ord for At {
    fn cmp(&self, other: &At) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &At) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    born: f64,
    let_in: f64,
    asked: f64,
    /// He says nothing, or has gone and only his kernel asks.
    silent: bool,
    tries: u32,
    unknown_seen: u64,
    seen_s: f64,
    prefix: u32,
    known: bool,
    again: bool,
}

/// A client that is served, until when, and how much reception had taken when that was reckoned.
#[derive(Clone, Copy, Debug)]
struct Serving {
    client: usize,
    due: f64,
    taken: f64,
}

pub(crate) struct Plant {
    scenario: Scenario,
    random: Xoshiro256PlusPlus,
    now: f64,
    events: BinaryHeap<Reverse<At>>,
    sequence: u64,
    clients: Vec<Client>,
    free: Vec<usize>,
    queue: VecDeque<usize>,
    serving: Option<Serving>,
    received_until: f64,
    taken: f64,
    unknown_seen: u64,
    repeats_until: [f64; 7],
    idle_since: Option<f64>,
    shut: bool,
    program: Program,
    sensors: Sensors,
    controller: Controller,
    tick_before: f64,
    stalled_until: f64,
    paused_until: f64,
    /// The server has used up its quota.
    throttled_until: f64,
    /// Since when the server had nothing to do and nobody was let in, though somebody asked.
    kept_out_since: f64,
    outcome: Outcome,
}

impl Plant {
    pub(crate) fn run(scenario: Scenario) -> Outcome {
        let mut plant = Plant::new(scenario);
        while plant.advance() {}
        plant.end()
    }

    /// Two servers at two ports of one host, each with a processor and a law of its own: of the host each is
    /// shown what there is of both.
    pub(crate) fn run_beside(scenarios: [Scenario; 2]) -> [Outcome; 2] {
        let mut plants = scenarios.map(Plant::new);
        let mut is_running = [true; 2];
        while is_running.contains(&true) {
            let [first, second] = plants.each_ref().map(Plant::next_s);
            let place = usize::from(!is_running[0] || is_running[1] && second < first);
            plants[place].sensors.beside = plants[1 - place].sensors.shown;
            is_running[place] = plants[place].advance();
        }
        plants.map(Plant::end)
    }

    fn new(scenario: Scenario) -> Plant {
        let mut plant = Plant {
            random: Xoshiro256PlusPlus::seed_from_u64(scenario.seed),
            controller: Controller::new(scenario.settings),
            scenario,
            now: 0.0,
            events: BinaryHeap::new(),
            sequence: 0,
            clients: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            serving: None,
            received_until: 0.0,
            taken: 0.0,
            unknown_seen: 0,
            repeats_until: [0.0; 7],
            idle_since: Some(0.0),
            shut: false,
            program: Program::default(),
            sensors: Sensors::default(),
            tick_before: 0.0,
            stalled_until: 0.0,
            paused_until: 0.0,
            throttled_until: 0.0,
            kept_out_since: 0.0,
            outcome: Outcome::default(),
        };
        plant.begin();
        plant
    }

    /// When the next event is.
    fn next_s(&self) -> f64 {
        self.events.peek().map_or(f64::INFINITY, |Reverse(At(at, ..))| *at)
    }

    /// Takes the next event; false when all is over.
    fn advance(&mut self) -> bool {
        let Some(Reverse(At(at, _, event))) = self.events.pop() else { return false };
        if at >= self.scenario.seconds {
            return false;
        }
        self.now = at;
        self.deal_with(event);
        true
    }

    fn begin(&mut self) {
        self.sensors.waiting = self.scenario.left_behind as u64;
        for _ in 0..self.scenario.left_behind {
            let client = self.client(true, false);
            self.clients[client].born = f64::NEG_INFINITY;
            self.queue.push_back(client);
        }
        if self.scenario.left_behind > 0 {
            self.serve();
        }
        for _ in 0..self.scenario.silent_ever {
            let client = self.client(false, false);
            self.clients[client].silent = true;
            self.at(0.0, Event::Syn(client));
        }
        let phase = self.random.random::<f64>() * self.scenario.tick_ms / 1e3;
        self.at(phase, Event::Tick);
        self.at(0.0, Event::Arrival);
        self.at(0.0, Event::Forged);
        self.at(0.0, Event::Silent);
        self.at(0.0, Event::Request);
        if let Some(stalls) = self.scenario.stalls {
            let wait = self.exponential(stalls.every_s);
            self.at(wait, Event::Stall);
        }
        if let Some(pauses) = self.scenario.pauses {
            let wait = self.exponential(pauses.every_s);
            self.at(wait, Event::Pause);
        }
        if let Some((period_s, _)) = self.scenario.quota {
            self.at(period_s, Event::Throttle);
        }
        for _ in 0..self.scenario.closed {
            let client = self.client(true, true);
            let spread = self.random.random::<f64>() * 0.02;
            self.at(spread, Event::Syn(client));
        }
    }

    fn end(mut self) -> Outcome {
        self.now = self.scenario.seconds;
        self.busy();
        self.outcome.measured_s = self.scenario.seconds - self.scenario.measure_s;
        self.outcome.admitted_s.sort_by(f64::total_cmp);
        self.outcome
    }

    fn deal_with(&mut self, event: Event) {
        match event {
            Event::Arrival => self.arrival(),
            Event::Forged => self.forged(),
            Event::Syn(client) => self.syn(client),
            Event::Handshake(client) => self.handshake(client),
            Event::Sends(client) => self.ready(client),
            Event::Done(sequence) => self.done(sequence),
            Event::Tick => self.tick(),
            Event::Stall => self.stall(),
            Event::Pause => self.pause(),
            Event::Throttle => self.throttle(),
            Event::Silent => self.silent(),
            Event::Leaves => self.sensors.silent -= 1,
            Event::Request => self.request(),
        }
    }

    fn arrival(&mut self) {
        let group = self.scenario.group;
        let Some(wait) = self.next(self.scenario.arrivals.clone().as_slice(), group) else { return };
        if self.rate(&self.scenario.arrivals) > 0.0 && self.now > 0.0 {
            let more = if group > 1.0 { self.exponential(group - 1.0).round() as u32 } else { 0 };
            for _ in 0..=more {
                let known = self.random.random::<f64>() < self.scenario.known_share;
                let client = self.client(known, false);
                let paused = self.now < self.paused_until
                    && self.chance(self.scenario.pauses.map_or(0.0, |pauses| pauses.share));
                match paused {
                    true => self.at(self.paused_until - self.now, Event::Syn(client)),
                    false => self.syn(client),
                }
            }
        }
        self.at(wait, Event::Arrival);
    }

    fn forged(&mut self) {
        let Some(wait) = self.next(self.scenario.flood.clone().as_slice(), 1.0) else { return };
        if self.rate(&self.scenario.flood) > 0.0 && !self.ring_full() {
            self.unknown_seen += 1;
            let prefix = 1000 + (self.unknown_seen % 60_000) as u32;
            let passes = !self.scenario.gated || self.program.judge(UNKNOWN, prefix);
            self.receive(if passes { self.scenario.syn_cost_ns } else { self.scenario.shed_cost_ns });
            self.outcome.shed_forged += u64::from(!passes);
        }
        self.at(wait, Event::Forged);
    }

    fn serve(&mut self) {
        let Some(client) = self.queue.pop_front() else {
            self.idle_since = Some(self.now);
            return;
        };
        self.busy();
        let start = if self.scenario.own_reception { self.now } else { self.now.max(self.received_until) };
        let start = start.max(self.throttled_until);
        let service = match self.scenario.service {
            _ if self.clients[client].silent => ACCEPT_S,
            Service::Fixed(mean) => mean * self.slowness(),
            Service::Exponential(mean) => self.exponential(mean) * self.slowness(),
        };
        if !self.clients[client].silent {
            self.sensors.read_first(self.now - self.clients[client].asked);
        }
        self.sensors.served_s += service;
        self.serving = Some(Serving { client, due: start + service, taken: self.taken });
        self.at(start + service - self.now, Event::Done(0));
    }

    /// How much slower the server is now than usually.
    fn slowness(&self) -> f64 {
        let slow = self.scenario.slow.filter(|(from, until, _)| (*from..*until).contains(&self.now));
        slow.map_or(1.0, |(_, _, times)| times)
    }

    fn done(&mut self, _: u64) {
        let Some(serving) = self.serving else { return };
        if self.taken > serving.taken {
            let due = serving.due + self.taken - serving.taken;
            self.serving = Some(Serving { due, taken: self.taken, ..serving });
            return self.at(due - self.now, Event::Done(0));
        }
        self.serving = None;
        self.answered(serving.client);
        self.serve();
    }

    fn answered(&mut self, client: usize) {
        let Client { born, let_in, prefix, again, silent, .. } = self.clients[client];
        if silent {
            return self.free.push(client);
        }
        if self.now >= self.scenario.measure_s {
            let good = self.now - born <= self.scenario.patience_s;
            self.outcome.good += u64::from(good);
            self.outcome.good_greedy += u64::from(good && prefix == 0);
            self.outcome.answered += 1;
            self.outcome.admitted_s.push(self.now - let_in);
        }
        if again {
            self.clients[client] = Client { born: self.now, tries: 0, ..self.clients[client] };
            return self.at(0.0, Event::Syn(client));
        }
        self.free.push(client);
    }

    fn request(&mut self) {
        let (per_s, cost_s) = self.scenario.keep_alive;
        if per_s <= 0.0 {
            return;
        }
        self.sensors.reads += 1;
        self.sensors.served_s += cost_s;
        self.take(cost_s);
        let wait = self.exponential(1.0 / per_s);
        self.at(wait, Event::Request);
    }

    fn stall(&mut self) {
        let Some(stalls) = self.scenario.stalls else { return };
        let length = (stalls.ms.0 + (stalls.ms.1 - stalls.ms.0) * self.random.random::<f64>()) / 1e3;
        self.take(length);
        if stalls.whole {
            self.stalled_until = self.now + length;
        }
        let wait = length + self.exponential(stalls.every_s);
        self.at(wait, Event::Stall);
    }

    fn pause(&mut self) {
        let Some(pauses) = self.scenario.pauses else { return };
        let length = (pauses.ms.0 + (pauses.ms.1 - pauses.ms.0) * self.random.random::<f64>()) / 1e3;
        self.paused_until = self.now + length;
        let wait = length + self.exponential(pauses.every_s);
        self.at(wait, Event::Pause);
    }

    fn throttle(&mut self) {
        let Some((period_s, share)) = self.scenario.quota else { return };
        if self.serving.is_some() {
            let length = period_s * (1.0 - share);
            self.taken += length;
            self.throttled_until = self.now + length;
        }
        self.at(period_s, Event::Throttle);
    }

    fn tick(&mut self) {
        if self.now < self.stalled_until {
            return self.at(self.stalled_until - self.now, Event::Tick);
        }
        let period = self.scenario.tick_ms / 1e3;
        let late =
            if self.chance(self.scenario.late_ticks) { self.random.random::<f64>() * 0.02 } else { 0.0 };
        self.at(period + late, Event::Tick);
        let work = self.queue.len() as f64 * self.scenario.service.mean_s();
        self.outcome.waits.push((self.now, work));
        if !self.scenario.gated || self.chance(self.scenario.lost_ticks) {
            return;
        }
        let queue = if self.scenario.eager { 0 } else { self.queue.len() };
        let interval = self.now - self.tick_before;
        let observation = self.sensors.observe(self.now, interval, queue, &self.scenario, &self.program);
        self.tick_before = self.now;
        let decision = self.controller.step(&observation);
        self.outcome.last_rate = decision.estimate.served_per_s;
        self.outcome.hints += u64::from(decision.hint.is_some());
        self.sensors.sockets_waiting = decision.asks_sockets.then_some(self.sensors.waiting);
        if decision.orders.verify {
            let (first, _) = self.outcome.verified_s.unwrap_or((self.now, self.now));
            self.outcome.verified_s = Some((first, self.now));
        }
        if let Some(change) = decision.change {
            assert_eq!(change.to, decision.orders.state);
            self.outcome.changes.push((self.now, change.to, change.reason));
        }
        assert!(decision.orders.state == State::Shedding || decision.orders.credits == [0; 3]);
        self.program.give(decision.orders);
    }

    /// The next of groups that come at the rate of now; when there is none, the next phase.
    fn next(&mut self, phases: &[Phase], group: f64) -> Option<f64> {
        let until = phases.iter().map(|phase| phase.from_s).find(|from| *from > self.now);
        let rate = self.rate(phases) / group;
        let wait = if rate > 0.0 { self.exponential(1.0 / rate) } else { f64::INFINITY };
        match until {
            Some(until) if self.now + wait > until => Some(until - self.now),
            _ => (wait.is_finite()).then_some(wait),
        }
    }

    fn rate(&self, phases: &[Phase]) -> f64 {
        phases.iter().rfind(|phase| phase.from_s <= self.now).map_or(0.0, |phase| phase.per_s)
    }

    fn ring_full(&self) -> bool {
        self.received_until - self.now > RING_S
    }

    fn receive(&mut self, cost_ns: f64) {
        self.sensors.received_s += cost_ns / 1e9;
        if self.scenario.own_reception {
            self.received_until = self.received_until.max(self.now) + cost_ns / 1e9;
        } else {
            self.take(cost_ns / 1e9);
        }
    }

    /// Reception takes the processor, whoever has it.
    fn take(&mut self, cost_s: f64) {
        self.taken += cost_s;
        self.received_until = self.received_until.max(self.now) + cost_s;
    }

    fn busy(&mut self) {
        if let Some(since) = self.idle_since.take() {
            self.outcome.idle_s += (self.now - since.max(self.scenario.measure_s)).max(0.0);
        }
    }

    fn at(&mut self, wait: f64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse(At(self.now + wait, self.sequence, event)));
    }

    fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.random::<f64>() < share
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.random.random::<f64>()).ln()
    }
}
