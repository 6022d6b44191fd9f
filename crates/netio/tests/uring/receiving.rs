//! Receiving: splits, ends, pauses, buffers, wake-ups.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use staunch_netio::{Completion, Io};

use super::desk::{Desk, Event, Sizes, pattern, reset};

#[test]
fn deliveries_come_in_order_and_the_end_once() {
    let Some(mut desk) = Desk::new(Sizes::default()) else { return };
    let (mut peer, slot) = desk.connection();
    peer.write_all(b"before").unwrap();
    assert_eq!(desk.events_within(10), [], "nothing is received before `receive`");
    desk.io.receive(slot);
    assert_eq!(desk.next(), Event::Received(slot, b"before".to_vec()));
    for text in ["one", "two", "three"] {
        peer.write_all(text.as_bytes()).unwrap();
        assert_eq!(desk.next(), Event::Received(slot, text.into()));
    }
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(desk.next(), Event::Ended(slot, 0));
    desk.io.receive(slot);
    assert_eq!(desk.events_within(10), []);
    desk.close_and_wait(slot);
}

#[test]
fn large_deliveries_are_cut_into_buffers() {
    let Some(mut desk) = Desk::new(Sizes { buffers_max: 4, ..Sizes::default() }) else { return };
    let (peer, slot) = desk.connection();
    desk.io.receive(slot);
    let bytes = pattern(300_000);
    std::thread::scope(|scope| {
        scope.spawn(|| (&peer).write_all(&bytes).unwrap());
        let mut got = Vec::new();
        while got.len() < bytes.len() {
            let Event::Received(_, piece) = desk.next() else { unreachable!() };
            got.extend(piece);
        }
        assert_eq!(got, bytes);
    });
}

#[test]
fn pause_holds_deliveries_back_until_receive() {
    let Some(mut desk) = Desk::new(Sizes::default()) else { return };
    for multishot in [false, true] {
        let (mut peer, slot) = if multishot { desk.receiving_connection() } else { desk.connection() };
        if !multishot {
            desk.io.receive(slot);
            desk.turns(2);
        }
        desk.io.pause(slot);
        desk.turns(2);
        peer.write_all(b"held").unwrap();
        assert_eq!(desk.events_within(20), []);
        desk.io.receive(slot);
        assert_eq!(desk.next(), Event::Received(slot, b"held".to_vec()));
        // Taken back in the same turn, and in the next.
        desk.io.pause(slot);
        desk.io.receive(slot);
        desk.turns(1);
        desk.io.pause(slot);
        desk.turns(1);
        desk.io.receive(slot);
        peer.write_all(b"again").unwrap();
        assert_eq!(desk.next(), Event::Received(slot, b"again".to_vec()));
        desk.close_and_wait(slot);
    }
}

#[test]
fn nothing_is_lost_or_doubled_by_many_pauses_in_a_stream() {
    let Some(mut desk) = Desk::new(Sizes::default()) else { return };
    let (peer, slot) = desk.connection();
    desk.io.receive(slot);
    let bytes = pattern(3_000_000);
    std::thread::scope(|scope| {
        scope.spawn(|| (&peer).write_all(&bytes).unwrap());
        let mut got = Vec::new();
        while got.len() < bytes.len() {
            if let Event::Received(_, piece) = desk.next() {
                got.extend(piece);
            }
            desk.io.pause(slot);
            if got.len() % 3 == 0 {
                desk.turns(1);
            }
            desk.io.receive(slot);
        }
        assert!(got == bytes);
    });
}

#[test]
fn buffers_that_are_held_stop_receiving_and_given_back_start_it() {
    let Some(mut desk) = Desk::new(Sizes { buffers_max: 2, ..Sizes::default() }) else { return };
    let (mut peer, slot) = desk.connection();
    desk.io.receive(slot);
    let bytes = pattern(5 * 4096);
    peer.write_all(&bytes).unwrap();
    let mut inputs = Vec::new();
    for _ in 0..20 {
        desk.io.submit_and_wait(Some(Duration::from_millis(1))).unwrap();
        while let Some(completion) = desk.io.next_completion() {
            let Completion::Received { input, .. } = completion else { unreachable!("{completion:?}") };
            inputs.push(input);
        }
    }
    assert_eq!(inputs.len(), 2, "there are two buffers");
    let mut got = Vec::new();
    for input in inputs {
        got.extend_from_slice(desk.io.input(&input));
        desk.io.release(input);
    }
    while got.len() < bytes.len() {
        let Event::Received(_, piece) = desk.next() else { unreachable!() };
        got.extend(piece);
    }
    assert!(got == bytes);
}

#[test]
fn a_reset_is_an_end_with_its_error() {
    let Some(mut desk) = Desk::new(Sizes::default()) else { return };
    let (peer, slot) = desk.receiving_connection();
    reset(peer);
    assert_eq!(desk.next(), Event::Ended(slot, libc::ECONNRESET));
    desk.close_and_wait(slot);
    let (peer, slot) = desk.connection();
    reset(peer);
    desk.turns(2);
    desk.io.receive(slot);
    assert_eq!(desk.next(), Event::Ended(slot, libc::ECONNRESET));
    desk.close_and_wait(slot);
}

#[test]
fn half_closed_after_the_bytes_in_flight() {
    for plain in [false, true] {
        let Some(desk) = Desk::new(Sizes { plain, ..Sizes::default() }) else { return };
        half_close(desk);
    }
}

fn half_close(mut desk: Desk) {
    let (peer, slot) = desk.receiving_connection();
    let bytes = pattern(6_000_000);
    desk.send_bytes(slot, &bytes, false);
    desk.io.shutdown(slot);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut got = Vec::new();
            (&peer).read_to_end(&mut got).unwrap();
            (&peer).write_all(b"bye").unwrap();
            got
        });
        assert_eq!(desk.next(), Event::Sent(slot, 0));
        assert_eq!(desk.next(), Event::Received(slot, b"bye".to_vec()));
        assert!(reader.join().unwrap() == bytes);
    });
    desk.io.shutdown(slot);
    desk.close_and_wait(slot);
}

#[test]
fn a_waker_ends_a_wait_without_end() {
    let Some(mut desk) = Desk::new(Sizes::default()) else { return };
    for _ in 0..3 {
        let waker = desk.waker.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            waker.wake();
            waker.wake();
        });
        desk.io.submit_and_wait(None).unwrap();
        thread.join().unwrap();
        assert_eq!(desk.next(), Event::Woken);
        desk.events_within(1);
    }
}

#[test]
fn an_idle_backend_has_nothing_to_do() {
    let Some(mut desk) = Desk::new(Sizes { ring_capacity: 4, ..Sizes::default() }) else { return };
    let peers: Vec<_> = (0..10).map(|_| desk.receiving_connection()).collect();
    desk.events_within(5);
    assert_eq!(desk.events_within(200), []);
    drop(peers);
}
