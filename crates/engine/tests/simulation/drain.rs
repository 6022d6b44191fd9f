//! A worker that is told to drain at any moment: whatever it was asked before is answered, whole, and then it
//! is over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use staunch_engine::{Control, Drain, Mailbox, Post, Pressure, Stats, Worker, WorkerParts};
use staunch_netio::simulated::{End, Faults, Random, Simulated, Transcript};

use crate::fixture::{self, Fixture, Waiting};
use crate::script::{self, Plan};
use crate::{TIMEOUTS, TURNS_MAX, seeds, split_head};

/// Longer than any conversation.
const CAP_MS: u32 = 600_000;

/// A patience so long that no request is sent away for having waited.
const PATIENCE_MS: u32 = 600_000;

/// What a drain does in one seed.
struct Case {
    drain: Drain,
    turn: u64,
    faults: Faults,
}

fn case(seed: u64, random: &mut Random) -> Case {
    let faults = [Faults::NONE, Faults::GENTLE][seed as usize % 2];
    let cap_ms = if random.chance(100) { random.below(1_000) as u32 } else { CAP_MS };
    let idle_ms = random.chance(700).then(|| random.below(500) as u32);
    let drain = Drain { cap_ms, idle_ms, leave_queues: false };
    Case { drain, turn: random.below(60) as u64, faults }
}

fn run(seed: u64) -> (u64, bool) {
    let mut random = Random::new(seed ^ 0xd1a1);
    let case = case(seed, &mut random);
    // Of a crowd some stand in line to be read from when the end is told.
    let crowd = random.chance(100);
    let (capacity, count) =
        if crowd { (30, 10 + random.below(20)) } else { (1 + random.below(4) as u32, 1 + random.below(6)) };
    let mut world = Simulated::new(seed, case.faults, capacity);
    let plans = script::peers(count, &mut world, &mut random);
    let mailbox = Arc::new(Mailbox::new(Box::new(world.waker())));
    let post = Post::new(vec![Arc::clone(&mailbox)]);
    let control = Control::new(&[Arc::clone(&mailbox)]);
    let (waiting, stats) = (Waiting::default(), Arc::new(Stats::default()));
    let mut handler = Fixture::new(&waiting, usize::MAX);
    let pass = world.work();
    handler.work = Box::new(move || pass(if crowd { 20 } else { 0 }));
    let asked = Rc::clone(&handler.asked);
    let mut worker = Worker::new(
        world,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts: TIMEOUTS, index: 0 },
    );
    worker.set_pressure(Pressure { patience_ms: crowd.then_some(PATIENCE_MS), ..Pressure::NONE });
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "the worker spins");
        if turn == case.turn {
            drop(control.drain(case.drain));
        }
        if worker.is_over() {
            break;
        }
        fixture::answer_some(&waiting, &post, &mut random);
        worker.turn().expect("the simulator does not fail");
    }
    let world = worker.io();
    world.check_empty();
    let cut = case.drain.cap_ms < CAP_MS;
    if !cut {
        let given_up = stats.requests.waits_lost.get();
        assert!(given_up <= plans.iter().filter(|(_, plan)| plan.gives_up).count() as u64);
        assert_eq!(
            asked.get(),
            stats.requests.answered.get() + given_up,
            "a request that was received was not answered"
        );
        let in_time = case.faults == Faults::NONE;
        plans.iter().for_each(|(peer, plan)| judge(world.transcript(*peer), plan, in_time));
    }
    (stats.requests.answered.get(), cut)
}

/// Everybody was let in, and nobody's answer was cut or destroyed.
fn judge(transcript: &Transcript, plan: &Plan, in_time: bool) {
    assert!(transcript.accepted, "a connection in the queue was lost");
    if plan.gives_up {
        return;
    }
    assert!(!in_time || transcript.ended != Some(End::Reset), "bytes of the peer were left unread");
    let mut rest = &transcript.received[..];
    for (place, expected) in plan.expected.iter().enumerate() {
        let Some((status, length, body)) = split_head(rest) else { break };
        if status == 408 && plan.may_time_out {
            return;
        }
        assert_eq!(status, expected.status, "answer {place}");
        let carried = if expected.is_head { 0 } else { length };
        assert!(body.len() >= carried, "answer {place} is cut");
        assert!(status == 400 || expected.is_head || body[..carried] == expected.body, "answer {place}");
        rest = &body[carried..];
    }
    assert!(rest.is_empty() || plan.may_time_out, "{:?}", rest.escape_ascii().to_string());
}

#[test]
fn every_request_received_before_is_answered() {
    let seeds = seeds(2_000);
    let count = seeds.end - seeds.start;
    let (mut requests, mut cuts) = (0, 0);
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok((answered, cut)) => {
                requests += answered;
                cuts += u64::from(cut);
            }
            Err(_) => panic!(
                "seed {seed} fails; again: STAUNCH_SEED={seed} cargo test --test simulation every_request"
            ),
        }
    }
    println!("{count} seeds, {requests} requests, {cuts} cut short");
    assert!(requests > 0 && (count < 1_000 || cuts > 0));
}
