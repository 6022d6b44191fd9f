//! Clients of the plant: their SYN, their kernels' repetitions, their handshakes; some say nothing.
//!
//! They never touch the server but by standing in its line.

use super::{ACCEPT_S, Client, Event, Plant};
use crate::program::found_place;
use rand::RngExt;
use staunch_gate::observation::{KNOWN, UNKNOWN, VERIFIED};

/// How often a kernel sends a SYN for somebody who has gone.
const GHOST_TRIES: u32 = 5;
/// Clients may not be kept out for so long before a server that has nothing to do.
const OUTAGE_S: f64 = 1.0;
/// What a client's kernel rounds the time of a retransmission up to (Linux, kernel/time/timer.c: the wheel's
/// second level at 250 Hz), and how long it then takes for each.
const TIMER_STEP_S: f64 = 0.032;
const REPEAT_S: f64 = 5e-6;

impl Plant {
    pub(super) fn syn(&mut self, client: usize) {
        if self.ring_full() {
            return self.retry(client);
        }
        let Client { known, prefix, tries, unknown_seen, seen_s, .. } = self.clients[client];
        let remembered = (1..=4).contains(&tries) && {
            let per_s = (self.unknown_seen - unknown_seen) as f64 / (self.now - seen_s);
            self.random.random::<f64>() < found_place(per_s)
        };
        let class = if known { KNOWN } else { [UNKNOWN, VERIFIED][usize::from(remembered)] };
        self.unknown_seen += u64::from(!known);
        (self.clients[client].unknown_seen, self.clients[client].seen_s) = (self.unknown_seen, self.now);
        if self.scenario.gated && !self.program.judge(class, prefix) {
            self.receive(self.scenario.shed_cost_ns);
            let silent = self.clients[client].silent;
            self.outcome.shed_honest += u64::from(!silent && self.now >= self.scenario.measure_s);
            self.kept_out();
            return self.retry(client);
        }
        self.kept_out_since = self.now;
        self.receive(self.scenario.syn_cost_ns);
        let full = !self.scenario.eager && self.queue.len() >= self.scenario.backlog;
        if full || self.is_shut() {
            self.sensors.drops += 1;
            return self.retry(client);
        }
        self.clients[client].let_in = self.now;
        let (least, most) = self.scenario.round_trip_ms;
        let round_trip = (least + (most - least) * self.random.random::<f64>()) / 1e3;
        self.at(round_trip, Event::Handshake(client));
    }

    /// Whether the server keeps newcomers out itself.
    pub(super) fn is_shut(&mut self) -> bool {
        let Some(valve_s) = self.scenario.valve_s else { return false };
        let line_s = self.queue.len() as f64 * self.scenario.service.mean_s();
        self.shut = line_s > if self.shut { valve_s / 2.0 } else { valve_s };
        self.shut
    }

    /// A client was kept out: for how long now did none come in though the server has nothing to do?
    pub(super) fn kept_out(&mut self) {
        let Some(idle_since) = self.idle_since else { return };
        let since = self.kept_out_since.max(idle_since);
        self.outcome.outages += u64::from(self.now - since >= OUTAGE_S);
    }

    /// The client's kernel sends again after each of the first four seconds (Linux since 6.5,
    /// `tcp_syn_linear_timeouts`), if the client is still there, and does so for all whose time comes in the
    /// same step one after another. Some kernels do so for clients who have gone.
    pub(super) fn retry(&mut self, client: usize) {
        let tries = self.clients[client].tries.min(6);
        let step =
            ((self.now + f64::from(1 << tries.saturating_sub(3))) / TIMER_STEP_S).ceil() * TIMER_STEP_S;
        let before = &mut self.repeats_until[tries as usize];
        *before = before.max(step) + REPEAT_S;
        let wait = *before - self.now;
        self.clients[client].tries += 1;
        let Client { born, silent, .. } = self.clients[client];
        let is_there = !silent && self.now + wait < born + self.scenario.patience_s;
        if !is_there && self.scenario.ghosts {
            self.clients[client].silent = true;
        }
        if is_there || self.scenario.ghosts && tries < GHOST_TRIES {
            self.at(wait, Event::Syn(client));
        } else {
            self.gone(client);
        }
    }

    pub(super) fn handshake(&mut self, client: usize) {
        if !self.scenario.eager && self.queue.len() >= self.scenario.backlog {
            self.sensors.drops += 1;
            return self.retry(client);
        }
        self.sensors.established += 1;
        self.sensors.silent += 1;
        if self.clients[client].silent {
            return self.says_nothing(client);
        }
        if self.random.random::<f64>() < self.scenario.slow_share {
            let wait = 0.1 + 0.2 * self.random.random::<f64>();
            return self.at(wait, Event::Sends(client));
        }
        self.ready(client);
    }

    /// He is accepted all the same, and leaves in his time: at once if he had gone.
    pub(super) fn says_nothing(&mut self, client: usize) {
        if self.clients[client].tries > 0 {
            self.at(0.0, Event::Leaves);
        } else if self.scenario.silent_stay_s.is_finite() {
            self.at(self.scenario.silent_stay_s, Event::Leaves);
        }
        if self.scenario.eager {
            self.free.push(client);
            return self.take(ACCEPT_S);
        }
        self.stand(client);
    }

    pub(super) fn ready(&mut self, client: usize) {
        self.clients[client].asked = self.now;
        self.sensors.asked += 1;
        self.sensors.silent -= 1;
        self.sensors.waiting += 1;
        self.stand(client);
    }

    pub(super) fn stand(&mut self, client: usize) {
        self.queue.push_back(client);
        if self.serving.is_none() {
            self.serve();
        }
    }

    /// A client gave up; in a closed loop it comes again at once.
    pub(super) fn gone(&mut self, client: usize) {
        if self.clients[client].again {
            let wait = (self.clients[client].born + self.scenario.patience_s - self.now).max(0.0);
            self.clients[client].born = self.now + wait;
            self.clients[client].tries = 0;
            return self.at(wait, Event::Syn(client));
        }
        self.free.push(client);
    }

    pub(super) fn silent(&mut self) {
        if self.scenario.silent_per_s <= 0.0 {
            return;
        }
        let client = self.client(false, false);
        self.clients[client].silent = true;
        self.syn(client);
        let wait = self.exponential(1.0 / self.scenario.silent_per_s);
        self.at(wait, Event::Silent);
    }

    pub(super) fn client(&mut self, known: bool, again: bool) -> usize {
        let greedy = self.random.random::<f64>() < self.scenario.greedy_share;
        let among = self.random.random::<f64>() * f64::from(self.scenario.prefixes);
        let prefix = if greedy { 0 } else { 1 + among as u32 };
        let client = Client { born: self.now, prefix, known, again, ..Client::default() };
        match self.free.pop() {
            Some(place) => {
                self.clients[place] = client;
                place
            }
            None => {
                self.clients.push(client);
                self.clients.len() - 1
            }
        }
    }
}
