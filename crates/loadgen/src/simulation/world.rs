//! What a seed stands for: a plan, a network with its faults, the servers' scripts, and what people do.
//!
//! It must never draw anything from elsewhere than the seed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use staunch_netio::Address;
use staunch_netio::simulated::{Faults, Random, Step};

use super::script::{self, BODY};
use crate::check::{BodyCheck, Check};
use crate::mix::{Choice, MixEntry, MixPlan};
use crate::plan::{IoChoice, LaneKind, LanePlan, Plan, SlotPlan};
use crate::request::RequestPlan;
use crate::schedule::{Arrivals, Profile};

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) plan: Plan,
    /// Which of the plan's threads is run.
    pub(super) thread: usize,
    pub(super) faults: Faults,
    pub(super) capacity: u32,
    /// What the servers do, one per connection; who connects after the last is refused.
    pub(super) scripts: Vec<Vec<Step>>,
    /// When somebody stops the run, in milliseconds since its begin.
    pub(super) stop_ms: Option<u64>,
    /// When somebody changes the rate, and to what.
    pub(super) factors: Vec<(u64, f64)>,
    /// Every request has to be answered rightly.
    pub(super) is_kind: bool,
}

impl World {
    /// Whether time passes only while somebody waits for it.
    pub(super) fn keeps_time(&self) -> bool {
        self.faults.time_jumps == 0
    }
}

/// Plays every fault; the clock jumps so seldom that most runs end before.
const ROUGH: Faults = Faults { time_jumps: 1, ..Faults::HOSTILE };

/// No answer within the run's first minutes is certain.
const DEAF: Faults = Faults { unanswered: 500, ..Faults::GENTLE };

/// The world of a seed.
pub(super) fn draw(seed: u64) -> World {
    let mut random = Random::new(seed ^ 0x10ad);
    match seed % 200 {
        // Long enough for the kernel to give up connecting.
        7 => World { faults: DEAF, ..draw_unkind(seed, 150_000, &mut random) },
        place if place % 4 == 0 => draw_kind(seed, &mut random),
        _ => {
            let length_ms = 50 + random.below(1_500) as u64;
            draw_unkind(seed, length_ms, &mut random)
        }
    }
}

/// Servers that answer everything, and clients that wait for it.
fn draw_kind(seed: u64, random: &mut Random) -> World {
    let requests = 1 + random.below(60) as u64;
    let kind = if random.chance(500) {
        LaneKind::Closed {
            connections: 1 + random.below(6) as u32,
            pipeline: 1 + random.below(4) as u32,
            requests_per_connection: random.chance(500).then(|| 1 + random.below(5) as u32),
            requests: Some(requests),
        }
    } else {
        let times: Arc<[u64]> = (0..requests).map(|at| at * 7_300_000).collect();
        let slots =
            if random.chance(500) { SlotPlan::PerRequest } else { SlotPlan::Kept { connections_max: 1000 } };
        LaneKind::Open { arrivals: Arrivals::Trace(times), profile: steady(1.0), slots }
    };
    let entry = MixEntry { check: checked(), ..MixEntry::get("/kind") };
    let lane = lane(0, kind, mix(vec![entry], true), None);
    let faults = if random.chance(500) { Faults::NONE } else { Faults::GENTLE };
    World {
        seed,
        plan: plan(seed, vec![lane], None, 1),
        thread: 0,
        faults,
        capacity: 1000,
        scripts: (0..requests).map(|_| script::kind(requests as usize, random)).collect(),
        stop_ms: None,
        factors: Vec::new(),
        is_kind: true,
    }
}

/// Anything.
fn draw_unkind(seed: u64, length_ms: u64, random: &mut Random) -> World {
    let count = 1 + random.below(3);
    let lanes = (0..count).map(|number| draw_lane(number, length_ms, random)).collect();
    let stops = random.chance(250);
    let duration = (!stops || random.chance(500)).then_some(Duration::from_millis(length_ms));
    let threads = 1 + random.below(3);
    let factors = [0.0, 0.3, 1.0, 2.5];
    let changes = if random.chance(300) { 1 + random.below(3) } else { 0 };
    let mut factors: Vec<(u64, f64)> =
        (0..changes).map(|_| (random.below(1_500) as u64, factors[random.below(4)])).collect();
    factors.sort_by_key(|(at_ms, _)| *at_ms);
    World {
        seed,
        plan: plan(seed, lanes, duration, threads),
        thread: random.below(threads),
        faults: [Faults::NONE, Faults::GENTLE, ROUGH, ROUGH][random.below(4)],
        capacity: [2, 5, 1000][random.below(3)],
        scripts: (0..random.below(80)).map(|_| script::draw(random)).collect(),
        stop_ms: stops.then(|| random.below(length_ms as usize) as u64),
        factors,
        is_kind: false,
    }
}

fn draw_lane(number: usize, length_ms: u64, random: &mut Random) -> LanePlan {
    let connections = 1 + random.below(6) as u32;
    let interval = Duration::from_micros(random.below(200_000) as u64);
    let kind = match random.below(10) {
        0..3 => LaneKind::Closed {
            connections,
            pipeline: 1 + random.below(5) as u32,
            requests_per_connection: random.chance(500).then(|| 1 + random.below(5) as u32),
            requests: random.chance(300).then(|| random.below(60) as u64),
        },
        3..6 => draw_open(connections, length_ms, random),
        6 => LaneKind::SlowHeaders { connections, interval },
        7 => LaneKind::SlowBody { connections, interval, length_bytes: random.below(40) as u64 },
        8 => LaneKind::SlowReader { connections, interval },
        _ => LaneKind::Hold {
            connections,
            open_per_s: random.chance(500).then(|| 1.0 + random.below(100) as f64),
            request_first: random.chance(500),
        },
    };
    let patience = random.chance(600).then(|| Duration::from_micros(1 + random.below(900_000) as u64));
    let mut lane = lane(number, kind, draw_mix(random), patience);
    lane.late_after = random.chance(300).then(|| Duration::from_millis(random.below(400) as u64));
    lane
}

fn draw_open(connections: u32, length_ms: u64, random: &mut Random) -> LaneKind {
    let rate = (1 + random.below(200)) as f64 * 1000.0 / length_ms.max(1000) as f64;
    let profile = match random.below(4) {
        0 => Profile::Ramp { from: 0.0, to: rate, over_s: 0.001 * length_ms as f64 },
        1 => Profile::Steps(vec![(rate, 0.3), (0.0, 0.2), (rate * 2.0, 0.1), (0.0, 1.0)]),
        _ => steady(rate),
    };
    let arrivals = match random.below(3) {
        0 => Arrivals::Constant,
        1 => Arrivals::Poisson,
        _ => Arrivals::Trace((0..120).map(|at| at / 100 * 333_333_333).collect()),
    };
    let slots = if random.chance(500) {
        SlotPlan::PerRequest
    } else {
        SlotPlan::Kept { connections_max: connections * 2 }
    };
    LaneKind::Open { arrivals, profile, slots }
}

fn draw_mix(random: &mut Random) -> MixPlan {
    let head = RequestPlan { method: "HEAD".to_owned(), ..RequestPlan::get("/head") };
    let post =
        RequestPlan { method: "POST".to_owned(), body: b"some bytes".to_vec(), ..RequestPlan::get("/post") };
    let of = |request| MixEntry { weight: 1.0, request, check: Check::default() };
    let all = [
        MixEntry::get("/some"),
        MixEntry { check: checked(), ..MixEntry::get("/checked") },
        of(head),
        of(post),
    ];
    let count = 1 + random.below(all.len());
    mix(all.into_iter().take(count).collect(), random.chance(700))
}

fn mix(entries: Vec<MixEntry>, keep_alive: bool) -> MixPlan {
    let choice = if entries.len().is_multiple_of(2) { Choice::Weighted } else { Choice::InOrder };
    MixPlan { authority: "simulated".to_owned(), entries, choice, keep_alive }
}

fn checked() -> Check {
    Check { body: BodyCheck::Equals(BODY.into()), ..Check::default() }
}

fn steady(rate_per_s: f64) -> Profile {
    Profile::Steady { rate_per_s }
}

/// A lane without more than it needs.
pub(super) fn lane(number: usize, kind: LaneKind, mix: MixPlan, patience: Option<Duration>) -> LanePlan {
    let name = format!("lane {number}");
    LanePlan { name, kind, mix, patience, late_after: None, reset_on_close: false }
}

/// A plan of these lanes.
pub(super) fn plan(seed: u64, lanes: Vec<LanePlan>, duration: Option<Duration>, threads: usize) -> Plan {
    Plan {
        command: String::new(),
        target: String::new(),
        address: Address::Internet(SocketAddr::from(([127, 0, 0, 1], 80))),
        tls: None,
        sources: Vec::new(),
        lanes,
        duration,
        threads: vec![None; threads],
        io: IoChoice::Auto,
        seed,
        probe: None,
    }
}

/// A world without faults, for one lane that sends GET, and servers that all do the same.
pub(super) fn plain(
    kind: LaneKind,
    length: Duration,
    patience: Option<Duration>,
    servers: Vec<Vec<Step>>,
) -> World {
    let lane = lane(0, kind, mix(vec![MixEntry::get("/plain")], true), patience);
    World {
        seed: 1,
        plan: plan(1, vec![lane], Some(length), 1),
        thread: 0,
        faults: Faults::NONE,
        capacity: 1000,
        scripts: servers,
        stop_ms: None,
        factors: Vec::new(),
        is_kind: false,
    }
}
