//! Every way a connection can end, in every state it can be in.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

use staunch_netio::Io;

use super::Make;
use super::harness::{Event, Harness, pattern_bytes, reset};
use super::sending::read_slowly;

const ECONNRESET: i32 = 104;
const EPIPE: i32 = 32;
const CANCELED: i32 = 125;

/// More than the socket's buffers take.
const MANY_BYTES: usize = 12 * 1024 * 1024;

pub(crate) fn peer_ends_before_receive<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect();
    client.write_all(b"last words").unwrap();
    drop(client);
    harness.expect_quiet();
    harness.io.receive(slot);
    harness.expect(&Event::Received(slot, b"last words".to_vec()));
    harness.expect(&Event::Ended(slot, 0));
    harness.expect_quiet();
    harness.close(slot);
    harness.expect(&Event::Closed(slot));
}

pub(crate) fn peer_ends_while_receiving<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect();
    harness.io.receive(slot);
    harness.expect_quiet();
    client.write_all(b"words").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    harness.expect(&Event::Received(slot, b"words".to_vec()));
    harness.expect(&Event::Ended(slot, 0));
    harness.expect_quiet();
    // The other direction still works.
    harness.send_bytes(slot, b"answer", true);
    harness.expect(&Event::Sent(slot, 0));
    harness.expect(&Event::Closed(slot));
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"answer");
}

pub(crate) fn peer_resets_while_receiving<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (client, slot) = harness.connect();
    harness.io.receive(slot);
    harness.expect_quiet();
    reset(client);
    harness.expect(&Event::Ended(slot, ECONNRESET));
    harness.expect_quiet();
    harness.send_bytes(slot, b"too late", false);
    harness.expect(&Event::Sent(slot, EPIPE));
    harness.close(slot);
    harness.expect(&Event::Closed(slot));
}

pub(crate) fn peer_resets_while_sending<I: Io>(make: Make<I>) {
    for receiving in [false, true] {
        let mut harness = Harness::new(make, 8);
        let (mut client, slot) = harness.connect_narrow();
        if receiving {
            harness.io.receive(slot);
        }
        harness.send_bytes(slot, &vec![b'x'; MANY_BYTES], false);
        harness.settle();
        client.read_exact(&mut [0; 1000]).unwrap();
        reset(client);
        let events = harness.until(|event| matches!(event, Event::Sent(..)));
        let Some(Event::Sent(_, errno)) = events.last() else { unreachable!() };
        assert!([ECONNRESET, EPIPE].contains(errno), "errno {errno}");
        let after = harness.settle();
        if receiving {
            let ended = events.iter().chain(&after).filter(|event| matches!(event, Event::Ended(..)));
            assert_eq!(ended.count(), 1);
        } else {
            assert_eq!(after, []);
        }
        harness.close(slot);
        harness.expect(&Event::Closed(slot));
    }
}

pub(crate) fn close_before_receive<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect();
    harness.close(slot);
    harness.expect(&Event::Closed(slot));
    assert_eq!(client.read(&mut [0; 10]).unwrap(), 0);
    harness.expect_quiet();
}

pub(crate) fn close_while_receiving<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect();
    harness.io.receive(slot);
    harness.expect_quiet();
    // Bytes that came and were never reported are gone with the connection.
    client.write_all(b"unheard").unwrap();
    harness.close_and_wait(slot);
    match client.read(&mut [0; 10]) {
        Ok(0) => {}
        Ok(count) => panic!("{count} bytes from a closed connection"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    harness.expect_quiet();
}

pub(crate) fn close_while_sending<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (client, slot) = harness.connect_narrow();
    harness.io.receive(slot);
    harness.send_bytes(slot, &pattern_bytes(0, MANY_BYTES), false);
    harness.settle();
    harness.shutdown_and_close(slot);
    harness.expect(&Event::Sent(slot, CANCELED));
    harness.expect(&Event::Closed(slot));
    let length = MANY_BYTES as u64;
    assert!(read_slowly(client, 0, length).join().unwrap() < length);
}

pub(crate) fn close_twice<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (_client, slot) = harness.connect();
    harness.io.receive(slot);
    harness.close(slot);
    harness.close(slot);
    harness.expect(&Event::Closed(slot));
    harness.expect_quiet();
}

/// The way to end politely: half-close, read on until the peer ends, close.
pub(crate) fn shutdown_and_linger<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect();
    harness.io.receive(slot);
    harness.send_bytes(slot, b"goodbye", false);
    harness.expect(&Event::Sent(slot, 0));
    harness.io.shutdown(slot);
    harness.expect_quiet();
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"goodbye");
    client.write_all(b"late").unwrap();
    harness.expect(&Event::Received(slot, b"late".to_vec()));
    drop(client);
    harness.expect(&Event::Ended(slot, 0));
    harness.close(slot);
    harness.expect(&Event::Closed(slot));
}

/// The end of the stream comes after all that was sent before.
pub(crate) fn shutdown_waits_for_the_send<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (client, slot) = harness.connect_narrow();
    harness.send_bytes(slot, &pattern_bytes(0, MANY_BYTES), false);
    harness.io.shutdown(slot);
    let reader = read_slowly(client, 0, MANY_BYTES as u64);
    let events = harness.until(|event| matches!(event, Event::Sent(..)));
    assert_eq!(events.last(), Some(&Event::Sent(slot, 0)));
    harness.expect_quiet();
    assert_eq!(reader.join().unwrap(), MANY_BYTES as u64);
    harness.close_and_wait(slot);
}

/// Slots stay within the capacity, and a new connection never sees what was meant for a former one.
pub(crate) fn slots_are_used_again<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 4);
    for round in 0..300u32 {
        let (mut client, slot) = harness.connect();
        assert!(slot < 4);
        harness.io.receive(slot);
        client.write_all(&round.to_ne_bytes()).unwrap();
        if round % 3 == 0 {
            // Closed while its bytes are on their way.
            harness.close_and_wait(slot);
            continue;
        }
        harness.expect(&Event::Received(slot, round.to_ne_bytes().to_vec()));
        harness.close_and_wait(slot);
    }
}
