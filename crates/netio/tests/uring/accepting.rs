//! Accepting: full tables, recovery, several rings, refusing; no peer is accepted only to be closed.

use std::io::{Read, Write};
use std::net::TcpStream;

use staunch_netio::Io;

use super::echo::Echo;
use super::fixture::{Event, Fixture, Sizes, connect};

/// Asserts that a peer is neither closed nor reset.
fn assert_open(stream: &TcpStream) {
    stream.set_nonblocking(true).unwrap();
    let read = (&*stream).read(&mut [0]);
    assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
}

fn accepted(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Accepted(_))).count()
}

#[test]
fn a_full_table_leaves_peers_in_the_queue_and_takes_them_later() {
    let sizes = Sizes { capacity: 8.into(), ..Sizes::default() };
    let Some(mut fixture) = Fixture::new(sizes) else { return };
    let peers: Vec<_> = (0..20).map(|_| fixture.connect()).collect();
    let events = fixture.events_within(50);
    assert_eq!(accepted(&events), 8, "{events:?}");
    assert_eq!(events.last(), Some(&Event::AcceptStopped(libc::ENFILE)));
    peers.iter().for_each(assert_open);
    fixture.io.accept(0);
    assert_eq!(fixture.events_within(20), [Event::AcceptStopped(libc::ENFILE)]);
    for slot in 0..5 {
        fixture.close_and_wait(slot);
    }
    fixture.io.accept(0);
    let events = fixture.events_within(50);
    assert_eq!((accepted(&events), events.last()), (5, Some(&Event::AcceptStopped(libc::ENFILE))));
    peers.iter().skip(5).for_each(assert_open);
}

#[test]
fn every_peer_is_served_by_a_table_that_is_always_full() {
    for (capacity, ring_capacity) in [(1, 1), (3, 3), (8, 2), (9, 4)] {
        let sizes = Sizes { capacity: capacity.into(), ring_capacity, ..Sizes::default() };
        let Some(mut fixture) = Fixture::new(sizes) else { return };
        let address = fixture.address;
        std::thread::scope(|scope| {
            for thread in 0..6u8 {
                scope.spawn(move || {
                    for round in 0..20u8 {
                        let mut stream = connect(address);
                        stream.write_all(&[thread, round]).unwrap();
                        let mut back = [0; 2];
                        stream.read_exact(&mut back).unwrap();
                        assert_eq!(back, [thread, round]);
                    }
                });
            }
            Echo::default().serve(&mut fixture, 120);
        });
    }
}

#[test]
fn multishot_gives_way_to_single_accepts_and_comes_back() {
    // The queue holds 4, so a ring of 64 is multishot up to 55 connections, and single above.
    let sizes = Sizes { capacity: 64.into(), ring_capacity: 64, backlog: 4, ..Sizes::default() };
    let Some(mut fixture) = Fixture::new(sizes) else { return };
    for _ in 0..3 {
        let mut peers = Vec::new();
        for _ in 0..64 {
            peers.push(fixture.connection());
        }
        peers.iter().for_each(|(peer, _)| assert_open(peer));
        assert_eq!(fixture.events_within(5), [Event::AcceptStopped(libc::ENFILE)]);
        for (_, slot) in peers {
            fixture.close_and_wait(slot);
        }
        fixture.io.accept(0);
    }
}

#[test]
fn a_ring_is_made_only_when_the_others_are_full() {
    let sizes = Sizes { capacity: 30.into(), ring_capacity: 10, ..Sizes::default() };
    let Some(mut fixture) = Fixture::new(sizes) else { return };
    let mut peers = Vec::new();
    for count in 1..=30 {
        peers.push(fixture.connection());
        let needed: usize = if count % 10 == 0 && count < 30 { count / 10 + 1 } else { (count - 1) / 10 + 1 };
        assert_eq!(fixture.io.rings(), needed.min(3), "with {count} connections");
    }
    let mut slots: Vec<_> = peers.iter().map(|(_, slot)| *slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, (0..30).collect::<Vec<_>>());
    for (_, slot) in peers.drain(..10) {
        fixture.close_and_wait(slot);
    }
    fixture.io.accept(0);
    for _ in 0..10 {
        let (peer, slot) = fixture.connection();
        assert!(slot < 10, "slots of the first ring are used again");
        peers.push((peer, slot));
    }
    peers.iter().for_each(|(peer, _)| assert_open(peer));
}

#[test]
fn who_is_refused_waits_and_is_accepted_later() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    let _first = fixture.connection();
    fixture.io.refuse(0);
    assert_eq!(fixture.events_within(10), []);
    let second = fixture.connect();
    assert_eq!(fixture.events_within(30), []);
    assert_open(&second);
    fixture.io.accept(0);
    assert!(matches!(fixture.next(), Event::Accepted(_)));
    for _ in 0..50 {
        fixture.io.refuse(0);
        fixture.io.accept(0);
        fixture.turns(1);
        fixture.connection();
        fixture.io.refuse(0);
        fixture.turns(1);
        fixture.io.accept(0);
        fixture.connection();
    }
    assert_open(&second);
}
