//! Closing in every state a connection can be in; the slot is free afterwards and not before.

use std::io::{Read, Write};

use staunch_netio::Io;

use super::desk::{Desk, Event, Sizes, pattern, reset};

#[test]
fn close_in_every_state_ends_in_one_closed() {
    let Some(mut desk) = Desk::new(Sizes { capacity: 2.into(), ring_capacity: 1, ..Sizes::default() }) else {
        return;
    };
    let big = pattern(20_000_000);
    for state in 0..12 {
        let (mut peer, slot) = if state < 4 { desk.connection() } else { desk.receiving_connection() };
        match state {
            0 => {}
            1 => desk.io.receive(slot),
            2 => {
                desk.io.receive(slot);
                desk.turns(2);
            }
            3 => {
                desk.send_bytes(slot, &big, true);
                desk.turns(2);
            }
            4 => {}
            5 => desk.send_bytes(slot, &big, false),
            6 => {
                desk.send_bytes(slot, &big, false);
                desk.turns(3);
            }
            7 => {
                desk.send_bytes(slot, &big[..60_000], true);
            }
            8 => peer.write_all(b"unread").unwrap(),
            9 => {
                desk.io.shutdown(slot);
                desk.turns(1);
            }
            10 => {
                desk.io.pause(slot);
                desk.turns(1);
            }
            _ => {
                desk.send_bytes(slot, &big, false);
                desk.io.shutdown(slot);
                desk.turns(3);
            }
        }
        desk.close(slot);
        desk.close(slot);
        desk.turns(1);
        desk.wait(|event| *event == Event::Closed(slot));
        let rest = desk.events_within(5);
        assert!(!rest.contains(&Event::Closed(slot)), "closed twice in state {state}: {rest:?}");
        // The peer sees the end or a reset.
        while peer.read(&mut [0; 65536]).is_ok_and(|count| count > 0) {}
        desk.io.accept(0);
    }
}

#[test]
fn a_send_cut_short_by_close_is_given_back_first() {
    let Some(mut desk) = Desk::new(Sizes::default()) else { return };
    for (receiving, last) in [(false, false), (false, true), (true, false), (true, true)] {
        let (_peer, slot) = if receiving { desk.receiving_connection() } else { desk.connection() };
        desk.send_bytes(slot, &pattern(20_000_000), last);
        desk.turns(3);
        desk.close(slot);
        assert_eq!([desk.next(), desk.next()], [Event::Sent(slot, libc::ECANCELED), Event::Closed(slot)]);
    }
}

#[test]
fn what_a_peer_sends_after_the_last_send_is_not_reported() {
    let Some(mut desk) = Desk::new(Sizes::default()) else { return };
    for _ in 0..20 {
        let (mut peer, slot) = desk.receiving_connection();
        peer.write_all(b"more").unwrap();
        desk.send_bytes(slot, b"answer", true);
        assert_eq!([desk.next(), desk.next()], [Event::Sent(slot, 0), Event::Closed(slot)]);
    }
}

#[test]
fn resets_in_every_state_leave_the_backend_intact() {
    let sizes = Sizes { capacity: 64.into(), ring_capacity: 16, buffers_max: 4, ..Sizes::default() };
    let Some(mut desk) = Desk::new(sizes) else { return };
    let big = pattern(8_000_000);
    for round in 0..60 {
        let (mut peer, slot) = if round % 2 == 0 { desk.connection() } else { desk.receiving_connection() };
        match round % 6 {
            0 => desk.io.receive(slot),
            1 => desk.send_bytes(slot, &big, false),
            2 => desk.send_bytes(slot, &big, true),
            3 => peer.write_all(b"bytes").unwrap(),
            4 => {}
            _ => desk.io.pause(slot),
        }
        desk.turns(round % 3);
        reset(peer);
        desk.turns(round % 2);
        desk.close_and_wait(slot);
        desk.io.accept(0);
    }
}

#[test]
fn dropped_in_the_middle_of_everything() {
    for _ in 0..5 {
        let Some(mut desk) = Desk::new(Sizes { ring_capacity: 4, ..Sizes::default() }) else { return };
        let mut peers = Vec::new();
        for index in 0..10 {
            let (peer, slot) = desk.receiving_connection();
            if index % 2 == 0 {
                desk.send_bytes(slot, &pattern(10_000_000), index % 4 == 0);
            }
            peers.push(peer);
        }
        desk.turns(2);
        drop(desk);
        for mut peer in peers {
            while peer.read(&mut [0; 65536]).is_ok_and(|count| count > 0) {}
        }
    }
}
