//! Sending from memory: own bytes, shared slices, slow readers, the last send.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;

use staunch_netio::{Outgoing, Slice};

use super::fixture::{Event, Fixture, Sizes, pattern, reset};

/// A container of own and shared bytes in turns, and what a peer must get.
fn mixed(pieces: usize, piece_bytes: usize) -> (Outgoing, Vec<u8>) {
    let (mut outgoing, mut expected) = (Outgoing::default(), Vec::new());
    let block: Arc<[u8]> = pattern(piece_bytes + pieces).into();
    for index in 0..pieces {
        let own = format!("<{index}>");
        if index % 3 != 1 {
            outgoing.bytes().extend_from_slice(own.as_bytes());
            expected.extend_from_slice(own.as_bytes());
        }
        let length = if index % 5 == 4 { 0 } else { piece_bytes };
        let slice = Slice { bytes: Arc::clone(&block), start: index, end: index + length };
        expected.extend_from_slice(slice.as_bytes());
        outgoing.push_shared(slice);
    }
    outgoing.bytes().extend_from_slice(b"end");
    expected.extend_from_slice(b"end");
    (outgoing, expected)
}

fn expect(fixture: &mut Fixture, mut peer: &TcpStream, expected: &[u8]) {
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut got = vec![0; expected.len()];
            peer.read_exact(&mut got).unwrap();
            assert!(got == expected);
        });
        assert!(matches!(fixture.next(), Event::Sent(_, 0)));
        reader.join().unwrap();
    });
}

#[test]
fn slices_and_own_bytes_keep_their_order() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    let (peer, slot) = fixture.receiving_connection();
    for (pieces, piece_bytes) in [(1, 0), (1, 100), (2, 5000), (7, 30_000), (40, 200_000), (2500, 10)] {
        let (outgoing, expected) = mixed(pieces, piece_bytes);
        assert_eq!(outgoing.length_bytes(), expected.len() as u64);
        fixture.send(slot, outgoing, false);
        expect(&mut fixture, &peer, &expected);
    }
}

#[test]
fn an_empty_container_is_sent_at_once() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    let (_peer, slot) = fixture.connection();
    fixture.send(slot, Outgoing::default(), false);
    assert_eq!(fixture.next(), Event::Sent(slot, 0));
    let mut outgoing = Outgoing::default();
    outgoing.push_shared(Slice { bytes: Arc::from([]), start: 0, end: 0 });
    fixture.send(slot, outgoing, true);
    assert_eq!([fixture.next(), fixture.next()], [Event::Sent(slot, 0), Event::Closed(slot)]);
}

#[test]
fn the_last_send_closes_after_its_last_byte() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    for receiving in [false, true] {
        for length in [1, 5000, 60_000, 70_000, 5_000_000] {
            let (mut peer, slot) =
                if receiving { fixture.receiving_connection() } else { fixture.connection() };
            let bytes = pattern(length);
            fixture.send_bytes(slot, &bytes, true);
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let mut got = Vec::new();
                    peer.read_to_end(&mut got).unwrap();
                    got
                });
                assert_eq!([fixture.next(), fixture.next()], [Event::Sent(slot, 0), Event::Closed(slot)]);
                fixture.turns(1);
                assert!(reader.join().unwrap() == bytes);
            });
        }
    }
}

#[test]
fn a_slow_reader_is_seen_making_progress() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    let (mut peer, slot) = fixture.receiving_connection();
    let bytes = pattern(24_000_000);
    fixture.send_bytes(slot, &bytes, false);
    peer.set_nonblocking(true).unwrap();
    let mut got = Vec::new();
    let (mut progress, mut sent) = (0, false);
    let mut piece = vec![0; 400_000];
    while got.len() < bytes.len() {
        for event in fixture.events_within(if sent { 0 } else { 1 }) {
            assert!(!sent);
            sent = event == Event::Sent(slot, 0);
            progress += u32::from(event == Event::Progress(slot));
        }
        if let Ok(count) = peer.read(&mut piece) {
            got.extend_from_slice(&piece[..count]);
        }
    }
    assert!(got == bytes);
    assert!(progress >= 3, "{progress} signs of progress");
}

#[test]
fn sending_to_a_peer_that_is_gone_fails() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    for last in [false, true] {
        for length in [100, 20_000_000] {
            let (peer, slot) = fixture.connection();
            let bytes = pattern(length);
            if length > 1000 {
                fixture.send_bytes(slot, &bytes, last);
                fixture.turns(3);
                reset(peer);
            } else {
                reset(peer);
                fixture.turns(1);
                fixture.send_bytes(slot, &bytes, last);
            }
            let Event::Sent(_, errno) = fixture.next() else { panic!("not sent") };
            assert!([libc::EPIPE, libc::ECONNRESET].contains(&errno), "errno {errno}");
            if !last {
                fixture.close(slot);
            }
            assert_eq!(fixture.next(), Event::Closed(slot));
        }
    }
}
