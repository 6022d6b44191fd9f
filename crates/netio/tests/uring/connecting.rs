//! Connecting with several rings, with nothing optional, and with more connections than descriptors.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use staunch_netio::uring::{Uring, probe};
use staunch_netio::{Address, Capacity, Completion, Io, Outgoing, Slot, Target, Waker, socket};

use super::fixture::{Event, Fixture, Sizes};
use crate::conformance::accepting::alone;
use crate::conformance::beside;
use crate::conformance::connecting::{
    abandoned_and_inspected, abandoned_at_once, connecting_chaos, many_at_once,
};

fn is_refused() -> bool {
    Sizes::default().backend(Vec::new(), Waker::new().unwrap()).is_none()
}

fn make_small_rings(listeners: Vec<OwnedFd>, waker: Waker, capacity: Capacity) -> Uring {
    let sizes = Sizes { capacity, ring_capacity: 5, buffers_max: 2, ..Sizes::default() };
    sizes.backend(listeners, waker).unwrap()
}

fn make_plain(listeners: Vec<OwnedFd>, waker: Waker, capacity: Capacity) -> Uring {
    let sizes = Sizes { capacity, ring_capacity: 11, plain: true, ..Sizes::default() };
    sizes.backend(listeners, waker).unwrap()
}

#[test]
fn in_small_rings_and_with_nothing_optional() {
    if is_refused() {
        return;
    }
    for make in [make_small_rings, make_plain] {
        connecting_chaos(make);
        abandoned_at_once(make);
        many_at_once(make);
        abandoned_and_inspected(make);
    }
}

/// Small tables, divided; and rings that are whole, some to accept in and some to connect in.
#[test]
fn beside_accepting_in_small_rings_and_with_nothing_optional() {
    if is_refused() {
        return;
    }
    for make in [make_small_rings, make_plain] {
        beside::in_any_order(make);
        beside::to_itself(make);
        beside::full_of_either(make);
        beside::chaos_of_both(make);
    }
}

/// Where the kernel divides tables, one ring does both; else there is one for each.
#[test]
fn one_ring_does_both() {
    for plain in [false, true] {
        let capacity = Capacity { connected: 10, accepted: 20 };
        let Some(mut fixture) = Fixture::new(Sizes { capacity, plain, ..Sizes::default() }) else { return };
        let divided = !plain && probe().is_ok_and(|features| features.divided_tables);
        let target = Target::new(Address::Internet(fixture.address));
        for _ in 0..10 {
            fixture.connect_to(&target);
        }
        assert_eq!(fixture.io.rings(), if divided { 1 } else { 2 });
        println!("divided tables: {divided}; options can be set: {}", fixture.io.can_tune());
    }
}

#[test]
fn a_ring_is_made_when_the_others_are_full_and_slots_are_used_again() {
    let sizes = Sizes { capacity: Capacity::connecting(30), ring_capacity: 10, ..Sizes::default() };
    let Some(mut fixture) = Fixture::client(sizes) else { return };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = Target::new(Address::Internet(listener.local_addr().unwrap()));
    for count in 0..30 {
        assert_eq!(fixture.connect_to(&target), count);
        assert_eq!(fixture.io.rings() as u32, count / 10 + 1);
    }
    for slot in [3, 17, 29] {
        fixture.close(slot);
        fixture.until(|event| *event == Event::Closed(slot));
        assert_eq!(fixture.connect_to(&target), slot);
    }
    assert_eq!(fixture.io.rings(), 3);
}

const CONNECTIONS: u32 = 50_000;

/// Each of five addresses of this machine is the source of 10 000 connections. Linux looks for a port among
/// the even ones first, so more than half of all ports (14 000) from one source to one peer take very long.
fn target(address: SocketAddr, index: u32) -> Target {
    let source = Some(IpAddr::from([127, 0, 0, 2 + (index % 5) as u8]));
    Target { source, reset_on_close: true, ..Target::new(Address::Internet(address)) }
}

/// Serves in a thread: echoes, and closes what has ended, until all are closed. Returns how many rings that
/// took.
fn serve(listener: OwnedFd) -> JoinHandle<usize> {
    std::thread::spawn(move || {
        let sizes = Sizes { capacity: CONNECTIONS.into(), ring_capacity: 19_000, ..Sizes::default() };
        let mut io = sizes.backend(vec![listener], Waker::new().unwrap()).unwrap();
        io.accept(0);
        let mut closed = 0;
        while closed < CONNECTIONS {
            io.submit_and_wait(None).unwrap();
            while let Some(completion) = io.next_completion() {
                match completion {
                    Completion::Accepted { slot, .. } => io.receive(slot),
                    Completion::Received { slot, input } => {
                        let mut outgoing = Box::<Outgoing>::default();
                        outgoing.bytes().extend_from_slice(io.input(&input));
                        io.release(input);
                        io.send(slot, outgoing, false);
                    }
                    Completion::Ended { slot, errno } => {
                        assert_eq!(errno, libc::ECONNRESET);
                        io.close(slot);
                    }
                    Completion::Closed { .. } => closed += 1,
                    Completion::Sent { .. } => {}
                    // The table is full: as many as are expected were accepted.
                    Completion::AcceptStopped { errno, .. } => assert_eq!(errno, libc::ENFILE),
                    other => panic!("{other:?}"),
                }
            }
        }
        io.rings()
    })
}

/// More connections than this process may have descriptors, on both sides.
#[test]
fn fifty_thousand_connections_with_twenty_thousand_descriptors() {
    if is_refused() {
        return;
    }
    alone("fifty_thousand_connections_with_twenty_thousand_descriptors", || {
        let limit = getrlimit(Resource::Nofile);
        if limit.maximum.is_some_and(|maximum| maximum < 20_000) {
            return eprintln!("not tested: the limit of descriptors cannot be raised to 20 000");
        }
        setrlimit(Resource::Nofile, Rlimit { current: Some(20_000), ..limit }).unwrap();
        let listener = socket::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 4096).unwrap();
        let address = socket::local_address(&listener).unwrap();
        let server = serve(listener);
        let capacity = Capacity::connecting(CONNECTIONS);
        let sizes = Sizes { capacity, ring_capacity: 20_000, ..Sizes::default() };
        let mut fixture = Fixture::client(sizes).unwrap();
        connect_all(&mut fixture, address);
        assert_eq!(fixture.io.rings(), 3);
        let probes: Vec<Slot> = (0..CONNECTIONS).step_by(997).chain([CONNECTIONS - 1]).collect();
        for &slot in &probes {
            fixture.io.receive(slot);
            fixture.send_bytes(slot, &slot.to_ne_bytes(), false);
        }
        for _ in &probes {
            let event = fixture.wait(|event| matches!(event, Event::Received(..)));
            let Event::Received(slot, bytes) = event else { unreachable!() };
            assert_eq!(bytes, slot.to_ne_bytes());
        }
        for slot in 0..CONNECTIONS {
            fixture.close(slot);
            if slot % 1000 == 999 {
                fixture.wait(|event| *event == Event::Closed(slot));
            }
        }
        assert_eq!(server.join().unwrap(), 3);
    });
}

/// At most a hundred at a time, so that no queue on the way is full.
fn connect_all(fixture: &mut Fixture, address: SocketAddr) {
    let (mut begun, mut connected) = (0, 0);
    while connected < CONNECTIONS {
        while begun < CONNECTIONS && begun - connected < 100 {
            assert_eq!(fixture.begin(&target(address, begun)).unwrap(), begun);
            begun += 1;
        }
        match fixture.next() {
            Event::Connected(_, 0) => connected += 1,
            other => panic!("{other:?} after {connected} connections"),
        }
    }
}
