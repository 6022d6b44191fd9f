//! Connecting: to peers that answer, refuse, or stay silent; what is set on the sockets; slots, descriptors.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use staunch_netio::{Address, Io, Target, socket};

use super::Make;
use super::accepting::alone;
use super::harness::{Event, Harness, Random, nobody, pattern_bytes, reset};

const ENOENT: i32 = 2;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENAMETOOLONG: i32 = 36;
const EAFNOSUPPORT: i32 = 97;
const EADDRNOTAVAIL: i32 = 99;
const ECONNREFUSED: i32 = 111;

fn peer() -> (TcpListener, Target) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = target_of(&listener);
    (listener, target)
}

fn target_of(listener: &TcpListener) -> Target {
    Target::new(Address::Internet(listener.local_addr().unwrap()))
}

/// The `errno` for which nothing was begun.
#[track_caller]
fn refusal<I: Io>(harness: &mut Harness<I>, target: &Target) -> i32 {
    harness.begin(target).unwrap_err().raw_os_error().unwrap()
}

pub(crate) fn bytes_go_both_ways<I: Io>(make: Make<I>) {
    const BYTES: usize = 3_000_000;
    let mut harness = Harness::client(make, 4);
    let (listener, target) = peer();
    for round in 0..3 {
        let slot = harness.connect_to(&target);
        let (mut server, _) = listener.accept().unwrap();
        harness.expect_quiet();
        harness.io.receive(slot);
        server.write_all(b"greeting").unwrap();
        harness.expect(&Event::Received(slot, b"greeting".to_vec()));
        let reader = thread::spawn(move || {
            let mut got = vec![0; BYTES];
            server.read_exact(&mut got).unwrap();
            (server, got)
        });
        harness.send_bytes(slot, &pattern_bytes(round, BYTES), false);
        harness.until(|event| *event == Event::Sent(slot, 0));
        let (server, got) = reader.join().unwrap();
        assert!(got == pattern_bytes(round, BYTES));
        drop(server);
        harness.expect(&Event::Ended(slot, 0));
        harness.close(slot);
        harness.expect(&Event::Closed(slot));
        harness.expect_quiet();
    }
}

/// Bytes and the end that are there before the connection is reported are not lost.
pub(crate) fn the_peer_speaks_first<I: Io>(make: Make<I>) {
    let mut harness = Harness::client(make, 4);
    let (listener, target) = peer();
    for ends in [false, true] {
        let slot = harness.begin(&target).unwrap();
        let server = thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (mut server, _) = listener.accept().unwrap();
                server.write_all(b"first").unwrap();
                (!ends).then_some(server)
            });
            harness.io.submit_and_wait(Some(std::time::Duration::ZERO)).unwrap();
            server.join().unwrap()
        });
        harness.expect(&Event::Connected(slot, 0));
        harness.expect_quiet();
        harness.io.receive(slot);
        harness.expect(&Event::Received(slot, b"first".to_vec()));
        if let Some(server) = server {
            reset(server);
            harness.expect(&Event::Ended(slot, 104));
        } else {
            harness.expect(&Event::Ended(slot, 0));
        }
        harness.close_and_wait(slot);
    }
}

pub(crate) fn refused<I: Io>(make: Make<I>) {
    let mut harness = Harness::client(make, 4);
    let (_bound, target) = nobody();
    for _ in 0..10 {
        let slot = harness.begin(&target).unwrap();
        harness.expect(&Event::Connected(slot, ECONNREFUSED));
        harness.inspect(slot);
        harness.expect(&Event::Inspected(slot, 0));
        harness.expect_quiet();
        harness.close(slot);
        harness.expect(&Event::Closed(slot));
    }
    harness.expect_quiet();
}

/// A listener whose queue is full drops what comes: the kernel sends its SYN again after a second.
pub(crate) fn abandoned_and_inspected<I: Io>(make: Make<I>) {
    let mut harness = Harness::client(make, 4);
    let listener = socket::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 0).unwrap();
    let target = Target::new(Address::Internet(socket::local_address(&listener).unwrap()));
    let first = harness.connect_to(&target);
    harness.inspect(first);
    harness.expect(&Event::Inspected(first, 0));
    let slot = harness.begin(&target).unwrap();
    harness.expect_quiet();
    if harness.io.can_inspect() {
        loop {
            harness.inspect(slot);
            match harness.next() {
                Event::Inspected(_, 0) => harness.expect_quiet(),
                Event::Inspected(inspected, 1..) => break assert_eq!(inspected, slot),
                other => panic!("{other:?}"),
            }
        }
    }
    harness.close(slot);
    harness.expect(&Event::Closed(slot));
    // Both at once: the answer comes, then the end.
    let slot = harness.begin(&target).unwrap();
    harness.inspect(slot);
    harness.close(slot);
    let events = harness.until(|event| *event == Event::Closed(slot));
    assert!(events.contains(&Event::Inspected(slot, 0)), "{events:?}");
    // The slots go on being used, and the table is not full.
    drop(listener);
    harness.close_and_wait(first);
    let (_listener, target) = peer();
    for _ in 0..4 {
        harness.connect_to(&target);
    }
}

/// A close right after the beginning, with and without a turn between them; the peer may see a connection
/// that has ended, or none.
pub(crate) fn abandoned_at_once<I: Io>(make: Make<I>) {
    let mut harness = Harness::client(make, 2);
    let (listener, target) = peer();
    for round in 0..40 {
        let slot = harness.begin(&target).unwrap();
        if round % 2 == 0 {
            harness.io.submit_and_wait(Some(std::time::Duration::ZERO)).unwrap();
        }
        harness.close(slot);
        harness.close(slot);
        let other = harness.begin(&target).unwrap();
        assert_ne!(slot, other, "a slot is used again before its end was reported");
        let events = harness.until(|event| *event == Event::Closed(slot));
        if !events.contains(&Event::Connected(other, 0)) {
            harness.expect(&Event::Connected(other, 0));
        }
        harness.close_and_wait(other);
        harness.expect_quiet();
    }
    listener.set_nonblocking(true).unwrap();
    while let Ok((mut server, _)) = listener.accept() {
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
    }
}

pub(crate) fn unix_sockets<I: Io>(make: Make<I>) {
    let mut harness = Harness::client(make, 4);
    let path = std::env::temp_dir().join(format!("staunch-connecting-{}-{make:p}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let target = Target { reset_on_close: true, ..Target::new(Address::Unix(path.clone())) };
    let slot = harness.connect_to(&target);
    let (mut server, _) = listener.accept().unwrap();
    harness.io.receive(slot);
    server.write_all(b"over here").unwrap();
    harness.expect(&Event::Received(slot, b"over here".to_vec()));
    harness.inspect(slot);
    harness.expect(&Event::Inspected(slot, 0));
    harness.send_bytes(slot, b"and back", true);
    harness.until(|event| *event == Event::Closed(slot));
    harness.expect_quiet();
    let mut back = String::new();
    server.read_to_string(&mut back).unwrap();
    assert_eq!(back, "and back");
    drop(listener);
    // The file is there but nobody listens; then it is not there.
    for errno in [ECONNREFUSED, ENOENT] {
        let slot = harness.begin(&target).unwrap();
        harness.expect(&Event::Connected(slot, errno));
        harness.close_and_wait(slot);
        let _ = std::fs::remove_file(&path);
    }
    let long = Target::new(Address::Unix(PathBuf::from("/".to_owned() + &"x".repeat(200))));
    assert_eq!(refusal(&mut harness, &long), ENAMETOOLONG);
    harness.expect_quiet();
}

pub(crate) fn ipv6<I: Io>(make: Make<I>) {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else { return };
    let mut harness = Harness::client(make, 4);
    let source = Some(IpAddr::V6(Ipv6Addr::LOCALHOST));
    for target in [target_of(&listener), Target { source, ..target_of(&listener) }] {
        let slot = harness.connect_to(&target);
        let (mut server, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), Ipv6Addr::LOCALHOST);
        harness.send_bytes(slot, b"six", true);
        harness.until(|event| *event == Event::Closed(slot));
        harness.expect_quiet();
        let mut six = Vec::new();
        server.read_to_end(&mut six).unwrap();
        assert_eq!(six, b"six");
    }
}

pub(crate) fn sources<I: Io>(make: Make<I>) {
    let mut harness = Harness::client(make, 4);
    let (listener, target) = peer();
    let from = |source: IpAddr| Target { source: Some(source), ..target.clone() };
    for last in [2, 3, 250] {
        let source = IpAddr::from([127, 0, 0, last]);
        let slot = harness.connect_to(&from(source));
        assert_eq!(listener.accept().unwrap().1.ip(), source);
        harness.close_and_wait(slot);
    }
    // An address for documentation (RFC 5737) is nobody's.
    assert_eq!(refusal(&mut harness, &from(IpAddr::from([192, 0, 2, 1]))), EADDRNOTAVAIL);
    assert_eq!(refusal(&mut harness, &from(IpAddr::V6(Ipv6Addr::LOCALHOST))), EAFNOSUPPORT);
    assert_eq!((0..4).map(|_| harness.connect_to(&target)).count(), 4);
}

pub(crate) fn reset_on_close<I: Io>(make: Make<I>) {
    let mut harness = Harness::client(make, 4);
    let (listener, target) = peer();
    for reset_on_close in [false, true] {
        let slot = harness.connect_to(&Target { reset_on_close, ..target.clone() });
        let (mut server, _) = listener.accept().unwrap();
        harness.close_and_wait(slot);
        harness.expect_quiet();
        match server.read(&mut [0]) {
            Ok(0) => assert!(!reset_on_close),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => assert!(reset_on_close),
            other => panic!("{other:?}"),
        }
    }
}

/// A full table refuses, and the slot of a connection is free as soon as its end was reported.
pub(crate) fn full_table<I: Io>(make: Make<I>) {
    let mut harness = Harness::client(make, 3);
    let (_listener, target) = peer();
    let mut slots: Vec<_> = (0..3).map(|_| harness.connect_to(&target)).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1, 2]);
    for round in 0..50 {
        assert_eq!(refusal(&mut harness, &target), ENFILE);
        let slot = slots[round % 3];
        harness.close(slot);
        assert_eq!(refusal(&mut harness, &target), ENFILE);
        harness.until(|event| *event == Event::Closed(slot));
        assert_eq!(harness.begin(&target).unwrap(), slot);
        harness.until(|event| *event == Event::Connected(slot, 0));
    }
}

/// More beginnings in one turn than any queue on the way holds.
pub(crate) fn many_at_once<I: Io>(make: Make<I>) {
    const CONNECTIONS: usize = 700;
    let mut harness = Harness::client(make, CONNECTIONS as u32);
    let listener = socket::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 4096).unwrap();
    let listener = TcpListener::from(listener);
    listener.set_nonblocking(false).unwrap();
    let target = target_of(&listener);
    let server = thread::spawn(move || {
        let servers: Vec<_> = (0..CONNECTIONS).map(|_| listener.accept().unwrap().0).collect();
        for mut server in servers {
            let mut bytes = [0; 4];
            server.read_exact(&mut bytes).unwrap();
            server.write_all(&bytes).unwrap();
        }
    });
    for _ in 0..CONNECTIONS {
        harness.begin(&target).unwrap();
    }
    let mut done = 0;
    while done < CONNECTIONS {
        match harness.next() {
            Event::Connected(slot, 0) => {
                harness.io.receive(slot);
                harness.send_bytes(slot, &slot.to_ne_bytes(), false);
            }
            Event::Received(slot, bytes) => {
                assert_eq!(bytes, slot.to_ne_bytes());
                done += 1;
            }
            Event::Sent(_, 0) | Event::Ended(_, 0) => {}
            other => panic!("{other:?}"),
        }
    }
    server.join().unwrap();
}

/// In a process of its own: descriptors run out, and come back.
pub(crate) fn out_of_descriptors<I: Io>(make: Make<I>) {
    alone("connecting::out_of_descriptors", || {
        const CONNECTIONS: usize = 20;
        let mut harness = Harness::client(make, 64);
        let (_listener, target) = peer();
        let before = getrlimit(Resource::Nofile);
        let next = std::os::fd::AsRawFd::as_raw_fd(&std::fs::File::open("/dev/null").unwrap()) as u64;
        // Descriptors are given lowest first: room for none, then for five or, with a gap, fewer.
        setrlimit(Resource::Nofile, Rlimit { current: Some(next), ..before }).unwrap();
        assert_eq!(refusal(&mut harness, &target), EMFILE);
        assert_eq!(refusal(&mut harness, &target), EMFILE);
        setrlimit(Resource::Nofile, Rlimit { current: Some(next + 5), ..before }).unwrap();
        let mut connected = 0;
        while connected < CONNECTIONS {
            match harness.begin(&target) {
                Ok(slot) => {
                    harness.expect(&Event::Connected(slot, 0));
                    connected += 1;
                }
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(EMFILE));
                    assert!((1..=5).contains(&connected), "{connected} connections");
                    setrlimit(Resource::Nofile, before).unwrap();
                }
            }
        }
        setrlimit(Resource::Nofile, before).unwrap();
        for slot in 0..CONNECTIONS as u32 {
            harness.close_and_wait(slot);
        }
    });
}

/// A peer that does anything at any time, and an owner that does too: the harness holds all of it against the
/// contract.
pub(crate) fn connecting_chaos<I: Io>(make: Make<I>) {
    const CAPACITY: u32 = 24;
    for seed in 1..=3 {
        println!("seed {seed}");
        let mut random = Random(seed);
        let mut harness = Harness::client(make, CAPACITY);
        let (listener, target) = peer();
        listener.set_nonblocking(true).unwrap();
        let (_bound, nobody) = nobody();
        let mut servers = Vec::new();
        let mut owned = [None; CAPACITY as usize];
        for _ in 0..6_000 {
            servers.extend(listener.accept().map(|(server, _)| server));
            if !servers.is_empty() && random.below(4) == 0 {
                let mut server = servers.swap_remove(random.below(servers.len()));
                match random.below(3) {
                    0 => reset(server),
                    1 => drop(server),
                    _ => drop(server.write(b"whatever")),
                }
            }
            let to = if random.below(8) == 0 { &nobody } else { &target };
            let to = Target { reset_on_close: random.below(2) == 0, ..to.clone() };
            let slot = random.below(CAPACITY as usize) as u32;
            match (random.below(6), owned[slot as usize]) {
                (0..=1, None) => {
                    if let Ok(slot) = harness.begin(&to) {
                        owned[slot as usize] = Some(false);
                    }
                }
                (2, Some(_)) => {
                    harness.close(slot);
                    owned[slot as usize] = None;
                }
                (3, Some(true)) => harness.send_once(slot, b"words"),
                (4, Some(true)) => harness.io.receive(slot),
                (5, Some(_)) => harness.inspect_once(slot),
                _ => {}
            }
            harness.io.submit_and_wait(Some(std::time::Duration::ZERO)).unwrap();
            while let Some(event) = harness.poll() {
                if let Event::Connected(slot, 0) = event {
                    owned[slot as usize] = owned[slot as usize].map(|_| true);
                }
            }
        }
        for slot in 0..CAPACITY {
            if owned[slot as usize].is_some() {
                harness.close(slot);
            }
        }
        harness.settle();
        let (_listener, target) = peer();
        for _ in 0..CAPACITY {
            harness.connect_to(&target);
        }
    }
}
