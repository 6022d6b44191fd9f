//! Situations, to be read: a server of 3000 connections a second, ticks of 5 ms, and what is ordered. Each
//! begins with a second of half its load; then the same tick comes so many times, and the last decision is
//! looked at.

use staunch_gate::controller::{Controller, Decision, Hint, Policy, Settings};
use staunch_gate::observation::{Connections, Cpu, Memory, Observation, Queue, State};

const MS: u64 = 1_000_000;

/// A tick as it is told.
#[derive(Clone, Copy)]
struct Tick {
    syn: [u64; 3],
    passed: [u64; 3],
    established: u64,
    begun: u64,
    /// Established and not read from; in the accept queue; the shortest wait.
    waiting: u64,
    accept_queue: u64,
    age_ms: u64,
    kernel: f64,
    sockets: u64,
    available: f64,
    reads: u64,
}

/// Half load: nobody waits.
const HALF: Tick = Tick {
    syn: [0, 0, 8],
    passed: [0, 0, 8],
    established: 8,
    begun: 8,
    waiting: 0,
    accept_queue: 0,
    age_ms: 0,
    kernel: 0.4,
    sockets: 20,
    available: 0.5,
    reads: 8,
};

/// All the server can do, and a line of 60 ms.
const CROWD: Tick = Tick {
    syn: [0, 0, 150],
    passed: [0, 0, 150],
    established: 150,
    begun: 15,
    waiting: 400,
    accept_queue: 400,
    age_ms: 12,
    kernel: 0.8,
    sockets: 420,
    ..HALF
};

/// The crowd while credits are asked for: a line of 25 ms, and the rest shed.
const HELD: Tick =
    Tick { passed: [0, 0, 15], established: 15, waiting: 75, accept_queue: 75, age_ms: 25, ..CROWD };

fn observe(now_ns: u64, tick: &Tick) -> Observation {
    let syn_all: u64 = tick.syn.iter().sum();
    let connections = Connections {
        established: tick.established,
        asked: tick.established,
        begun: tick.begun,
        spoken: 0,
        ended: tick.begun,
        reads: tick.reads,
        waiting: tick.waiting,
        silent: 0,
        wait_ns_min: (tick.begun > 0).then_some(tick.age_ms * MS),
        wait_ns_p50: (tick.begun > 0).then_some(tick.age_ms * MS),
        wait_ns_p99: (tick.begun > 0).then_some(tick.age_ms * MS),
    };
    let fullest_share = tick.accept_queue as f64 / 4096.0;
    Observation {
        now_ns,
        interval_ns: 5 * MS,
        syn: tick.syn,
        passed: tick.passed,
        shed: syn_all - tick.passed.iter().sum::<u64>(),
        elsewhere: 0,
        prefixes: 1,
        connections: Some(connections),
        queue: Some(Queue { listeners: 1, waiting: tick.accept_queue, limit: 4096, fullest_share }),
        cpu: Some(Cpu { kernel_share: tick.kernel, user_share: 0.1 }),
        receive_share: None,
        sockets: Some(tick.sockets),
        memory: Some(Memory { available_share: tick.available, tcp_share: 0.1 }),
        listen_drops: Some(0),
        sockets_waiting: None,
    }
}

/// The last decision after a second of half load and then these ticks, each so many times.
fn play(policy: Policy, story: &[(u64, Tick)]) -> Decision {
    let mut controller = Controller::new(Settings { policy, ..Settings::default() });
    let mut now_ns = 0;
    let mut decision = controller.step(&observe(now_ns, &HALF));
    for (times, tick) in [(200, HALF)].iter().chain(story) {
        for _ in 0..*times {
            now_ns += 5 * MS;
            decision = controller.step(&observe(now_ns, tick));
        }
    }
    decision
}

/// What is done, as a word.
fn word(decision: &Decision) -> &'static str {
    match (decision.orders.state, decision.orders.verify) {
        (State::Open, _) => "open",
        (State::Shedding, false) => "shedding",
        (State::Shedding, true) => "asking for proof",
    }
}

/// Its name, the policy, the ticks that come, what is done.
type Situation<'a> = (&'a str, Policy, &'a [(u64, Tick)], &'a str);

#[test]
fn situations() {
    use Policy::{Either, Paper, Queue};
    let burst =
        Tick { waiting: 60, accept_queue: 60, established: 70, syn: [0, 0, 70], passed: [0, 0, 70], ..HALF };
    let holders = Tick { waiting: 10_000, ..HALF };
    let late = Tick { age_ms: 150, waiting: 300, ..HALF };
    let aside = Tick { syn: [0, 0, 1000], passed: [0, 0, 1000], ..HALF };
    let hinders = Tick { waiting: 9, begun: 2, age_ms: 12, ..aside };
    let forged = Tick { kernel: 0.99, ..aside };
    let probes = Tick { passed: [0, 0, 10], established: 0, begun: 0, ..forged };
    let people = Tick { passed: [0, 0, 10], established: 10, begun: 10, ..forged };
    let slow =
        Tick { syn: [0, 0, 150], passed: [0, 0, 150], established: 150, begun: 0, waiting: 1500, ..CROWD };
    let full = Tick { waiting: 4096, accept_queue: 4096, begun: 0, established: 0, ..HALF };
    let kernel = Tick { kernel: 0.8, sockets: 200, ..HALF };
    let between = Tick { kernel: 0.7, sockets: 110, ..HALF };
    let poor = Tick { available: 0.01, ..HALF };
    let less_poor = Tick { available: 0.04, ..HALF };
    let nine_tenths =
        Tick { syn: [0, 0, 14], passed: [0, 0, 14], established: 14, begun: 14, age_ms: 1, ..HELD };
    let first = Tick { age_ms: 0, ..CROWD };
    let nine_tenths = Tick { waiting: 3, accept_queue: 3, ..nine_tenths };
    let table: &[Situation] = &[
        ("half load", Queue, &[(100, HALF)], "open"),
        ("a burst of 70, once", Queue, &[(1, burst), (3, HALF)], "open"),
        ("10 000 connections that send nothing", Queue, &[(400, holders)], "open"),
        ("clients that send 150 ms late, processor at half", Queue, &[(400, late)], "open"),
        ("many at once, but somebody was read at once", Queue, &[(1, first)], "open"),
        ("a crowd, a tick later", Queue, &[(1, first), (1, CROWD)], "shedding"),
        ("a crowd, held", Queue, &[(2, CROWD), (400, HELD)], "shedding"),
        ("a crowd gone for 0.4 s", Queue, &[(2, CROWD), (400, HELD), (80, HALF)], "shedding"),
        ("a crowd gone for 0.6 s", Queue, &[(2, CROWD), (400, HELD), (120, HALF)], "open"),
        ("nine tenths after a crowd", Queue, &[(2, CROWD), (400, HELD), (600, nine_tenths)], "shedding"),
        ("a server that stopped while people come", Queue, &[(14, slow)], "shedding"),
        ("a full accept queue, two ticks", Queue, &[(2, full)], "open"),
        ("a full accept queue, three", Queue, &[(3, full)], "shedding"),
        ("forged SYN that hinder nobody, on and on", Queue, &[(1000, aside)], "open"),
        ("forged SYN before which people wait", Queue, &[(1000, aside), (3, hinders)], "asking for proof"),
        ("forged SYN, for a tick", Queue, &[(1, forged)], "open"),
        ("forged SYN, for three", Queue, &[(3, forged)], "asking for proof"),
        ("forged SYN, on and on", Queue, &[(3, forged), (1000, probes)], "asking for proof"),
        ("forged SYN, over for 0.5 s", Queue, &[(3, forged), (200, probes), (100, HALF)], "asking for proof"),
        ("forged SYN, over for 1 s", Queue, &[(3, forged), (200, probes), (200, HALF)], "open"),
        ("taken for forged, were people", Queue, &[(3, forged), (200, people)], "open"),
        ("the paper: kernel and sockets", Paper, &[(1, kernel)], "shedding"),
        ("the paper, between its thresholds", Paper, &[(1, kernel), (100, between)], "shedding"),
        ("the paper, never above", Paper, &[(100, between)], "open"),
        ("the paper, the kernel alone", Paper, &[(100, Tick { sockets: 50, ..kernel })], "open"),
        ("the paper, sockets alone", Paper, &[(100, Tick { kernel: 0.5, ..kernel })], "open"),
        ("the paper, memory alone", Paper, &[(1, poor)], "shedding"),
        ("the paper, memory between its thresholds", Paper, &[(1, poor), (100, less_poor)], "shedding"),
        ("the paper does not look at the line", Paper, &[(2, Tick { kernel: 0.5, ..CROWD })], "open"),
        ("the line does not look at the kernel", Queue, &[(100, kernel)], "open"),
        ("either, by the kernel", Either, &[(100, kernel)], "shedding"),
        ("either, by the line", Either, &[(2, Tick { kernel: 0.5, ..CROWD })], "shedding"),
        ("memory, under any policy", Queue, &[(1, poor)], "shedding"),
        ("memory, between its thresholds", Queue, &[(1, poor), (100, less_poor)], "shedding"),
        ("memory, back", Queue, &[(1, poor), (100, HALF)], "open"),
    ];
    for (name, policy, story, expected) in table {
        assert_eq!(word(&play(*policy, story)), *expected, "{name}");
    }
}

/// How many come in: what is served, and less or more as the line is too long or too short.
#[test]
fn credits() {
    let at = |waiting, age_ms| (1, Tick { waiting, accept_queue: waiting, age_ms, ..HELD });
    let table = [
        ("a line of 25 ms: what is served", at(75, 25), 14..=16),
        ("of 50 ms: half of it", at(150, 50), 6..=9),
        ("of 100 ms: a tenth, the floor", at(300, 100), 1..=2),
        ("of 6 ms: more", at(18, 6), 19..=22),
    ];
    for (name, last, expected) in table {
        let decision = play(Policy::Queue, &[(2, CROWD), (400, HELD), last]);
        let [_, _, unknown] = decision.orders.credits;
        assert!(expected.contains(&unknown), "{name}: {:?}", decision.orders);
    }
}

/// Which clients come in: known ones first, unknown ones not shut out, those who come again last unless proof
/// is asked for.
#[test]
fn classes() {
    let known = Tick { syn: [100, 20, 100], passed: [14, 0, 1], ..HELD };
    let orders = play(Policy::Queue, &[(2, CROWD), (400, HELD), (100, known)]).orders;
    assert!(orders.credits[0] >= 12 && (0..=2).contains(&orders.credits[2]), "{orders:?}");
    assert!(orders.credits[1] <= 1, "{orders:?}");

    let forged = Tick { syn: [0, 0, 1000], passed: [0, 0, 1000], kernel: 0.99, ..HALF };
    let orders = play(Policy::Queue, &[(3, forged)]).orders;
    assert!(orders.credits[0] > 100 && orders.credits[1] > 100, "{orders:?}");
    assert!((1..=2).contains(&orders.credits[2]), "150 a second: {orders:?}");
}

/// A change says why, with figures; load without SYN is said once.
#[test]
fn reasons() {
    let reason = play(Policy::Queue, &[(1, CROWD)]).change.unwrap().reason;
    assert!(reason.contains("connections wait") && reason.contains("SYN a second"), "{reason}");
    let standing = Tick { kernel: 0.95, reads: 50, syn: [0, 0, 1], passed: [0, 0, 1], ..HALF };
    let mut controller = Controller::new(Settings::default());
    let hints: Vec<Hint> =
        (1..2000_u64).filter_map(|n| controller.step(&observe(n * 5 * MS, &standing)).hint).collect();
    assert_eq!(hints.len(), 1, "{hints:?}");
}

/// A host that stalls for one tick in eight makes lines that say nothing of the server.
#[test]
fn stalls_are_not_taken_for_the_server() {
    let stalled = Tick { begun: 0, waiting: 8, accept_queue: 8, age_ms: 0, reads: 0, ..HALF };
    let after = Tick { begun: 16, reads: 16, age_ms: 6, ..HALF };
    let cycle = [(1, stalled), (1, after), (6, HALF)];
    let ticks: Vec<(u64, Tick)> = std::iter::once((400, HELD)).chain([cycle; 60].concat()).collect();
    let served_per_s = play(Policy::Queue, &ticks).estimate.served_per_s;
    assert!((2_700.0..3_300.0).contains(&served_per_s), "{served_per_s}");
}
