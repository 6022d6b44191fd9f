//! The rules for clients on the simulated network: any split, any fault, and time to the millisecond.

use std::num::NonZeroU32;

use staunch_engine::{ClientPolicy, ClientRate, ClientTable, Trusted};
use staunch_netio::simulated::{End, Faults, Step};
use staunch_protocol::Deadline;

use super::world::{REQUEST, World};

const CLIENT: &str = "198.51.100.7:4711";
const OTHER: &str = "198.51.100.8:4711";

fn connections(most: u32) -> ClientPolicy {
    ClientPolicy { connections_max: NonZeroU32::new(most), ..ClientPolicy::default() }
}

fn per_second(count: u64) -> ClientRate {
    ClientRate::new(count.try_into().unwrap(), NonZeroU32::MIN)
}

fn rate(per_s: u64) -> ClientPolicy {
    ClientPolicy { rate: Some(per_second(per_s)), ..ClientPolicy::default() }
}

fn trusting(blocks: &[(&str, u8)]) -> Trusted {
    Trusted::new(blocks.iter().map(|(address, prefix)| (address.parse().unwrap(), *prefix)))
}

fn proxied() -> ClientPolicy {
    ClientPolicy { proxy_protocol: true, ..ClientPolicy::default() }
}

fn world(policy: ClientPolicy) -> World {
    World::new(1, Faults::NONE, policy, &ClientTable::default())
}

/// Asks, and stays until told otherwise.
fn asks() -> Vec<Step> {
    vec![Step::Send(REQUEST.to_vec())]
}

#[test]
fn the_handler_is_told_the_peer_when_somebody_asked() {
    for (policy, expected) in [
        (ClientPolicy::default(), "nobody"),
        (ClientPolicy { addresses: true, ..ClientPolicy::default() }, "198.51.100.7"),
        (rate(1000), "198.51.100.7"),
    ] {
        let mut world = world(policy);
        let peer = world.peer(CLIENT, asks());
        world.settle();
        assert_eq!(world.answers(peer), [(200, expected.to_owned())]);
    }
}

#[test]
fn connections_above_the_cap_are_turned_away_and_places_come_back() {
    let mut world = world(connections(2));
    let peers: Vec<_> = (0..4).map(|_| world.peer(CLIENT, asks())).collect();
    let other = world.peer(OTHER, asks());
    world.settle();
    let statuses: Vec<_> = peers.iter().map(|peer| world.statuses(*peer)).collect();
    assert_eq!(statuses, [[200], [200], [429], [429]]);
    assert_eq!(world.statuses(other), [200]);
    assert_eq!(world.stats.clients.connections.get(), 2);
    assert_eq!(world.stats.requests.answered.get(), 3, "nothing is asked of the application");
    for peer in peers.into_iter().chain([other]) {
        world.worker.io().add(peer, Step::Close);
    }
    world.run();
    let again = world.peer(CLIENT, vec![Step::Send(REQUEST.to_vec()), Step::UntilReceived(1), Step::Close]);
    world.run();
    assert_eq!(world.statuses(again), [200]);
}

/// The refusal arrives whole although the peer's bytes were never looked at.
#[test]
fn a_refusal_is_not_lost_by_a_reset() {
    for seed in 0..200 {
        let mut world = World::new(seed, Faults::GENTLE, connections(1), &ClientTable::default());
        let steps = vec![
            Step::Send(REQUEST.repeat(20)),
            Step::Wait(200),
            Step::Send(REQUEST.repeat(20)),
            Step::UntilReceived(200),
            Step::Wait(5_000),
            Step::Close,
        ];
        let peers = [world.peer(CLIENT, steps.clone()), world.peer(CLIENT, steps)];
        world.run();
        let mut answers = peers.map(|peer| world.statuses(peer));
        answers.sort_by_key(Vec::len);
        assert_eq!((&answers[0][..], answers[1].len()), (&[429][..], 40), "seed {seed}");
    }
}

#[test]
fn requests_above_the_rate_are_refused_until_time_has_passed() {
    let mut world = world(rate(5));
    let peer = world.peer(
        CLIENT,
        vec![
            Step::Send(REQUEST.repeat(8)),
            Step::Wait(1_000),
            Step::Send(REQUEST.repeat(8)),
            Step::Wait(200),
            Step::Send(REQUEST.repeat(2)),
            Step::Wait(10),
            Step::Close,
        ],
    );
    let other = world.peer(OTHER, vec![Step::Send(REQUEST.repeat(5)), Step::Wait(100), Step::Close]);
    world.run();
    let mut expected = [[200; 5].as_slice(), &[429; 3], &[200; 5], &[429; 3], &[200], &[429]].concat();
    assert_eq!(world.statuses(peer), expected);
    expected.truncate(5);
    assert_eq!(world.statuses(other), expected);
    assert_eq!(world.stats.clients.rate.get(), 7);
    assert_eq!(world.stats.requests.answered.get(), 16);
}

#[test]
fn a_dry_run_only_counts() {
    let policy = ClientPolicy {
        connections_max: NonZeroU32::new(1),
        rate: Some(per_second(1)),
        dry_run: true,
        ..ClientPolicy::default()
    };
    let mut world = world(policy);
    let steps = vec![Step::Send(REQUEST.repeat(3)), Step::Wait(100), Step::Close];
    let peers = [world.peer(CLIENT, steps.clone()), world.peer(CLIENT, steps)];
    world.run();
    assert!(peers.iter().all(|peer| world.statuses(*peer) == [200; 3]));
    assert_eq!((world.stats.clients.connections.get(), world.stats.clients.rate.get()), (1, 5));
}

/// Workers that share a table count together; the rules can be replaced, and what was counted is given back.
#[test]
fn workers_count_together_and_rules_are_replaced() {
    let table = ClientTable::default();
    let mut worlds = [1, 2].map(|seed| World::new(seed, Faults::NONE, connections(2), &table));
    let mut peers = Vec::new();
    for world in &mut worlds {
        peers.push(world.peer(CLIENT, asks()));
        world.settle();
    }
    let [first, second] = &mut worlds;
    let third = first.peer(CLIENT, asks());
    first.settle();
    assert_eq!(first.statuses(third), [429]);
    first.worker.set_clients(ClientPolicy::default());
    let fourth = first.peer(CLIENT, asks());
    first.settle();
    assert_eq!(first.statuses(fourth), [200], "no limit any more");
    for peer in [peers[0], third, fourth] {
        first.worker.io().add(peer, Step::Close);
    }
    first.run();
    let fifth = second.peer(CLIENT, asks());
    second.settle();
    assert_eq!(second.statuses(fifth), [200], "the first one's place is free");
    let sixth = second.peer(CLIENT, asks());
    second.settle();
    assert_eq!(second.statuses(sixth), [429]);
}

#[test]
fn rules_may_begin_while_the_worker_runs() {
    let mut world = world(ClientPolicy::default());
    let before = world.peer(CLIENT, asks());
    world.settle();
    world.worker.set_clients(connections(1));
    let after = [world.peer(CLIENT, asks()), world.peer(CLIENT, asks())];
    world.settle();
    assert_eq!(world.statuses(before), [200]);
    assert_eq!(after.map(|peer| world.statuses(peer)), [[200], [429]]);
    world.worker.io().add(before, Step::Send(REQUEST.to_vec()));
    world.settle();
    assert_eq!(world.answers(before)[1], (200, "nobody".to_owned()), "it came before anybody asked");
}

const V1: &[u8] = b"PROXY TCP6 2001:db8::9 2001:db8::1 56324 80\r\n";
const V2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x13\xcb\0\x71\x09\xc0\0\x02\x01\xdc\x04\0\x50\x04\0\x04abcd";

#[test]
fn proxies_introduce_however_the_bytes_are_cut() {
    for seed in 0..500 {
        let faults = [Faults::GENTLE, Faults::HOSTILE][seed as usize % 2];
        let mut world = World::new(seed, faults, proxied(), &ClientTable::default());
        let mut peers = Vec::new();
        for (header, source) in
            [(V1, "2001:db8::9"), (V2, "203.0.113.9"), (b"PROXY UNKNOWN\r\n", "198.51.100.7")]
        {
            let (first, second) = header.split_at(seed as usize % header.len());
            let steps = vec![
                Step::Send(first.to_vec()),
                Step::Wait(seed % 7),
                Step::Send([second, &REQUEST.repeat(2)].concat()),
                Step::UntilReceived(250),
                Step::Close,
            ];
            peers.push((world.peer(CLIENT, steps), source));
        }
        world.run();
        for (peer, source) in peers {
            let answers = world.answers(peer);
            let whole = seed % 2 == 0;
            assert!(!whole || answers.len() == 2, "seed {seed}: {answers:?}");
            let right = |answer: &(u16, String)| *answer == (200, source.to_owned()) || answer.0 == 408;
            assert!(answers.iter().all(right), "seed {seed}: {answers:?}");
        }
    }
}

#[test]
fn who_is_not_introduced_is_closed_unanswered() {
    let from = |block| ClientPolicy { trusted: trusting(&[block, ("10.0.0.1", 32)]), ..proxied() };
    let whole = [V1, REQUEST].concat();
    for (policy, bytes, faults, served) in [
        (proxied(), REQUEST, 1, false),
        (proxied(), b"PROXY TCP4 here\r\n".as_slice(), 1, false),
        (proxied(), &whole, 0, true),
        (from(("198.51.100.0", 24)), &whole, 0, true),
        (from(("198.51.101.0", 24)), &whole, 1, false),
    ] {
        let mut world = world(policy);
        let peer = world.peer(CLIENT, vec![Step::Send(bytes.to_vec()), Step::Wait(100), Step::Close]);
        world.run();
        assert_eq!(world.answers(peer).len(), usize::from(served));
        assert_eq!(world.transcript(peer).received.is_empty(), !served);
        assert_eq!(world.transcript(peer).ended == Some(End::Own), served, "else we end it");
        assert_eq!(world.stats.connections.proxy_faults.get(), faults);
    }
}

#[test]
fn an_introduction_has_the_deadline_of_the_head_and_may_be_broken_off() {
    let mut world = world(proxied());
    let silent = world.peer(CLIENT, vec![Step::Wait(10_000), Step::Close]);
    let half = world.peer(CLIENT, vec![Step::Send(V1[..9].to_vec()), Step::Wait(10_000), Step::Close]);
    let gone = world.peer(CLIENT, vec![Step::HalfClose]);
    let broken = world.peer(CLIENT, vec![Step::Send(V2[..9].to_vec()), Step::HalfClose]);
    let reset = world.peer(CLIENT, vec![Step::Send(V2[..9].to_vec()), Step::Wait(10), Step::Reset]);
    // The head's deadline runs from the accept, not from the end of the introduction.
    let late = world.peer(
        CLIENT,
        vec![Step::Wait(2_000), Step::Send(V1.to_vec()), Step::Wait(2_000), Step::Send(REQUEST.to_vec())],
    );
    let began_ms = staunch_netio::Io::now_ms(world.worker.io());
    world.run();
    assert_eq!(world.stats.connections.timeouts(Deadline::Header), 3);
    for peer in [silent, half, gone, broken, reset, late] {
        assert!(world.transcript(peer).received.is_empty());
    }
    for peer in [silent, half, late] {
        // The wheel looks in steps of some milliseconds.
        assert!((3_000..3_020).contains(&(world.transcript(peer).ended_ms - began_ms)));
    }
    assert_eq!(world.stats.connections.proxy_faults.get(), 1, "a proxy that only looks is no fault");
}

#[test]
fn introduced_clients_are_counted_and_proxies_are_not() {
    let mut world = world(ClientPolicy { proxy_protocol: true, ..connections(1) });
    let call = |header: &[u8]| vec![Step::Send([header, REQUEST].concat())];
    let peers: Vec<_> = [V1, V1, V2, V2, b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN\r\n"]
        .iter()
        .map(|header| {
            let peer = world.peer(CLIENT, call(header));
            world.settle();
            peer
        })
        .collect();
    let statuses: Vec<_> = peers.iter().map(|peer| world.statuses(*peer)).collect();
    assert_eq!(statuses, [[200], [429], [200], [429], [200], [200]]);
}

#[test]
fn rates_follow_x_forwarded_for_of_trusted_proxies() {
    let trusted = trusting(&[("198.51.100.7", 32)]);
    let mut world = world(ClientPolicy { trusted, connections_max: NonZeroU32::new(1), ..rate(1) });
    let ask = |client: &str| {
        Step::Send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n").into_bytes())
    };
    let steps = vec![ask("192.0.2.1"), ask("192.0.2.2"), ask("192.0.2.1"), Step::Wait(10), Step::Close];
    let proxies = [world.peer(CLIENT, steps.clone()), world.peer(CLIENT, vec![Step::Wait(5), Step::Close])];
    let liar = world.peer(OTHER, steps);
    world.run();
    assert_eq!(world.statuses(proxies[0]), [200, 200, 429]);
    assert_eq!(world.stats.clients.connections.get(), 0, "proxies are not limited");
    assert_eq!(world.statuses(liar), [200, 429, 429]);
}
