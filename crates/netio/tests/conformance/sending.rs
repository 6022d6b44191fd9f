//! Bodies of many parts reach slow readers whole and in order, and `last` ends the connection after them.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use staunch_netio::{Io, Outgoing, Slice};

use super::Make;
use super::harness::{Event, Harness, pattern, pattern_bytes};

const CANCELED: i32 = 125;

/// 8 MiB in shared slices with own bytes between them, to a reader with a small window.
pub(crate) fn slow_reader_of_many_parts<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (client, slot) = harness.connect_narrow();
    let (outgoing, length) = interleaved(8, 1024 * 1024, 777);
    harness.send(slot, outgoing, false);
    let reader = read_slowly(client, 0, length);
    let events = harness.until(|event| matches!(event, Event::Sent(..)));
    assert_eq!(events.last(), Some(&Event::Sent(slot, 0)));
    assert!(events.contains(&Event::Progress(slot)), "a slow reader's progress shows");
    harness.close_and_wait(slot);
    assert_eq!(reader.join().unwrap(), length);
}

/// Far more parts than one system call takes.
pub(crate) fn many_small_parts<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (client, slot) = harness.connect();
    let (outgoing, length) = interleaved(3_000, 11, 5);
    harness.send(slot, outgoing, true);
    let reader = read_slowly(client, 0, length);
    harness.until(|event| *event == Event::Closed(slot));
    assert_eq!(reader.join().unwrap(), length);
}

pub(crate) fn empty_pieces<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect();
    let shared: Arc<[u8]> = Arc::from(&b"shared"[..]);
    let slice = |start, end| Slice { bytes: Arc::clone(&shared), start, end };
    let mut outgoing = Outgoing::default();
    outgoing.push_shared(slice(3, 3));
    outgoing.bytes().extend_from_slice(b"own ");
    outgoing.push_shared(slice(0, 0));
    outgoing.push_shared(slice(0, 6));
    outgoing.push_shared(slice(6, 6));
    harness.send(slot, outgoing, false);
    // That an empty piece is left may show as progress.
    harness.until(|event| *event == Event::Sent(slot, 0));
    let mut only_empty = Outgoing::default();
    only_empty.push_shared(slice(1, 1));
    harness.send(slot, only_empty, false);
    harness.expect(&Event::Sent(slot, 0));
    harness.send_bytes(slot, b" end", true);
    harness.expect(&Event::Sent(slot, 0));
    harness.expect(&Event::Closed(slot));
    let mut received = String::new();
    client.read_to_string(&mut received).unwrap();
    assert_eq!(received, "own shared end");
}

pub(crate) fn last_closes_after_all<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect();
    harness.io.receive(slot);
    harness.send_bytes(slot, &pattern_bytes(0, 50_000), true);
    harness.expect(&Event::Sent(slot, 0));
    harness.expect(&Event::Closed(slot));
    harness.io.receive(slot);
    harness.io.close(slot);
    harness.expect_quiet();
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert!(received == pattern_bytes(0, 50_000));
}

pub(crate) fn last_to_a_slow_reader<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (client, slot) = harness.connect_narrow();
    let (outgoing, length) = interleaved(16, 512 * 1024, 3);
    harness.send(slot, outgoing, true);
    let reader = read_slowly(client, 0, length);
    let events = harness.until(|event| *event == Event::Closed(slot));
    assert!(events.contains(&Event::Sent(slot, 0)));
    assert_eq!(reader.join().unwrap(), length);
}

pub(crate) fn close_cuts_last_short<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (client, slot) = harness.connect_narrow();
    let (outgoing, length) = interleaved(16, 512 * 1024, 3);
    harness.send(slot, outgoing, true);
    harness.settle();
    harness.close(slot);
    harness.expect(&Event::Sent(slot, CANCELED));
    harness.expect(&Event::Closed(slot));
    assert!(read_slowly(client, 0, length).join().unwrap() < length);
}

/// Shared slices of the pattern, each with own bytes of the pattern before it, and own bytes at the end.
fn interleaved(slices: usize, slice_bytes: usize, own_bytes: usize) -> (Outgoing, u64) {
    let mut outgoing = Outgoing::default();
    let mut offset = 0;
    for _ in 0..slices {
        outgoing.bytes().extend(pattern_bytes(offset, own_bytes));
        offset += own_bytes as u64;
        // The slice has a byte more on each side, which must not be sent.
        let bytes: Arc<[u8]> = pattern_bytes(offset.wrapping_sub(1), slice_bytes + 2).into();
        outgoing.push_shared(Slice { bytes, start: 1, end: 1 + slice_bytes });
        offset += slice_bytes as u64;
    }
    outgoing.bytes().extend(pattern_bytes(offset, own_bytes));
    let length = offset + own_bytes as u64;
    assert_eq!(outgoing.length_bytes(), length);
    (outgoing, length)
}

/// Reads to the end in small pieces and holds every byte against the pattern. Returns how many came.
pub(crate) fn read_slowly(mut client: TcpStream, start: u64, length: u64) -> JoinHandle<u64> {
    thread::spawn(move || {
        let mut buffer = [0; 3_000];
        let mut count = 0;
        loop {
            match client.read(&mut buffer) {
                Ok(0) | Err(_) => return count,
                Ok(read) => {
                    for (index, byte) in buffer[..read].iter().enumerate() {
                        assert_eq!(*byte, pattern(start + count + index as u64), "at byte {count}");
                    }
                    count += read as u64;
                    assert!(count <= length);
                }
            }
        }
    })
}
