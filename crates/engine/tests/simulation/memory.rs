//! The engine with little memory: peers that send and do not read never make it hold more than it may, those
//! that hold most give way, and slow readers are left alone while there is room.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use staunch_engine::{Mailbox, Pressure, Stats, Worker, WorkerParts};
use staunch_netio::simulated::{Faults, PeerId, Random, Simulated, Step};

use crate::fixture::{self, Fixture, Waiting};
use crate::{TIMEOUTS, seeds, split_head};

/// Twice what is kept free for one event, and as much again for peers.
const BUDGET_BYTES: u64 = 512 * 1024;
/// So many that never read have room beside honest ones: each may hold some 40 KiB.
const GREEDY_FEW: usize = 4;
const TURNS_MAX: u64 = 100_000;
const FOREVER_MS: u64 = 10_000_000;
const REQUEST: &[u8] = b"GET /own/1400 HTTP/1.1\r\nHost: h\r\n\r\n";

/// Pipelines and does not read.
fn greedy(random: &mut Random) -> Vec<Step> {
    let mut steps = vec![Step::Stall];
    for _ in 0..1 + random.below(3) {
        steps.push(Step::Send(REQUEST.repeat(1 + random.below(470))));
        steps.push(Step::Wait(random.below(50) as u64));
    }
    steps.push(Step::Wait(FOREVER_MS));
    steps
}

/// Asks for some answers and takes them with pauses, each shorter than any deadline.
fn slow(random: &mut Random) -> (Vec<Step>, usize) {
    let count = 1 + random.below(30);
    let mut steps = vec![Step::Stall, Step::Send(REQUEST.repeat(count))];
    for _ in 0..1 + random.below(5) {
        steps.extend([Step::Wait(random.below(900) as u64), Step::Read]);
        steps.extend([Step::Wait(random.below(10) as u64), Step::Stall]);
    }
    steps.extend([Step::Read, Step::HalfClose, Step::UntilReceived(usize::MAX)]);
    (steps, count)
}

/// Plays a simulated world; gives the worker's counters and the most that it ever held, in bytes.
fn run(seed: u64, greedy_count: usize, budget_bytes: u64) -> (Arc<Stats>, u64) {
    let mut random = Random::new(seed ^ 0x3e3);
    let faults = [Faults::NONE, Faults::GENTLE][seed as usize % 2];
    let mut world = Simulated::new(seed, faults, 200);
    for _ in 0..greedy_count {
        let steps = greedy(&mut random);
        world.peer(steps);
    }
    let slow: Vec<(PeerId, usize)> = (0..3)
        .map(|_| {
            let (steps, count) = slow(&mut random);
            (world.peer(steps), count)
        })
        .collect();
    let mailbox = Arc::new(Mailbox::new(Box::new(world.waker())));
    let stats = Arc::new(Stats::default());
    let handler = Fixture::new(&Waiting::default(), usize::MAX);
    let mut worker = Worker::new(
        world,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts: TIMEOUTS, index: 0 },
    );
    worker.set_pressure(Pressure { send_rate_min: 100, ..Pressure::NONE });
    worker.set_memory_budget(budget_bytes);
    let (mut turns, mut most_bytes) = (0, 0);
    while !worker.io().finished() {
        turns += 1;
        assert!(turns < TURNS_MAX, "the worker spins");
        worker.turn().expect("the simulator does not fail");
        most_bytes = worker.held_bytes().max(most_bytes);
        assert!(worker.held_bytes() <= budget_bytes, "{} bytes are held", worker.held_bytes());
    }
    assert_eq!(worker.held_bytes(), 0, "what is gone is still counted");
    let world = worker.io();
    world.check_empty();
    for (peer, count) in slow {
        let answers = whole_answers(&world.transcript(peer).received);
        let is_harmed = answers < count;
        assert!(!is_harmed || greedy_count > GREEDY_FEW, "{answers} of {count} answers came");
    }
    assert_eq!(stats.connections.accepted.get(), stats.connections.closed.get(), "a connection is leaked");
    (stats, most_bytes)
}

fn whole_answers(mut rest: &[u8]) -> usize {
    let wanted = fixture::body(b"/own/1400", 1400);
    let mut count = 0;
    while let Some((200, length, body)) = split_head(rest)
        && body.get(..length).is_some_and(|body| body == wanted)
    {
        count += 1;
        rest = &body[length..];
    }
    count
}

fn check(seed: u64, greedy_count: usize) -> (Arc<Stats>, u64) {
    catch_unwind(AssertUnwindSafe(|| run(seed, greedy_count, BUDGET_BYTES))).unwrap_or_else(|_| {
        panic!("seed {seed} fails; again with: STAUNCH_SEED={seed} cargo test --test simulation memory")
    })
}

#[test]
fn the_budget_is_never_passed() {
    let seeds = seeds(300);
    let count = seeds.end - seeds.start;
    let (mut closed, mut most_bytes) = (0, 0);
    for seed in seeds {
        let (stats, bytes) = check(seed, 20 + seed as usize % 80);
        closed += stats.pressure.closed_for_memory.get();
        most_bytes = bytes.max(most_bytes);
    }
    println!("{count} seeds: {closed} closed for memory, at most {most_bytes} of {BUDGET_BYTES} bytes held");
    assert!(count < 100 || closed > 0 && most_bytes > BUDGET_BYTES / 2);
}

#[test]
fn slow_readers_are_left_alone_while_there_is_room() {
    for seed in seeds(300) {
        let (stats, _) = check(seed, seed as usize % (GREEDY_FEW + 1));
        assert_eq!(stats.pressure.closed_for_memory.get(), 0, "seed {seed}");
    }
}

#[test]
fn canary_without_a_bound_it_would_be_passed() {
    let passed = catch_unwind(AssertUnwindSafe(|| run(1, 60, u64::MAX))).expect("nothing else is wrong").1;
    assert!(passed > BUDGET_BYTES, "{passed} bytes");
}
