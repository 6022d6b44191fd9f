//! Connections are taken, left in the queue or refused, and none is lost; waking and waiting.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use staunch_netio::{Io, socket};

use super::Make;
use super::harness::{Event, Harness, listener};

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

pub(crate) fn full_table_loses_no_connection<I: Io>(make: Make<I>) {
    const CLIENTS: usize = 10;
    let mut harness = Harness::new(make, 4);
    let capacity = harness.io.capacity().accepted as usize;
    assert_eq!(capacity, 4);
    let mut clients: Vec<TcpStream> =
        (0..CLIENTS).map(|_| TcpStream::connect(harness.address).unwrap()).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        client.write_all(&[index as u8]).unwrap();
    }
    let mut open = Vec::new();
    let mut served = Vec::new();
    let mut stops = 0;
    while served.len() < CLIENTS {
        match harness.next() {
            Event::Accepted(slot) => {
                open.push(slot);
                assert!(open.len() <= capacity);
            }
            Event::AcceptStopped(errno) => {
                assert_eq!(errno, ENFILE);
                stops += 1;
                harness.expect_quiet();
                // Serve one connection, and go on.
                let slot = open.remove(0);
                harness.io.receive(slot);
                let Event::Received(_, bytes) = harness.next() else { panic!("no request") };
                served.extend(&bytes);
                harness.send_bytes(slot, &bytes, true);
                harness.expect(&Event::Sent(slot, 0));
                harness.expect(&Event::Closed(slot));
                harness.io.accept(0);
            }
            other => panic!("{other:?}"),
        }
        if stops == CLIENTS - capacity {
            serve_rest(&mut harness, &mut open, &mut served, CLIENTS);
        }
    }
    served.sort_unstable();
    assert_eq!(served, (0..CLIENTS as u8).collect::<Vec<_>>());
    for (index, client) in clients.iter_mut().enumerate() {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, [index as u8]);
    }
}

/// The last ones fit, so nothing stops any more.
fn serve_rest<I: Io>(harness: &mut Harness<I>, open: &mut Vec<u32>, served: &mut Vec<u8>, clients: usize) {
    while served.len() < clients {
        let Some(slot) = open.pop() else {
            match harness.next() {
                Event::Accepted(slot) => open.push(slot),
                Event::AcceptStopped(ENFILE) => harness.io.accept(0),
                other => panic!("{other:?}"),
            }
            continue;
        };
        harness.io.receive(slot);
        let mut bytes = Vec::new();
        while bytes.is_empty() {
            match harness.next() {
                Event::Received(_, received) => bytes = received,
                Event::Accepted(slot) => open.push(slot),
                // The last one that came has filled the table, which is known at once.
                Event::AcceptStopped(ENFILE) => {}
                other => panic!("{other:?}"),
            }
        }
        served.extend(&bytes);
        harness.send_bytes(slot, &bytes, true);
        harness.until(|event| *event == Event::Closed(slot)).into_iter().for_each(|event| {
            if let Event::Accepted(slot) = event {
                open.push(slot);
            }
        });
        harness.io.accept(0);
    }
}

pub(crate) fn refuse_and_accept<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 16);
    let (_first, _) = harness.connect();
    harness.io.refuse(0);
    harness.io.refuse(0);
    harness.settle();
    let mut waiting: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(harness.address).unwrap()).collect();
    // An accept may have been with the kernel when accepting was refused.
    let early = harness.settle();
    assert!(early.len() <= 1, "{early:?}");
    harness.io.accept(0);
    harness.io.accept(0);
    let mut slots = early;
    while slots.len() < waiting.len() {
        slots.push(harness.next());
    }
    for event in slots {
        let Event::Accepted(slot) = event else { panic!("{event:?}") };
        harness.send_bytes(slot, b"hello", true);
        harness.until(|event| *event == Event::Closed(slot));
    }
    for client in &mut waiting {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"hello");
    }
}

pub(crate) fn two_listeners<I: Io>(make: Make<I>) {
    let listeners = vec![listener(), listener()];
    let addresses: Vec<_> = listeners.iter().map(|each| socket::local_address(each).unwrap()).collect();
    let mut harness = Harness::with_listeners(make, listeners, 16);
    let early = TcpStream::connect(addresses[1]).unwrap();
    harness.expect_quiet();
    harness.io.accept(0);
    harness.expect_quiet();
    harness.io.accept(1);
    assert!(matches!(harness.next(), Event::Accepted(_)));
    assert_eq!(harness.listener, 1);
    for index in [0, 1, 1, 0] {
        let _client = TcpStream::connect(addresses[index]).unwrap();
        assert!(matches!(harness.next(), Event::Accepted(_)));
        assert_eq!(usize::from(harness.listener), index);
    }
    drop(early);
}

pub(crate) fn listeners_come_and_go<I: Io>(make: Make<I>) {
    come_and_go(Harness::new(make, 16));
}

pub(crate) fn come_and_go<I: Io>(mut harness: Harness<I>) {
    let (_kept, kept) = harness.connect();
    for round in 0..20_u8 {
        let socket = listener();
        let address = socket::local_address(&socket).unwrap();
        // As another process would hold it.
        let other = socket.try_clone().unwrap();
        let number = harness.io.add_listener(socket).unwrap();
        let waiting = |io: &I| io.queue(number).map(|queue| queue.waiting);
        assert!((1..=2).contains(&number), "numbers are used again: {number}");
        let _waiting = TcpStream::connect(address).unwrap();
        harness.expect_quiet();
        assert_eq!(waiting(&harness.io), Some(1));
        harness.io.accept(number);
        let Event::Accepted(slot) = harness.next() else { panic!("not accepted") };
        assert_eq!(harness.listener, number);
        assert_eq!(waiting(&harness.io), Some(0));
        harness.io.drop_listener(number);
        harness.settle();
        assert_eq!(waiting(&harness.io), None);
        // What comes now is for those who still hold the socket.
        let _late = TcpStream::connect(address).unwrap();
        harness.expect_quiet();
        drop(other);
        // A child that another test makes just now holds a copy until it has become its program.
        let refused = (0..1000).any(|_| {
            thread::sleep(Duration::from_millis(1));
            TcpStream::connect(address).is_err()
        });
        assert!(refused);
        // Connections outlive their listener, and other listeners go on.
        harness.send_bytes(slot, &[round], true);
        harness.until(|event| *event == Event::Closed(slot));
        let (_another, another) = harness.connect();
        harness.close_and_wait(another);
    }
    harness.send_bytes(kept, b"still here", true);
    harness.until(|event| *event == Event::Closed(kept));
}

pub(crate) fn waking_from_a_thread<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    for _ in 0..50 {
        let waker = harness.waker.clone();
        let thread = thread::spawn(move || waker.wake());
        harness.expect(&Event::Woken);
        thread.join().unwrap();
    }
    harness.expect_quiet();
    let waker = harness.waker.clone();
    waker.wake();
    waker.wake();
    harness.expect(&Event::Woken);
    harness.settle();
    waker.wake();
    harness.expect(&Event::Woken);
    harness.expect_quiet();
}

/// A wait with a timeout ends without a completion; how long it took is not judged here.
pub(crate) fn timeouts_end<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    for timeout in
        [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(1), Duration::from_micros(2_500)]
    {
        harness.io.submit_and_wait(Some(timeout)).unwrap();
        assert_eq!(harness.poll(), None);
    }
    // An endless and a very long one end by a completion.
    for timeout in [None, Some(Duration::MAX), Some(Duration::from_secs(1 << 40))] {
        harness.waker.wake();
        harness.io.submit_and_wait(timeout).unwrap();
        assert_eq!(harness.poll(), Some(Event::Woken));
        assert_eq!(harness.poll(), None);
    }
}

/// Runs a test again in a process of its own, and there its body. No other test's name may contain its name.
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    const CHILD: &str = "STAUNCH_TEST_ALONE";
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--test-threads=1", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

pub(crate) fn descriptors_run_out<I: Io>(make: Make<I>) {
    alone("accepting::descriptors_run_out", || run_out(make, false));
}

/// A backend that needs no descriptor a connection accepts them all; any other stops and goes on later.
pub(crate) fn run_out<I: Io>(make: Make<I>, learns_peers: bool) {
    const CLIENTS: usize = 20;
    let mut harness = Harness::new(make, 64);
    if learns_peers {
        harness.io.learn_peers();
    }
    let mut clients: Vec<TcpStream> =
        (0..CLIENTS).map(|_| TcpStream::connect(harness.address).unwrap()).collect();
    let before = getrlimit(Resource::Nofile);
    // Descriptors are given lowest first: room for five more.
    let next = std::os::fd::AsRawFd::as_raw_fd(&std::fs::File::open("/dev/null").unwrap()) as u64;
    setrlimit(Resource::Nofile, Rlimit { current: Some(next + 5), ..before }).unwrap();
    let mut slots = Vec::new();
    while slots.len() < CLIENTS {
        match harness.next() {
            Event::Accepted(slot) => slots.push(slot),
            Event::AcceptStopped(errno) => {
                assert_eq!(errno, EMFILE);
                assert_eq!(slots.len(), 5);
                harness.expect_quiet();
                setrlimit(Resource::Nofile, before).unwrap();
                harness.io.accept(0);
            }
            other => panic!("{other:?}"),
        }
    }
    setrlimit(Resource::Nofile, before).unwrap();
    for slot in slots {
        harness.send_bytes(slot, b"in", true);
        harness.until(|event| *event == Event::Closed(slot));
    }
    for client in &mut clients {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"in");
    }
}
