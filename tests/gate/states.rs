//! What the program remembers between frames: credits, SYNs it has shed, shares of prefixes.
//!
//! It must never wait: times are written into the map.

use staunch_gate::layout::Outcome;
use staunch_gate::observation::Orders;
use staunch_gate::program::{Sizes, Trial};

use crate::packet::packet;
use crate::trial::{self, DROP, ONE_PLACE, PASS, action, give};

const KNOWN: usize = 0;
const VERIFIED: usize = 1;
const UNKNOWN: usize = 2;
/// SYNs are remembered by 21 bits each, three in a word, in a part of the table for each 160 ms.
const LANE_BITS: u32 = 21;
const PARTS: usize = 8;
type Parts = [[u64; 2]; PARTS];
const NOTHING: Parts = [[0; 2]; PARTS];

fn syn(source: &str) -> Vec<u8> {
    packet(&format!("ipv4={source} tcp mss"))
}

#[test]
fn as_many_come_in_as_there_are_credits() {
    let Some(mut trial) = trial::plain() else { return };
    trial.learn("192.0.2.9".parse().unwrap(), 1).unwrap();
    give(&mut trial, &trial::ration([2, 0, 3]));
    let mut actions = |source: &str| [0; 5].map(|_| action(&mut trial, &syn(source)));
    assert_eq!(actions("192.0.2.7"), [PASS, PASS, PASS, DROP, DROP]);
    assert_eq!(actions("192.0.2.9"), [PASS, PASS, DROP, DROP, DROP]);
    let counters = trial.counters().unwrap();
    assert_eq!([KNOWN, VERIFIED, UNKNOWN].map(|class| counters.passed(class)), [2, 0, 3]);
    assert_eq!([KNOWN, VERIFIED, UNKNOWN].map(|class| counters.syn(class)), [5, 0, 5]);
    assert_eq!((counters.shed(), counters.with(Outcome::Credit)), (5, 5));
}

#[test]
fn credits_left_over_are_bounded() {
    let Some(mut trial) = trial::plain() else { return };
    let orders = Orders { burst: [0, 0, 2], ..trial::ration([0, 0, 4]) };
    for _ in 0..10 {
        give(&mut trial, &orders);
    }
    let passed = (0..20).filter(|_| action(&mut trial, &syn("192.0.2.7")) == PASS).count();
    assert_eq!(passed, 6, "four new ones and two left over");
}

/// What is remembered, as if it had come so many parts ago. An entry says in which it came.
fn earlier(remembered: &Parts, parts: usize) -> Parts {
    let mask = (1 << LANE_BITS) - 1;
    let mut moved = NOTHING;
    for (index, words) in remembered.iter().enumerate() {
        let lane = |word: u64, shift: u32| match word >> shift & mask {
            0 => 0,
            entry => (entry.wrapping_sub(parts as u64) & mask) << shift,
        };
        let there = (index + PARTS - parts % PARTS) % PARTS;
        moved[there] = words.map(|word| (0..3).map(|number| lane(word, number * LANE_BITS)).sum());
    }
    moved
}

/// Shows a SYN, moves what is remembered of it into the past, shows another.
fn after(trial: &mut Trial, parts: usize, again: &[u8]) -> (u32, u64) {
    trial.remember(&NOTHING).unwrap();
    let verified = trial.counters().unwrap().syn(VERIFIED);
    assert_eq!(action(trial, &syn("192.0.2.7")), DROP);
    let remembered = trial.remembered().unwrap();
    assert_ne!(remembered, NOTHING, "a SYN that was shed is remembered");
    trial.remember(&earlier(&remembered, parts)).unwrap();
    (action(trial, again), trial.counters().unwrap().syn(VERIFIED) - verified)
}

/// A part more may have begun meanwhile.
#[test]
fn who_comes_again_in_time_is_verified() {
    let Some(mut trial) = trial::plain() else { return };
    give(&mut trial, &Orders { verify: true, ..trial::ration([0, 1_000, 0]) });
    let first = syn("192.0.2.7");
    for (parts, again, expected) in [
        (6, first.clone(), (PASS, 1)),
        (0, first.clone(), (DROP, 0)),
        (4, first.clone(), (DROP, 0)),
        (8, first.clone(), (DROP, 0)),
        (8 + 6, first.clone(), (DROP, 0)),
        (16 + 6, first.clone(), (DROP, 0)),
        (6, packet("ipv4=192.0.2.7 tcp mss sequence=8"), (DROP, 0)),
        (6, packet("ipv4=192.0.2.7 tcp mss from-port=40001"), (DROP, 0)),
        (6, packet("ipv4=192.0.2.7 tcp mss port=443"), (DROP, 0)),
        (6, packet("ipv4=192.0.2.8 tcp mss"), (DROP, 0)),
        (6, packet("ipv6 tcp mss"), (DROP, 0)),
    ] {
        assert_eq!(after(&mut trial, parts, &again), expected, "after {parts} parts: {again:x?}");
    }
}

#[test]
fn nobody_is_verified_unless_it_is_ordered() {
    let Some(mut trial) = trial::plain() else { return };
    give(&mut trial, &trial::ration([0, 1_000, 0]));
    assert_eq!([0; 2].map(|_| action(&mut trial, &syn("192.0.2.7"))), [DROP; 2]);
    assert_eq!(trial.remembered().unwrap(), NOTHING);
}

/// A part forgets those before the last six that came to a place; those of other parts stand.
#[test]
fn a_flood_pushes_out_those_who_came_just_before() {
    let Some(mut trial) = trial::plain() else { return };
    give(&mut trial, &Orders { verify: true, ..trial::ration([0, 1_000, 0]) });
    let flood = |trial: &mut Trial, hosts: std::ops::Range<u32>| {
        hosts.for_each(|host| _ = action(trial, &syn(&format!("10.0.0.{host}"))));
    };
    for (before, verified) in [(0, true), (5, true), (30, false)] {
        let parts = loop {
            trial.remember(&NOTHING).unwrap();
            action(&mut trial, &syn("192.0.2.7"));
            flood(&mut trial, 0..before);
            let parts = trial.remembered().unwrap();
            // All of them came to the same part, unless the next has just begun.
            if parts.iter().filter(|words| **words != [0; 2]).count() == 1 {
                break parts;
            }
        };
        trial.remember(&earlier(&parts, 6)).unwrap();
        flood(&mut trial, 200..250);
        assert_eq!(action(&mut trial, &syn("192.0.2.7")) == PASS, verified, "{before} came after");
    }
}

#[test]
fn a_prefix_has_its_share_of_a_window() {
    let Some(mut trial) = trial::plain() else { return };
    let mut orders = Orders { window: 7, prefix_limit: 3, ..trial::ration([0, 0, 1_000]) };
    give(&mut trial, &orders);
    let from = |trial: &mut Trial, prefix: &str| {
        (1..=5).map(|host| action(trial, &packet(&format!("{prefix}{host} tcp")))).collect::<Vec<_>>()
    };
    let share = [PASS, PASS, PASS, DROP, DROP];
    for prefix in ["ipv4=192.0.2.", "ipv4=192.0.3.", "ipv6=2001:db8:1:1::", "ipv6=2001:db8:2:1::"] {
        assert_eq!(from(&mut trial, prefix), share, "{prefix}");
    }
    assert_eq!(from(&mut trial, "ipv6=2001:db8:1:2::"), [DROP; 5], "a /48 is one prefix");
    let counters = trial.counters().unwrap();
    assert_eq!((counters.prefixes, counters.with(Outcome::Fair)), (4, 13));
    orders.window += 1;
    give(&mut trial, &orders);
    assert_eq!(from(&mut trial, "ipv4=192.0.2."), share, "a new window");
    assert_eq!(trial.counters().unwrap().prefixes, 5);
}

#[test]
fn forgers_do_not_use_up_the_share_of_known_clients() {
    let Some(mut trial) = trial::plain() else { return };
    trial.learn("192.0.2.9".parse().unwrap(), 1).unwrap();
    give(&mut trial, &Orders { prefix_limit: 2, ..trial::ration([1_000; 3]) });
    let forged = (20..40).map(|host| action(&mut trial, &syn(&format!("192.0.2.{host}"))));
    assert_eq!(forged.filter(|action| *action == PASS).count(), 2);
    assert_eq!(action(&mut trial, &syn("192.0.2.9")), PASS);
}

/// SYNs of a flood that may be taken for some that come again. Each is compared with 12 entries, six of each
/// of the two parts that are a second old, and meets one by chance in 12 of 2^21 times: 0.11 of 20 000, if
/// the flood lasts so long, and 5 or more in one of 6 million floods (0.11^5 / 5!).
const CHANCE_MAX: u64 = 4;

/// A flood of forged sources cannot make the tables larger, and what is known stays known.
#[test]
fn a_flood_of_sources_changes_nothing_for_known_clients() {
    let sizes = Sizes { known: 1, ..Sizes::default() };
    let attach = staunch_gate::program::Attach { ports: &trial::PORTS, ..Default::default() };
    let Some(mut trial) = trial::load(&attach, &sizes) else { return };
    trial.learn("192.0.2.9".parse().unwrap(), 1).unwrap();
    give(&mut trial, &Orders { verify: true, ..trial::ration([1, 0, 0]) });
    for number in 0..20_000_u32 {
        let [_, first, second, third] = number.to_be_bytes();
        let source = format!("10.{first}.{second}.{third}");
        assert_eq!(action(&mut trial, &syn(&source)), DROP, "{source}");
    }
    assert_eq!(action(&mut trial, &syn("192.0.2.9")), PASS);
    let before = trial.counters().unwrap();
    let by_chance = before.syn(VERIFIED);
    assert!(by_chance <= CHANCE_MAX, "{by_chance} of a flood were taken for SYNs that come again");
    assert_eq!((before.syn(UNKNOWN) + by_chance, before.passed(KNOWN)), (20_000, 1));
}

#[test]
fn the_lease_ends_and_begins_again() {
    let Some(mut trial) = trial::load(
        &staunch_gate::program::Attach { ports: &trial::PORTS, ..Default::default() },
        &ONE_PLACE,
    ) else {
        return;
    };
    assert_eq!(action(&mut trial, &syn("192.0.2.7")), PASS, "no orders yet");
    let now = staunch_netio::clock::now_ns();
    for (beat, expected) in [
        (now + trial::HOUR_NS, DROP),
        (now - 2_000_000_000, PASS),
        (now + trial::HOUR_NS, DROP),
        (0, PASS),
        (u64::MAX / 2, DROP),
    ] {
        trial.give(&trial::shed(), beat).unwrap();
        assert_eq!(action(&mut trial, &syn("192.0.2.7")), expected, "{beat}");
    }
    assert_eq!(trial.counters().unwrap().with(Outcome::LeaseOver), 3);
}
