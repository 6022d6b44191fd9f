//! Runs made up for the tests: a server with a known capacity, overloaded by a queue that is worked through
//! here.
//!
//! It must never be part of the program.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::outcome::{Counts, LaneOutcome, Latency, MOMENT_MS, Moment, RunOutcome, Times, TlsOutcome};
use crate::probe::{
    AcceptQueue, ListenEvents, Process, Processors, Sample, Segments, Shares, Sockets, Softnet,
};
use crate::sweep_outcome::{SweepOutcome, SweepPoint};

/// A small generator of numbers (SplitMix64), so that a run is the same each time.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// The next, evenly from 0 to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.next()).ln()
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.next()).cos()
    }
}

/// Two lanes against a server that stalls for a second: some requests refused, reset, late and given up.
pub(crate) fn overload() -> RunOutcome {
    run(1, 10_000.0, 9_000.0, 100)
}

/// As [`overload`], with the server's side probed.
pub(crate) fn probed() -> RunOutcome {
    run(2, 10_000.0, 9_000.0, 100)
}

/// A run, probed when the seed is even: so many requests a second offered to a server that works off
/// `capacity` a second, for so many steps.
pub(crate) fn run(seed: u64, offered_per_s: f64, capacity_per_s: f64, steps: u64) -> RunOutcome {
    let mut numbers = Numbers(seed);
    let mut queue = Queue { waiting: 0.0, capacity: capacity_per_s * MOMENT_MS as f64 / 1e3 };
    let mut lanes = [
        lane("visitors", "open loop, Poisson, a connection per request"),
        lane("crowd", "closed loop, 64 connections, kept"),
    ];
    let is_probed = seed.is_multiple_of(2);
    let mut moments = Vec::new();
    for step in 0..steps {
        let stalls = (40..50).contains(&step);
        let mut moment = Moment { at_ms: (step + 1) * MOMENT_MS, ..Moment::default() };
        let offered =
            (offered_per_s * MOMENT_MS as f64 / 1e3 * (1.0 + 0.03 * numbers.normal())).max(0.0) as u64;
        let one = queue.step(offered, stalls, &mut numbers, &mut moment, &mut lanes[0]);
        moment.counts = one;
        let latency = moment.latency;
        queue.step(offered / 4, stalls, &mut numbers, &mut moment, &mut lanes[1]);
        moment.latency = latency;
        let busy = if stalls { 0.02 } else { 0.35 + 0.03 * numbers.normal() };
        moment.server = is_probed.then(|| sample(busy.clamp(0.0, 0.5), moment.connections));
        moments.push(moment);
    }
    lanes.iter_mut().for_each(|lane| lane.lasted = Duration::from_millis(steps * MOMENT_MS));
    let lanes = lanes.to_vec();
    RunOutcome {
        command: "staunch load http://127.0.0.1:8080/ --rate 10k/s --patience 1s -d 10s".to_owned(),
        began: SystemTime::UNIX_EPOCH + Duration::from_millis(1_763_712_000_123),
        target: "http://127.0.0.1:8080/".to_owned(),
        engine: "io_uring, 2 threads on processors 2 and 3".to_owned(),
        lanes,
        floods: Vec::new(),
        moments,
        warnings: vec!["The generator was behind its schedule by more than 1 ms at p99.9".to_owned()],
    }
}

/// The server's side with its program on so large a share of the processors, and so many connections.
pub(crate) fn sample(busy: f64, connections: u64) -> Sample {
    let all = Shares {
        user: busy / 4.0,
        system: busy / 2.0,
        softirq: busy / 3.0,
        irq: 0.01,
        idle: 1.0 - busy * 13.0 / 12.0 - 0.02,
        steal: 0.01,
    };
    let waiting = (connections / 3).min(4_096);
    let overflows = connections.saturating_sub(4_096) / 10;
    Sample {
        processors: Some(Processors { all, each: Vec::new() }),
        net_rx_softirqs: Some(2_000),
        softnet: Some(Softnet { processed: 9_000, ..Softnet::default() }),
        sockets: Some(Sockets { tcp_in_use: connections, ..Sockets::default() }),
        listen_events: Some(ListenEvents {
            listen_overflows: overflows,
            listen_drops: overflows + overflows / 3,
            ..ListenEvents::default()
        }),
        segments: Some(Segments::default()),
        accept_queue: Some(AcceptQueue { listeners: 1, waiting, limit: 4_096, waiting_max: waiting as u32 }),
        process: Some(Process {
            cpu_user_ms: (busy * 100.0) as u64,
            cpu_system_ms: (busy * 250.0) as u64,
            resident_bytes: 12_000_000 + connections * 800,
            threads: 4,
            descriptors: Some(connections + 12),
            ..Process::default()
        }),
        ..Sample::default()
    }
}

fn lane(name: &str, description: &str) -> LaneOutcome {
    LaneOutcome {
        name: name.to_owned(),
        description: description.to_owned(),
        lasted: Duration::ZERO,
        held: None,
        counts: Counts::default(),
        statuses: BTreeMap::new(),
        tls: TlsOutcome::default(),
        times: Times::default(),
    }
}

struct Queue {
    waiting: f64,
    capacity: f64,
}

impl Queue {
    /// A step of one lane: what came, what was answered, and how long it took.
    fn step(
        &mut self,
        offered: u64,
        stalls: bool,
        numbers: &mut Numbers,
        moment: &mut Moment,
        lane: &mut LaneOutcome,
    ) -> Counts {
        self.waiting = (self.waiting + offered as f64 - if stalls { 0.0 } else { self.capacity }).max(0.0);
        let wait_ms = (self.waiting / self.capacity * MOMENT_MS as f64).min(1_500.0);
        let mut counts =
            Counts { offered, attempted: offered, connections_begun: offered, ..Counts::default() };
        let mut longest = Latency::default();
        for _ in 0..offered {
            let ms = 0.4 + 0.3 * numbers.exponential() + wait_ms * (0.8 + 0.4 * numbers.next());
            let ns = (ms * 1e6) as u64;
            lane.times.drift.record((20e3 * numbers.exponential()) as u64);
            match numbers.next() {
                draw if draw < wait_ms / 20_000.0 => counts.refused += 1,
                draw if draw < wait_ms / 15_000.0 => counts.reset += 1,
                _ if ms > 1_000.0 => counts.timed_out += 1,
                draw if draw > 0.998 => counts.wrong_answer += 1,
                _ => {
                    if ms > 700.0 {
                        counts.late += 1
                    } else {
                        counts.in_time += 1
                    }
                    lane.times.complete.record(ns);
                    lane.times.first_byte.record(ns * 9 / 10);
                    longest.max_ns = longest.max_ns.max(ns);
                }
            }
            lane.times.connect.record((80e3 + 40e3 * numbers.exponential()) as u64);
        }
        let answered = counts.in_time + counts.late;
        counts.connections_made = counts.attempted - counts.refused;
        counts.syn_retransmitted = counts.refused / 3;
        counts.received_bytes = answered * 5_200;
        counts.sent_bytes = offered * 90;
        *lane.statuses.entry(200).or_insert(0) += answered;
        *lane.statuses.entry(503).or_insert(0) += counts.wrong_answer;
        lane.counts += counts;
        let scale = |share: f64| (longest.max_ns as f64 * share) as u64;
        moment.latency = Latency { p50_ns: scale(0.3), p90_ns: scale(0.6), p99_ns: scale(0.85), ..longest };
        moment.connections += offered / 8 + (wait_ms * 4.0) as u64;
        moment.in_flight += offered / 10 + (wait_ms * 4.0) as u64;
        moment.drift_max_ns = (60e3 + 60e3 * numbers.exponential()) as u64;
        counts
    }
}

/// A sweep over a server with a capacity of 1000 requests a second, three rounds a load.
pub(crate) fn sweep() -> SweepOutcome {
    let capacity_per_s = 1_000.0;
    let factors = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0];
    let point = |factor: f64| SweepPoint {
        factor,
        offered_per_s: factor * capacity_per_s,
        rounds: (1..4)
            .map(|seed| run(seed, factor * capacity_per_s * 0.8, capacity_per_s * 0.55, 20))
            .collect(),
    };
    SweepOutcome {
        capacity_per_s,
        patience: Some(Duration::from_secs(1)),
        notes: Vec::new(),
        points: factors.map(point).to_vec(),
    }
}
