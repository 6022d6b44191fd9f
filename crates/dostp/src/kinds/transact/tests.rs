//! Transactions over a channel that loses, doubles and delays, by seed.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const CALLER: Sender = (1, 50_000);
const SERVICE: Sender = (2, 80);

enum Letter {
    Request(Vec<u8>),
    Reply(Vec<u8>),
    Ack(u16),
}

/// What came of many transactions.
struct Run {
    done: BTreeMap<u64, u32>,
    outcomes: BTreeMap<u64, Concluded>,
    begun: BTreeSet<u64>,
    remembered: (usize, usize),
}

/// `forgets` is a service that is built wrongly: it does not remember what it did.
fn run(seed: u64, lost: u64, doubled: u64, forgets: bool) -> Run {
    let mut random = seed;
    let mut chance = move |per_mille: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % 1_000 < per_mille
    };
    let (mut caller, mut service) = (Caller::new(u64::MAX - 10), Service::default());
    let mut wire: BTreeMap<(u64, u64), Letter> = BTreeMap::new();
    let mut serial = 0;
    let (mut done, mut outcomes, mut begun) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let mut post = |wire: &mut BTreeMap<_, _>,
                    now_us: u64,
                    make: &dyn Fn() -> Letter,
                    chance: &mut dyn FnMut(u64) -> bool| {
        for _ in 0..1 + u64::from(chance(doubled)) {
            if !chance(lost) {
                serial += 1;
                let delay_us = if chance(100) { 30_000 } else { 50 };
                wire.insert((now_us + delay_us, serial), make());
            }
        }
    };
    let mut now_us = 0;
    for turn in 0..4_000_u64 {
        now_us += 500;
        if turn < 600
            && let Some((number, payload)) = caller.begin(SERVICE, b"work", 5_000_000, now_us)
        {
            begun.insert(number);
            post(&mut wire, now_us, &|| Letter::Request(payload.clone()), &mut chance);
        }
        let mut again = Vec::new();
        outcomes.extend(caller.due(now_us, &mut |_, _, payload| again.push(payload.to_vec())));
        for payload in again {
            post(&mut wire, now_us, &|| Letter::Request(payload.clone()), &mut chance);
        }
        while let Some(entry) = wire.first_entry().filter(|entry| entry.key().0 <= now_us) {
            match entry.remove() {
                Letter::Request(payload) => {
                    if forgets {
                        service = Service::default();
                    }
                    let reply = match service.take(CALLER, &payload, now_us) {
                        Asked::Work { number, request } => {
                            *done.entry(number).or_default() += 1;
                            assert_eq!(request, b"work");
                            Some(service.answer(CALLER, number, b"done", now_us))
                        }
                        Asked::Again(reply) => Some(reply),
                        Asked::Nothing => None,
                    };
                    if let Some(reply) = reply {
                        post(&mut wire, now_us, &|| Letter::Reply(reply.clone()), &mut chance);
                    }
                }
                Letter::Reply(payload) => {
                    let number = u64::from_be_bytes(payload[..8].try_into().unwrap());
                    outcomes.extend(caller.take(SERVICE, &payload, now_us));
                    post(&mut wire, now_us, &|| Letter::Ack(number as u16), &mut chance);
                }
                Letter::Ack(id) => service.acknowledged(CALLER, id),
            }
        }
    }
    Run { done, outcomes, begun, remembered: service.remembered() }
}

#[test]
fn the_check_finds_a_service_that_forgets() {
    assert!(run(1, 100, 100, true).done.values().any(|times| *times > 1));
}

#[test]
fn without_loss_nothing_is_repeated_and_all_is_done() {
    let run = run(3, 0, 0, false);
    assert!(run.outcomes.values().all(|outcome| *outcome == Concluded::Reply(b"done".to_vec())));
    assert_eq!((run.outcomes.len(), run.done.len(), run.begun.len()), (600, 600, 600));
    assert_eq!(run.remembered, (0, 600), "replies that were acknowledged are not kept");
}

#[test]
fn a_silent_service_ends_the_patience() {
    let mut caller = Caller::new(1);
    let (number, _) = caller.begin(SERVICE, b"", 100_000, 0).unwrap();
    let mut sent_us = Vec::new();
    let (outcome, now_us) = loop {
        let now_us = caller.due_us().unwrap();
        let ended = caller.due(now_us, &mut |_, _, _| sent_us.push(now_us));
        if let Some(ended) = ended.into_iter().next() {
            break (ended, now_us);
        }
    };
    assert_eq!((outcome, sent_us), ((number, Concluded::Unknown), vec![20_000, 60_000]));
    assert_eq!((now_us, caller.due_us()), (100_000, None));
}

#[test]
fn the_window_is_bounded_and_the_way_is_measured() {
    let mut caller = Caller::new(1);
    let begun = (0..100).filter(|_| caller.begin(SERVICE, b"", 1_000_000, 0).is_some()).count();
    assert_eq!(begun, WINDOW_COUNT);
    assert!(caller.begin((3, 80), b"", 1_000_000, 0).is_some());
    assert_eq!(caller.take((3, 80), &1_u64.to_be_bytes(), 50), None, "the reply of another node");
    for number in 1..=60_u64 {
        assert!(caller.take(SERVICE, &number.to_be_bytes(), 100).is_some());
    }
    assert_eq!(caller.timeout_us(2), TIMEOUT_US_MIN);
}

#[test]
fn a_memory_ends_and_room_is_bounded() {
    let mut service = Service::default();
    let payload = |number: u64| number.to_be_bytes();
    assert!(matches!(service.take(CALLER, &payload(1), 0), Asked::Work { .. }));
    service.answer(CALLER, 1, &[0; 100], 0);
    assert_eq!(service.remembered(), (108, 1));
    assert!(matches!(service.take(CALLER, &payload(1), 9_000_000), Asked::Again(_)));
    assert!(matches!(service.take(CALLER, &payload(2), 18_000_000), Asked::Work { .. }));
    assert_eq!(service.remembered(), (108, 2));
    assert!(matches!(service.take(CALLER, &payload(3), 19_000_000), Asked::Work { .. }));
    assert_eq!(service.remembered(), (0, 2));
    service.answer(CALLER, 3, &vec![0; REPLY_BYTES_MAX], 19_000_000);
    assert_eq!(service.take(CALLER, &payload(4), 19_000_001), Asked::Nothing);
    assert_eq!((service.refused, service.take(CALLER, b"short", 0)), (1, Asked::Nothing));
}

#[test]
fn who_asks_the_same_again_and_again_keeps_no_others_in_memory() {
    let mut service = Service::default();
    let payload = |number: u64| number.to_be_bytes();
    for second in 0..100_u64 {
        let now_us = second * 1_000_000;
        let asked = matches!(service.take(CALLER, &payload(0), now_us), Asked::Work { .. });
        assert_eq!(asked, second == 0);
        assert!(matches!(service.take(CALLER, &payload(1 + second), now_us), Asked::Work { .. }));
        service.answer(CALLER, 1 + second, b"done", now_us);
    }
    // Those of two memories at most, for each is looked at once in one.
    assert!(service.remembered().1 <= 21, "{:?}", service.remembered());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    /// Whatever is lost, doubled and delayed: no work is done twice, every reply is of work that was done,
    /// and every transaction has an outcome.
    #[test]
    fn no_work_is_done_twice(seed: u64, lost in 0_u64..400, doubled in 0_u64..300) {
        let run = run(seed, lost, doubled, false);
        prop_assert!(run.done.values().all(|times| *times == 1));
        prop_assert!(run.done.keys().all(|number| run.begun.contains(number)));
        for (number, outcome) in &run.outcomes {
            prop_assert!(*outcome == Concluded::Unknown || run.done.contains_key(number));
        }
    }
}
