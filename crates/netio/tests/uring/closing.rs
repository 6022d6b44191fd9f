//! Closing in every state a connection can be in; the slot is free afterwards and not before.

use std::io::{Read, Write};

use staunch_netio::Io;

use super::fixture::{Event, Fixture, Sizes, pattern, reset};

#[test]
fn close_in_every_state_ends_in_one_closed() {
    let Some(mut fixture) = Fixture::new(Sizes { capacity: 2.into(), ring_capacity: 1, ..Sizes::default() })
    else {
        return;
    };
    let big = pattern(20_000_000);
    for state in 0..12 {
        let (mut peer, slot) = if state < 4 { fixture.connection() } else { fixture.receiving_connection() };
        match state {
            0 => {}
            1 => fixture.io.receive(slot),
            2 => {
                fixture.io.receive(slot);
                fixture.turns(2);
            }
            3 => {
                fixture.send_bytes(slot, &big, true);
                fixture.turns(2);
            }
            4 => {}
            5 => fixture.send_bytes(slot, &big, false),
            6 => {
                fixture.send_bytes(slot, &big, false);
                fixture.turns(3);
            }
            7 => {
                fixture.send_bytes(slot, &big[..60_000], true);
            }
            8 => peer.write_all(b"unread").unwrap(),
            9 => {
                fixture.io.shutdown(slot);
                fixture.turns(1);
            }
            10 => {
                fixture.io.pause(slot);
                fixture.turns(1);
            }
            _ => {
                fixture.send_bytes(slot, &big, false);
                fixture.io.shutdown(slot);
                fixture.turns(3);
            }
        }
        fixture.close(slot);
        fixture.close(slot);
        fixture.turns(1);
        fixture.wait(|event| *event == Event::Closed(slot));
        let rest = fixture.events_within(5);
        assert!(!rest.contains(&Event::Closed(slot)), "closed twice in state {state}: {rest:?}");
        // The peer sees the end or a reset.
        while peer.read(&mut [0; 65536]).is_ok_and(|count| count > 0) {}
        fixture.io.accept(0);
    }
}

#[test]
fn a_send_cut_short_by_close_is_given_back_first() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    for (receiving, last) in [(false, false), (false, true), (true, false), (true, true)] {
        let (_peer, slot) = if receiving { fixture.receiving_connection() } else { fixture.connection() };
        fixture.send_bytes(slot, &pattern(20_000_000), last);
        fixture.turns(3);
        fixture.close(slot);
        assert_eq!(
            [fixture.next(), fixture.next()],
            [Event::Sent(slot, libc::ECANCELED), Event::Closed(slot)]
        );
    }
}

#[test]
fn what_a_peer_sends_after_the_last_send_is_not_reported() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    for _ in 0..20 {
        let (mut peer, slot) = fixture.receiving_connection();
        peer.write_all(b"more").unwrap();
        fixture.send_bytes(slot, b"answer", true);
        assert_eq!([fixture.next(), fixture.next()], [Event::Sent(slot, 0), Event::Closed(slot)]);
    }
}

#[test]
fn resets_in_every_state_leave_the_backend_intact() {
    let sizes = Sizes { capacity: 64.into(), ring_capacity: 16, buffers_max: 4, ..Sizes::default() };
    let Some(mut fixture) = Fixture::new(sizes) else { return };
    let big = pattern(8_000_000);
    for round in 0..60 {
        let (mut peer, slot) =
            if round % 2 == 0 { fixture.connection() } else { fixture.receiving_connection() };
        match round % 6 {
            0 => fixture.io.receive(slot),
            1 => fixture.send_bytes(slot, &big, false),
            2 => fixture.send_bytes(slot, &big, true),
            3 => peer.write_all(b"bytes").unwrap(),
            4 => {}
            _ => fixture.io.pause(slot),
        }
        fixture.turns(round % 3);
        reset(peer);
        fixture.turns(round % 2);
        fixture.close_and_wait(slot);
        fixture.io.accept(0);
    }
}

#[test]
fn dropped_in_the_middle_of_everything() {
    for _ in 0..5 {
        let Some(mut fixture) = Fixture::new(Sizes { ring_capacity: 4, ..Sizes::default() }) else { return };
        let mut peers = Vec::new();
        for index in 0..10 {
            let (peer, slot) = fixture.receiving_connection();
            if index % 2 == 0 {
                fixture.send_bytes(slot, &pattern(10_000_000), index % 4 == 0);
            }
            peers.push(peer);
        }
        fixture.turns(2);
        drop(fixture);
        for mut peer in peers {
            while peer.read(&mut [0; 65536]).is_ok_and(|count| count > 0) {}
        }
    }
}
