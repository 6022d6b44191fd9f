//! Where connections come from: told when asked for, of the right connection, whatever else goes on.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::thread;

use staunch_netio::{Io, socket};

use super::Make;
use super::accepting::{alone, come_and_go, run_out};
use super::harness::{Event, Harness, listener};

fn learning<I: Io>(make: Make<I>, capacity: u32) -> Harness<I> {
    let mut harness = Harness::with_listeners(make, vec![listener()], capacity);
    harness.io.learn_peers();
    harness.io.accept(0);
    harness
}

pub(crate) fn peers_are_told_when_asked_for<I: Io>(make: Make<I>) {
    let mut silent = Harness::new(make, 8);
    let _client = silent.connect();
    assert_eq!(silent.peer, None, "nobody asked");

    let mut harness = learning(make, 8);
    for _ in 0..20 {
        let (client, slot) = harness.connect();
        assert_eq!(harness.peer, client.local_addr().ok());
        harness.io.receive(slot);
        (&client).write_all(b"hello").unwrap();
        harness.expect(&Event::Received(slot, b"hello".to_vec()));
        harness.close_and_wait(slot);
    }

    let Ok(six) = socket::listen(SocketAddr::from((Ipv6Addr::LOCALHOST, 0)), 16) else { return };
    let mut harness = Harness::with_listeners(make, vec![six], 8);
    harness.io.learn_peers();
    harness.io.accept(0);
    let (client, _) = harness.connect();
    assert!(harness.peer.is_some_and(|peer| peer.is_ipv6()));
    assert_eq!(harness.peer, client.local_addr().ok());
}

/// Asked for while accepting goes on: what comes later is known.
pub(crate) fn from_then_on<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 16);
    let _before = harness.connect();
    assert_eq!(harness.peer, None);
    harness.io.learn_peers();
    harness.settle();
    for _ in 0..10 {
        let (client, _) = harness.connect();
        assert_eq!(harness.peer, client.local_addr().ok());
    }
}

pub(crate) fn crowd<I: Io>(make: Make<I>) {
    const CLIENTS: usize = 300;
    let mut harness = learning(make, 1024);
    let address = harness.address;
    let clients = thread::spawn(move || {
        let connect = |_| TcpStream::connect(address).unwrap();
        (0..CLIENTS).map(connect).collect::<Vec<_>>()
    });
    let mut slots = HashMap::new();
    while slots.len() < CLIENTS {
        let Event::Accepted(slot) = harness.next() else { panic!("nothing else happens") };
        slots.insert(harness.peer.expect("every one is known"), slot);
    }
    let clients = clients.join().unwrap();
    for mut client in &clients {
        let slot = slots.remove(&client.local_addr().unwrap()).expect("one connection for each");
        harness.io.receive(slot);
        client.write_all(&slot.to_le_bytes()).unwrap();
        harness.expect(&Event::Received(slot, slot.to_le_bytes().to_vec()));
    }
}

pub(crate) fn a_full_table_and_refusing<I: Io>(make: Make<I>) {
    const ENFILE: i32 = 23;
    let mut harness = learning(make, 4);
    let mut waiting: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(harness.address).unwrap()).collect();
    let mut open = Vec::new();
    while !waiting.is_empty() {
        match harness.next() {
            Event::Accepted(slot) => open.push((slot, harness.peer.expect("every one is known"))),
            Event::AcceptStopped(ENFILE) => {
                assert_eq!(open.len(), 4);
                for (slot, peer) in open.drain(..) {
                    let own = waiting.iter().position(|client| client.local_addr().unwrap() == peer).unwrap();
                    harness.send_bytes(slot, b"it is you", true);
                    harness.until(|event| *event == Event::Closed(slot));
                    let mut answer = Vec::new();
                    waiting.swap_remove(own).read_to_end(&mut answer).unwrap();
                    assert_eq!(answer, b"it is you");
                }
                harness.io.refuse(0);
                harness.settle();
                harness.io.accept(0);
            }
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn listeners_come_and_go_while_learning<I: Io>(make: Make<I>) {
    come_and_go(learning(make, 16));
}

pub(crate) fn descriptors_run_out_while_learning<I: Io>(make: Make<I>) {
    alone("addresses::descriptors_run_out_while_learning", || run_out(make, true));
}
