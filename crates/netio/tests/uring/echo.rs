//! Many connections at once, all of whose bytes must come back.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use staunch_netio::{Io, Slot};

use super::fixture::{Event, Fixture, Sizes, connect, pattern};

/// Echoes everything until all peers have closed.
#[derive(Default)]
pub(crate) struct Echo {
    backlog: HashMap<Slot, (Vec<u8>, bool, bool)>,
    pub(crate) closed: usize,
}

impl Echo {
    /// Answers one event.
    pub(crate) fn answer(&mut self, fixture: &mut Fixture, event: Event) {
        match event {
            Event::Accepted(slot) => {
                self.backlog.insert(slot, (Vec::new(), false, false));
                fixture.io.receive(slot);
            }
            Event::AcceptStopped(_) | Event::Progress(_) | Event::Ready(_) | Event::Woken => {}
            Event::Connected(..) | Event::Inspected(..) => panic!("a server does not connect"),
            Event::Received(slot, bytes) => {
                self.backlog.get_mut(&slot).unwrap().0.extend(bytes);
                self.go_on(fixture, slot);
            }
            Event::Sent(slot, errno) => {
                assert_eq!(errno, 0);
                self.backlog.get_mut(&slot).unwrap().1 = false;
                self.go_on(fixture, slot);
            }
            Event::Ended(slot, errno) => {
                assert_eq!(errno, 0);
                self.backlog.get_mut(&slot).unwrap().2 = true;
                self.go_on(fixture, slot);
            }
            Event::Closed(slot) => {
                self.backlog.remove(&slot);
                self.closed += 1;
                fixture.io.accept(0);
            }
        }
    }

    fn go_on(&mut self, fixture: &mut Fixture, slot: Slot) {
        let (bytes, sending, ended) = self.backlog.get_mut(&slot).unwrap();
        if *sending {
            return;
        }
        if bytes.is_empty() {
            if *ended {
                fixture.close(slot);
            }
            return;
        }
        *sending = true;
        fixture.send_bytes(slot, &std::mem::take(bytes), false);
    }

    /// Serves until so many connections are closed.
    pub(crate) fn serve(&mut self, fixture: &mut Fixture, connections: usize) {
        while self.closed < connections {
            let event = fixture.wait(|_| true);
            self.answer(fixture, event);
        }
    }
}

/// Sends in pieces of several sizes, some before anything is read, and expects all of it back.
fn converse(mut stream: TcpStream, seed: usize) {
    let bytes = pattern(20_000 + seed * 13);
    let mut back = vec![0; bytes.len()];
    let (mut sent, mut read) = (0, 0);
    while read < bytes.len() {
        for step in 1..4 {
            let end = (sent + 1 + (seed + step) * 997 % 7000).min(bytes.len());
            stream.write_all(&bytes[sent..end]).unwrap();
            sent = end;
        }
        stream.read_exact(&mut back[read..sent]).unwrap();
        read = sent;
    }
    assert_eq!(back, bytes);
}

/// So many peers at once, held by eight threads.
pub(crate) fn echo(sizes: Sizes, connections: usize) {
    let Some(mut fixture) = Fixture::new(sizes) else { return };
    let address = fixture.address;
    let threads = connections.min(8);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let share = connections / threads + usize::from(thread < connections % threads);
            scope.spawn(move || {
                let streams: Vec<_> = (0..share).map(|_| connect(address)).collect();
                for (index, stream) in streams.into_iter().enumerate() {
                    converse(stream, thread * 1000 + index);
                }
            });
        }
        Echo::default().serve(&mut fixture, connections);
    });
}

#[test]
fn one_connection() {
    echo(Sizes::default(), 1);
}

#[test]
fn five_hundred_connections() {
    echo(Sizes::default(), 500);
}

#[test]
fn five_hundred_connections_in_many_small_rings() {
    echo(Sizes { ring_capacity: 37, ..Sizes::default() }, 500);
}

#[test]
fn a_hundred_connections_share_two_receive_buffers() {
    echo(Sizes { buffers_max: 2, ..Sizes::default() }, 100);
}

#[test]
fn two_rings_with_one_receive_buffer_each() {
    echo(Sizes { buffers_max: 1, ring_capacity: 30, ..Sizes::default() }, 60);
}

#[test]
fn three_hundred_connections_with_nothing_optional() {
    echo(Sizes { plain: true, ring_capacity: 111, buffers_max: 32, ..Sizes::default() }, 300);
}
