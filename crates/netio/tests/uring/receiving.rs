//! Receiving: splits, ends, pauses, buffers, wake-ups.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use staunch_netio::{Completion, Io};

use super::fixture::{Event, Fixture, Sizes, pattern, reset};

#[test]
fn deliveries_come_in_order_and_the_end_once() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    let (mut peer, slot) = fixture.connection();
    peer.write_all(b"before").unwrap();
    assert_eq!(fixture.events_within(10), [], "nothing is received before `receive`");
    fixture.io.receive(slot);
    assert_eq!(fixture.next(), Event::Received(slot, b"before".to_vec()));
    for text in ["one", "two", "three"] {
        peer.write_all(text.as_bytes()).unwrap();
        assert_eq!(fixture.next(), Event::Received(slot, text.into()));
    }
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(fixture.next(), Event::Ended(slot, 0));
    fixture.io.receive(slot);
    assert_eq!(fixture.events_within(10), []);
    fixture.close_and_wait(slot);
}

#[test]
fn large_deliveries_are_cut_into_buffers() {
    let Some(mut fixture) = Fixture::new(Sizes { buffers_max: 4, ..Sizes::default() }) else { return };
    let (peer, slot) = fixture.connection();
    fixture.io.receive(slot);
    let bytes = pattern(300_000);
    std::thread::scope(|scope| {
        scope.spawn(|| (&peer).write_all(&bytes).unwrap());
        let mut got = Vec::new();
        while got.len() < bytes.len() {
            let Event::Received(_, piece) = fixture.next() else { unreachable!() };
            got.extend(piece);
        }
        assert_eq!(got, bytes);
    });
}

#[test]
fn pause_holds_deliveries_back_until_receive() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    for multishot in [false, true] {
        let (mut peer, slot) = if multishot { fixture.receiving_connection() } else { fixture.connection() };
        if !multishot {
            fixture.io.receive(slot);
            fixture.turns(2);
        }
        fixture.io.pause(slot);
        fixture.turns(2);
        peer.write_all(b"held").unwrap();
        assert_eq!(fixture.events_within(20), []);
        fixture.io.receive(slot);
        assert_eq!(fixture.next(), Event::Received(slot, b"held".to_vec()));
        // Taken back in the same turn, and in the next.
        fixture.io.pause(slot);
        fixture.io.receive(slot);
        fixture.turns(1);
        fixture.io.pause(slot);
        fixture.turns(1);
        fixture.io.receive(slot);
        peer.write_all(b"again").unwrap();
        assert_eq!(fixture.next(), Event::Received(slot, b"again".to_vec()));
        fixture.close_and_wait(slot);
    }
}

#[test]
fn nothing_is_lost_or_doubled_by_many_pauses_in_a_stream() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    let (peer, slot) = fixture.connection();
    fixture.io.receive(slot);
    let bytes = pattern(3_000_000);
    std::thread::scope(|scope| {
        scope.spawn(|| (&peer).write_all(&bytes).unwrap());
        let mut got = Vec::new();
        while got.len() < bytes.len() {
            if let Event::Received(_, piece) = fixture.next() {
                got.extend(piece);
            }
            fixture.io.pause(slot);
            if got.len() % 3 == 0 {
                fixture.turns(1);
            }
            fixture.io.receive(slot);
        }
        assert!(got == bytes);
    });
}

#[test]
fn buffers_that_are_held_stop_receiving_and_given_back_start_it() {
    let Some(mut fixture) = Fixture::new(Sizes { buffers_max: 2, ..Sizes::default() }) else { return };
    let (mut peer, slot) = fixture.connection();
    fixture.io.receive(slot);
    let bytes = pattern(5 * 4096);
    peer.write_all(&bytes).unwrap();
    let mut inputs = Vec::new();
    for _ in 0..20 {
        fixture.io.submit_and_wait(Some(Duration::from_millis(1))).unwrap();
        while let Some(completion) = fixture.io.next_completion() {
            let Completion::Received { input, .. } = completion else { unreachable!("{completion:?}") };
            inputs.push(input);
        }
    }
    assert_eq!(inputs.len(), 2, "there are two buffers");
    let mut got = Vec::new();
    for input in inputs {
        got.extend_from_slice(fixture.io.input(&input));
        fixture.io.release(input);
    }
    while got.len() < bytes.len() {
        let Event::Received(_, piece) = fixture.next() else { unreachable!() };
        got.extend(piece);
    }
    assert!(got == bytes);
}

#[test]
fn a_reset_is_an_end_with_its_error() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    let (peer, slot) = fixture.receiving_connection();
    reset(peer);
    assert_eq!(fixture.next(), Event::Ended(slot, libc::ECONNRESET));
    fixture.close_and_wait(slot);
    let (peer, slot) = fixture.connection();
    reset(peer);
    fixture.turns(2);
    fixture.io.receive(slot);
    assert_eq!(fixture.next(), Event::Ended(slot, libc::ECONNRESET));
    fixture.close_and_wait(slot);
}

#[test]
fn half_closed_after_the_bytes_in_flight() {
    for plain in [false, true] {
        let Some(fixture) = Fixture::new(Sizes { plain, ..Sizes::default() }) else { return };
        half_close(fixture);
    }
}

fn half_close(mut fixture: Fixture) {
    let (peer, slot) = fixture.receiving_connection();
    let bytes = pattern(6_000_000);
    fixture.send_bytes(slot, &bytes, false);
    fixture.io.shutdown(slot);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut got = Vec::new();
            (&peer).read_to_end(&mut got).unwrap();
            (&peer).write_all(b"bye").unwrap();
            got
        });
        assert_eq!(fixture.next(), Event::Sent(slot, 0));
        assert_eq!(fixture.next(), Event::Received(slot, b"bye".to_vec()));
        assert!(reader.join().unwrap() == bytes);
    });
    fixture.io.shutdown(slot);
    fixture.close_and_wait(slot);
}

#[test]
fn a_waker_ends_a_wait_without_end() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    for _ in 0..3 {
        let waker = fixture.waker.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            waker.wake();
            waker.wake();
        });
        fixture.io.submit_and_wait(None).unwrap();
        thread.join().unwrap();
        assert_eq!(fixture.next(), Event::Woken);
        fixture.events_within(1);
    }
}

#[test]
fn an_idle_backend_has_nothing_to_do() {
    let Some(mut fixture) = Fixture::new(Sizes { ring_capacity: 4, ..Sizes::default() }) else { return };
    let peers: Vec<_> = (0..10).map(|_| fixture.receiving_connection()).collect();
    fixture.events_within(5);
    assert_eq!(fixture.events_within(200), []);
    drop(peers);
}
