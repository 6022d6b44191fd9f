//! Whose turn it is, counted in checks of others that are made first. No time plays a part.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use proptest::prelude::*;
use staunch_engine::StreamRef;

use super::*;
use crate::limits::ASKS_REMEMBERED_MAX;

const RULE: usize = 7;
/// The credentials of whoever knows them; guesses have smaller numbers.
const RIGHT: Tag = 1_000_000;

fn asker(client: u32, connection: u32) -> Asker {
    let address = Ipv4Addr::from_bits(0x7f00_0000 | client);
    let connection = Address { worker: 0, slot: connection, generation: 0, stream: StreamRef::ONLY };
    Asker::new(Some(address.into()), connection)
}

/// Guessers, each of whom has a connection and asks anew as soon as it is answered or put off.
struct Flood {
    checks: Checks<Asker>,
    guessers: Vec<Asker>,
    guesses: Tag,
}

impl Flood {
    /// So many guessers, of whom so many share an address; all have asked twice.
    fn new(count: u32, at_one_address: u32) -> Self {
        let guessers = (0..count).map(|number| asker(1 + number / at_one_address, number)).collect();
        let mut flood = Self { checks: Checks::new(), guessers, guesses: 0 };
        flood.press();
        flood.press();
        flood
    }

    fn guess(&mut self, guesser: Asker) {
        self.guesses += 1;
        let _ = self.checks.ask(RULE, self.guesses, guesser, || guesser);
    }

    /// Everyone who does not wait asks.
    fn press(&mut self) {
        let waiting: Vec<_> = {
            let state = self.checks.lock();
            state.lanes.iter().flat_map(|lane| &lane.jobs).map(|job| job.job.connection).collect()
        };
        for guesser in self.guessers.clone() {
            if !waiting.contains(&guesser.connection) {
                self.guess(guesser);
            }
        }
    }

    /// How many guesses are checked before the right credentials of this asker, who asks again as often as
    /// it is put off; `None` if it gives up.
    fn guesses_before(&mut self, right: Asker) -> Option<usize> {
        let mut waits = self.checks.ask(RULE, RIGHT, right, || right).is_ok();
        for checked in 0..500 {
            let turn = loop {
                match self.checks.next().unwrap() {
                    Turn::PutOff(who, ..) if who == right => waits = false,
                    Turn::PutOff(who, ..) => self.guess(who),
                    Turn::Check(tag, who) => break (tag, who),
                }
            };
            self.checks.finish(RULE, turn.0, turn.0 == RIGHT);
            if turn.0 == RIGHT {
                return Some(checked);
            }
            self.press();
            if !waits {
                waits = self.checks.ask(RULE, RIGHT, right, || right).is_ok();
            }
        }
        None
    }
}

#[test]
fn whoever_knows_is_before_those_who_guess() {
    for (count, at_one_address) in [(80, 80), (240, 240), (240, 60), (240, 1), (1000, 1000)] {
        let mut flood = Flood::new(count, at_one_address);
        for round in 0..20 {
            let right = asker(5000 + round, 5000 + round);
            let before = flood.guesses_before(right).expect("an answer");
            assert!(before <= 1, "{before} guesses of {count}, {at_one_address} at an address, came first");
        }
    }
}

#[test]
fn many_who_know_log_in_from_one_address() {
    let mut flood = Flood::new(240, 1);
    for round in 0..40 {
        let before = flood.guesses_before(asker(5000, 5000 + round)).expect("an answer");
        assert!(before <= 1, "{before} guesses came before login {round}");
    }
}

#[test]
fn whoever_knows_is_not_shut_out_by_guessers_at_the_same_address() {
    let mut flood = Flood::new(240, 240);
    for round in 0..20 {
        let before = flood.guesses_before(asker(1, 5000 + round)).expect("an answer");
        assert!(before <= 1, "{before}");
    }
}

#[test]
fn a_rule_is_not_held_up_by_another() {
    let flood = Flood::new(240, 1);
    let right = asker(1, 5000);
    flood.checks.ask(RULE + 1, RIGHT, right, || right).unwrap();
    let mut before = 0;
    while !matches!(flood.checks.next(), Some(Turn::Check(RIGHT, _))) {
        before += 1;
    }
    // Those put off are told of it, which takes no time.
    let put_off = before + 1 - flood.checks.lock().running.len();
    assert!(before - put_off <= 1, "{before}, {put_off}");
}

#[test]
fn nobody_waits_for_ever() {
    let checks = Checks::new();
    for ask in 0..100 {
        let asker = asker(1, 1);
        let _ = checks.ask(RULE, ask, asker, || asker);
    }
    let old = asker(1, 2);
    checks.ask(RULE, RIGHT, old, || old).unwrap();
    // New clients, none of whom asked before, come as fast as checks are made.
    for fresh in 0..2 * CHECKS_PER_RULE_MAX as u32 {
        let fresh = asker(100 + fresh, 100 + fresh);
        checks.ask(RULE, Tag::from(fresh.connection.slot) + 1000, fresh, || fresh).unwrap();
        while let Some(Turn::PutOff(..)) = checks.next() {}
        if checks.lock().running.iter().any(|running| running.tag == RIGHT) {
            return;
        }
    }
    panic!("starved");
}

#[test]
fn the_bound_of_a_client_and_of_all() {
    let checks = Checks::new();
    let mut tag = 0;
    let mut ask = |client: u32, connection: u32| {
        tag += 1;
        checks.ask(RULE, tag, asker(client, connection), || ())
    };
    for connection in 0..CHECKS_PER_CLIENT_MAX as u32 {
        assert_eq!(ask(1, connection), Ok(()));
    }
    assert_eq!(ask(1, 0), Err(Excess::Client), "this connection has asked before");
    for client in 2..2 + (CHECKS_PER_RULE_MAX - CHECKS_PER_CLIENT_MAX) as u32 {
        assert_eq!(ask(client, 100 * client), Ok(()));
    }
    assert_eq!(ask(9999, 1), Ok(()), "in place of one of those who asked most");
    assert!(matches!(checks.next(), Some(Turn::PutOff((), waiters, Excess::Server)) if waiters.len() == 1));
}

#[test]
fn what_nobody_waits_for_is_not_checked() {
    let checks = Checks::new();
    for connection in 0..5 {
        checks.ask(RULE, Tag::from(connection), asker(1, connection), || ()).unwrap();
    }
    checks.ask(RULE, 3, asker(1, 9), || ()).unwrap();
    for connection in 0..4 {
        checks.leave(asker(1, connection).connection, Departure::Gone);
    }
    let next = || match checks.next() {
        Some(Turn::Check(tag, ())) => (tag, checks.finish(RULE, tag, false)),
        other => panic!("{other:?}"),
    };
    assert_eq!(next(), (4, vec![asker(1, 4).connection]));
    assert_eq!(next(), (3, vec![asker(1, 9).connection]));
    assert!(checks.lock().lanes.is_empty());
}

#[test]
fn whoever_sends_no_more_comes_last() {
    let checks = Checks::new();
    for connection in 0..3 {
        checks.ask(RULE, Tag::from(connection), asker(1, connection), || ()).unwrap();
    }
    checks.leave(asker(1, 0).connection, Departure::SendsNoMore);
    let order: Vec<_> = (0..3)
        .map(|_| match checks.next() {
            Some(Turn::Check(tag, ())) => tag,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(order, [2, 1, 0]);
}

#[test]
fn the_same_credentials_are_checked_once() {
    let checks = Checks::new();
    for connection in 0..3 {
        checks.ask(RULE, 1, asker(1, connection), || ()).unwrap();
    }
    assert!(matches!(checks.next(), Some(Turn::Check(1, ()))));
    checks.ask(RULE, 1, asker(1, 3), || ()).unwrap();
    checks.ask(RULE + 1, 1, asker(1, 4), || ()).unwrap();
    let connections: Vec<_> = checks.finish(RULE, 1, false).iter().map(|address| address.slot).collect();
    assert_eq!(connections, [0, 1, 2, 3]);
    assert!(matches!(checks.next(), Some(Turn::Check(1, ()))), "the other rule's");
}

#[test]
fn clients() {
    let client = |text: &str| Asker::new(Some(text.parse().unwrap()), asker(1, 1).connection).client;
    assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
    assert_ne!(client("2001:db8:0:1::1"), client("2001:db8::1"));
    assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
}

#[test]
fn threads_end() {
    let checks: Checks<()> = Checks::new();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| assert!(checks.next().is_none()));
        checks.end();
        running.join().unwrap();
    });
}

proptest! {
    #[test]
    fn every_ask_has_one_outcome(asks in prop::collection::vec((0_u32..6, 0_u32..40, 0_u8..8), 0..300)) {
        let checks = Checks::new();
        let mut owed = HashMap::<u32, usize>::new();
        let answered = |turn: Option<Turn<()>>| match turn.unwrap() {
            Turn::Check(tag, ()) => checks.finish(RULE, tag, false),
            Turn::PutOff((), waiters, _) => waiters,
        };
        let settle = |owed: &mut HashMap<u32, usize>, addresses: Vec<Address>| {
            for address in addresses {
                *owed.get_mut(&address.slot).unwrap() -= 1;
            }
        };
        let waits = || {
            let state = checks.lock();
            !state.lanes.is_empty() || !state.put_off.is_empty()
        };
        for (number, (client, connection, what)) in asks.into_iter().enumerate() {
            let asker = asker(client, connection);
            if what == 0 && waits() {
                settle(&mut owed, answered(checks.next()));
            } else if checks.ask(RULE, number as Tag / 2, asker, || ()).is_ok() {
                *owed.entry(connection).or_default() += 1;
            }
            let jobs = checks.lock().lanes.iter().map(|lane| lane.jobs.len()).sum::<usize>();
            prop_assert!(jobs <= CHECKS_PER_RULE_MAX);
            prop_assert!(checks.lock().clients.counts.len() <= ASKS_REMEMBERED_MAX as usize);
        }
        while waits() {
            settle(&mut owed, answered(checks.next()));
        }
        prop_assert!(owed.values().all(|&count| count == 0), "{owed:?}");
    }
}
