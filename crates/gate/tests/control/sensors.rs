//! What the daemon would read of the plant, with the coarseness it has: ages in quarter octaves, shares of
//! the processor over 100 ms, drops of listeners 20 times a second.

use crate::program::Program;
use crate::scenario::Scenario;
use staunch_gate::observation::{Connections, Cpu, Observation, Queue};

/// Shares of the processor are over so much.
const SHARE_S: f64 = 0.1;
/// Listeners are looked at so often.
const LISTENERS_S: f64 = 0.05;

/// What there is of the host by a port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    cpu: Cpu,
    receive_share: f64,
    sockets: u64,
    passed: u64,
}

/// Counts since the last tick, and gauges.
#[derive(Debug, Default)]
pub(crate) struct Sensors {
    /// What was shown of this port at its last tick.
    pub(crate) shown: Shown,
    /// The snapshot of another port at its last tick; nothing where there is none.
    pub(crate) beside: Shown,
    pub(crate) established: u64,
    pub(crate) asked: u64,
    pub(crate) waiting: u64,
    pub(crate) silent: u64,
    pub(crate) sockets_waiting: Option<u64>,
    pub(crate) reads: u64,
    pub(crate) drops: u64,
    pub(crate) served_s: f64,
    pub(crate) received_s: f64,
    ages: Vec<u64>,
    share_since: f64,
    listeners_since: f64,
    cpu: Cpu,
    receive_share: f64,
}

impl Sensors {
    pub(crate) fn read_first(&mut self, age_s: f64) {
        self.ages.push(quarter_octave((age_s * 1e9) as u64));
        self.waiting -= 1;
        self.reads += 1;
    }

    pub(crate) fn observe(
        &mut self,
        now: f64,
        interval: f64,
        queue: usize,
        scenario: &Scenario,
        program: &Program,
    ) -> Observation {
        self.measure_shares(now, scenario.own_reception);
        self.ages.sort_unstable();
        let age = |share: f64| self.ages.get((self.ages.len() as f64 * share) as usize).copied();
        let connections = Connections {
            established: self.established,
            asked: self.asked,
            begun: self.ages.len() as u64,
            spoken: 0,
            ended: self.ages.len() as u64,
            reads: self.reads,
            waiting: self.waiting + scenario.phantoms,
            silent: self.silent,
            wait_ns_min: age(0.0),
            wait_ns_p50: age(0.5),
            wait_ns_p99: age(0.99),
        };
        let (waiting, limit) = (queue as u64, scenario.backlog as u64);
        let fullest_share = queue as f64 / scenario.backlog as f64;
        let own = Shown {
            cpu: self.cpu,
            receive_share: self.receive_share,
            sockets: self.waiting + 1,
            passed: program.passed.iter().sum(),
        };
        let beside = self.beside;
        self.shown = own;
        let busiest = if beside.cpu.kernel_share > own.cpu.kernel_share { beside.cpu } else { own.cpu };
        let observation = Observation {
            now_ns: (now * 1e9) as u64,
            interval_ns: (interval * 1e9) as u64,
            syn: program.syn,
            passed: program.passed,
            shed: program.shed,
            elsewhere: beside.passed,
            prefixes: program.prefixes_before,
            connections: scenario.tracker.then_some(connections),
            queue: Some(Queue { listeners: 1, waiting, limit, fullest_share }),
            cpu: Some(busiest),
            receive_share: Some(own.receive_share.max(beside.receive_share)),
            sockets: Some(own.sockets + beside.sockets),
            memory: None,
            listen_drops: Some(self.dropped(now, scenario.stray_per_s)),
            sockets_waiting: self.sockets_waiting.take(),
        };
        self.ages.clear();
        (self.established, self.asked, self.reads) = (0, 0, 0);
        observation
    }

    fn dropped(&mut self, now: f64, stray_per_s: f64) -> u64 {
        let time = now - self.listeners_since;
        if time < LISTENERS_S {
            return 0;
        }
        self.listeners_since = now;
        std::mem::take(&mut self.drops) + (stray_per_s * time) as u64
    }

    /// The busiest processor is the server's with reception, or that of one of them.
    fn measure_shares(&mut self, now: f64, own_reception: bool) {
        let time = now - self.share_since;
        if time < SHARE_S {
            return;
        }
        let served = (self.served_s / time).min(1.0);
        self.receive_share = (self.received_s / time).min(1.0);
        self.cpu.kernel_share = (self.receive_share + served * 0.6).min(1.0);
        self.cpu.user_share = (served * 0.4).min(1.0 - self.cpu.kernel_share);
        if own_reception {
            (self.cpu.kernel_share, self.cpu.user_share) = (self.receive_share.max(served * 0.6), 0.0);
        }
        (self.served_s, self.received_s, self.share_since) = (0.0, 0.0, now);
    }
}

/// The lower edge of the quarter octave, from 16 us; 0 below.
fn quarter_octave(age_ns: u64) -> u64 {
    if age_ns < 16_000 {
        return 0;
    }
    let quarters = ((age_ns as f64 / 16_000.0).log2() * 4.0).floor().min(63.0);
    (16_000.0 * (quarters / 4.0).exp2()) as u64
}
