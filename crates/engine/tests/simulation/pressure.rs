//! The engine with fewer slots and less time than is asked for: it gives way, and only so.
//!
//! Whoever is answered is answered in full and in order; what is refused is refused whole; everyone who
//! connects is accepted in the end; and nothing spins meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use staunch_engine::{Mailbox, Post, Pressure, Stats, Worker, WorkerParts};
use staunch_netio::simulated::{Faults, Random, Simulated};

use crate::fixture::{self, Fixture, Waiting};
use crate::script::{self, Plan};
use crate::{TIMEOUTS, seeds, split_head};

/// The seeds of every day, and the most: each takes a twentieth of a second.
const SEEDS: u64 = 300;
const SEEDS_MAX: u64 = 10_000;
/// A turn for each thing that can happen to 45 peers, several times over.
const TURNS_MAX: u64 = 20_000;

/// What the operator of this world wants.
fn draw_pressure(random: &mut Random) -> Pressure {
    Pressure {
        patience_ms: random.chance(800).then(|| [20, 100, 1_000][random.below(3)]),
        soft_connections: random.chance(700).then(|| random.below(8) as u64),
        reserved_connections: random.chance(700).then(|| random.below(4) as u32),
        send_rate_min: random.below(2) as u64 * 1_000,
        body_rate_min: random.below(2) as u64 * 100,
    }
}

fn run(seed: u64) -> Arc<Stats> {
    let mut random = Random::new(seed ^ 0x9e55);
    let faults = [Faults::NONE, Faults::GENTLE, Faults { resets: 0, ..Faults::HOSTILE }][seed as usize % 3];
    let capacity = 3 + random.below(14) as u32;
    let mut world = Simulated::new(seed, faults, capacity);
    let count = 5 + random.below(40);
    let plans = script::peers(count, &mut world, &mut random);
    let mailbox = Arc::new(Mailbox::new(Box::new(world.waker())));
    let post = Post::new(vec![Arc::clone(&mailbox)]);
    let (waiting, stats) = (Waiting::default(), Arc::new(Stats::default()));
    let (pass, work_ms) = (world.work(), random.below(30) as u64);
    let mut handler = Fixture::new(&waiting, usize::MAX);
    handler.work = Box::new(move || pass(work_ms));
    let mut worker = Worker::new(
        world,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts: TIMEOUTS, index: 0 },
    );
    worker.set_pressure(draw_pressure(&mut random));
    let mut turns = 0;
    while !worker.io().finished() {
        turns += 1;
        assert!(turns < TURNS_MAX, "the worker spins");
        fixture::answer_some(&waiting, &post, &mut random);
        if random.chance(5) {
            worker.set_pressure(draw_pressure(&mut random));
        }
        worker.turn().expect("the simulator does not fail");
    }
    let world = worker.io();
    world.check_empty();
    for (peer, plan) in &plans {
        let transcript = world.transcript(*peer);
        assert!(transcript.accepted, "a listener is lost: peer {peer} was never accepted");
        judge(&transcript.received, plan, faults.time_jumps == 0 && !plan.gives_up);
    }
    assert_eq!(stats.connections.accepted.get(), stats.connections.closed.get(), "a connection is leaked");
    stats
}

/// Each answer is the one that was asked for, or a whole 503; none is cut off if `whole`; and after one that
/// says it is the last there is no other.
fn judge(mut rest: &[u8], plan: &Plan, whole: bool) {
    for (place, expected) in plan.expected.iter().enumerate() {
        let Some((status, length, body)) = split_head(rest) else { break };
        if status == 408 {
            break;
        }
        let head = std::str::from_utf8(&rest[..rest.len() - body.len()]).expect("heads are text");
        let carried = if expected.is_head { 0 } else { length };
        assert!(!whole || body.len() >= carried, "answer {place} is cut off");
        let (got, behind) = body.split_at(carried.min(body.len()));
        if status == 503 {
            assert!(head.contains("\r\nRetry-After: 1\r\n"), "{head}");
            assert!(b"503 Service Unavailable: too much to do; try again in a second\n".starts_with(got));
        } else {
            assert_eq!(status, expected.status, "answer {place}");
            assert!(status == 400 || expected.body.starts_with(got), "answer {place} differs");
        }
        rest = behind;
        if head.contains("\r\nConnection: close\r\n") {
            return assert!(rest.is_empty(), "more after the last answer");
        }
    }
    let late = split_head(rest).is_some_and(|(status, ..)| status == 408);
    assert!(rest.is_empty() || late || !whole, "cut off, or more than was asked for: {rest:?}");
}

#[test]
fn under_pressure_nothing_is_cut_off_lost_or_spun() {
    let seeds = seeds(SEEDS);
    let seeds = seeds.start..seeds.end.min(seeds.start + SEEDS_MAX);
    let mut sums =
        [("late", 0), ("low", 0), ("full", 0), ("evicted", 0), ("stops", 0), ("pauses", 0), ("newcomers", 0)];
    for seed in seeds.clone() {
        let stats = catch_unwind(AssertUnwindSafe(|| run(seed))).unwrap_or_else(|_| {
            panic!("seed {seed} fails; again with: STAUNCH_SEED={seed} cargo test --test simulation pressure")
        });
        let counters = [
            &stats.pressure.shed_patience,
            &stats.pressure.shed_low,
            &stats.pressure.shed_full,
            &stats.pressure.evicted_idle,
            &stats.pressure.accept_stops,
            &stats.pressure.accept_pauses,
            &stats.pressure.newcomers_stopped,
        ];
        for (sum, counter) in sums.iter_mut().zip(counters) {
            sum.1 += counter.get();
        }
    }
    println!("{} seeds: {sums:?}", seeds.end - seeds.start);
    assert!(seeds.end - seeds.start < SEEDS || sums.iter().all(|(_, sum)| *sum > 0), "{sums:?}");
}

#[test]
fn canary_a_cut_answer_is_found() {
    let body = fixture::body(b"/own/9", 9);
    let expected = vec![script::Expected { status: 200, body: body.clone(), is_head: false }];
    let plan = Plan { steps: Vec::new(), expected, may_time_out: false, gives_up: false };
    let answer = [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", &body[..]].concat();
    judge(&answer, &plan, true);
    let cut = catch_unwind(AssertUnwindSafe(|| judge(&answer[..answer.len() - 1], &plan, true)));
    assert!(cut.is_err());
    let doubled = [&answer[..], &answer[..]].concat();
    assert!(catch_unwind(AssertUnwindSafe(|| judge(&doubled, &plan, true))).is_err());
}
