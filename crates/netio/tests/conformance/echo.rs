//! Bytes come in and go out again unchanged, however many connections there are and however they are cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;

use staunch_netio::Io;

use super::Make;
use super::harness::{Event, Harness, Random, pattern_bytes};

pub(crate) fn one_connection<I: Io>(make: Make<I>) {
    echo(make, 1, 100_000, 1);
}

pub(crate) fn fifty_connections<I: Io>(make: Make<I>) {
    echo(make, 50, 40_000, 2);
}

pub(crate) fn five_hundred_connections<I: Io>(make: Make<I>) {
    echo(make, 500, 3_000, 3);
}

/// Many requests in one segment come as one piece or several, but in order and whole.
pub(crate) fn pipelined_at_once<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect();
    let sent = pattern_bytes(0, 60_000);
    client.write_all(&sent).unwrap();
    harness.io.receive(slot);
    let mut received = Vec::new();
    while received.len() < sent.len() {
        match harness.next() {
            Event::Received(_, bytes) => received.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(received, sent);
    harness.expect_quiet();
}

/// Nothing is reported while paused, and nothing is lost by it.
pub(crate) fn pause_holds_back<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect();
    harness.expect_quiet();
    harness.io.receive(slot);
    harness.io.receive(slot);
    harness.expect_quiet();
    harness.io.pause(slot);
    harness.expect_quiet();
    client.write_all(b"one").unwrap();
    harness.expect_quiet();
    harness.io.receive(slot);
    harness.expect(&Event::Received(slot, b"one".to_vec()));
    client.write_all(b"two").unwrap();
    harness.expect(&Event::Received(slot, b"two".to_vec()));
    harness.io.pause(slot);
    harness.io.receive(slot);
    client.write_all(b"three").unwrap();
    harness.expect(&Event::Received(slot, b"three".to_vec()));
}

/// Each client sends its bytes cut at random places and reads them back; then the peers end and the server
/// closes.
fn echo<I: Io>(make: Make<I>, connections: usize, length: usize, seed: u64) {
    println!("seed {seed}");
    let mut harness = Harness::new(make, 512);
    let address = harness.address;
    let clients = thread::spawn(move || run_clients(address, connections, length, seed));
    let mut waiting: Vec<Vec<u8>> = vec![Vec::new(); 512];
    let mut sending = [false; 512];
    let mut ended = [false; 512];
    let mut closed = 0;
    while closed < connections {
        let slot = match harness.next() {
            Event::Accepted(slot) => {
                harness.io.receive(slot);
                (waiting[slot as usize], ended[slot as usize]) = (Vec::new(), false);
                slot
            }
            Event::Received(slot, bytes) => {
                waiting[slot as usize].extend(bytes);
                slot
            }
            Event::Ended(slot, 0) => {
                ended[slot as usize] = true;
                slot
            }
            Event::Sent(slot, 0) => {
                sending[slot as usize] = false;
                slot
            }
            Event::Progress(slot) => slot,
            Event::Closed(_) => {
                closed += 1;
                continue;
            }
            other => panic!("{other:?}"),
        };
        let index = slot as usize;
        if sending[index] {
            continue;
        }
        if !waiting[index].is_empty() {
            sending[index] = true;
            harness.send_bytes(slot, &waiting[index], false);
            waiting[index].clear();
        } else if ended[index] {
            harness.close(slot);
        }
    }
    clients.join().unwrap();
}

fn run_clients(address: SocketAddr, connections: usize, length: usize, seed: u64) {
    let mut random = Random(seed);
    let mut clients: Vec<(TcpStream, Vec<u8>, usize)> = (0..connections)
        .map(|index| {
            let client = TcpStream::connect(address).unwrap();
            (client, pattern_bytes(index as u64 * 1_000_003, length), 0)
        })
        .collect();
    while clients.iter().any(|(_, bytes, sent)| *sent < bytes.len()) {
        for (client, bytes, sent) in &mut clients {
            let piece = (1 + random.below(length / 3)).min(bytes.len() - *sent);
            client.write_all(&bytes[*sent..*sent + piece]).unwrap();
            *sent += piece;
        }
    }
    for (client, bytes, _) in &mut clients {
        client.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        client.read_to_end(&mut back).unwrap();
        assert!(back == *bytes, "{} bytes came back instead of {}", back.len(), bytes.len());
    }
}
