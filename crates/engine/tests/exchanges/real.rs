//! The conversations of this suite with real sockets, on epoll and on io_uring.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use staunch_engine::{ClientPolicy, Drain, Engine, IoChoice, Owner, Pressure, Settings, UpstreamTimeouts};
use staunch_protocol::Timeouts;

use crate::conversations::TABLE;
use crate::handler::{Echo, Log, Tick};
use crate::neighbours::{echoing_upstream, nobody};
use crate::reading::{answers, sum};

/// Serves while `with` runs, then drains. Every exchange that began must have been finished.
pub(crate) fn serve(io: IoChoice, with: impl FnOnce(SocketAddr)) {
    let engine = Engine::<Tick>::bind(Settings {
        socket_mode: 0o666,
        listen: vec!["127.0.0.1:0".parse().expect("an address")],
        workers: vec![None],
        io,
        connections_max: Some(64),
        upstream_descriptors: 0,
        tls: None,
        memory_budget_bytes: None,
        http2: true,
        timeouts: Timeouts::default(),
        clients: ClientPolicy::default(),
        pressure: Pressure::NONE,
        notice: Arc::new(|_| ()),
    });
    let engine = match engine {
        Ok(engine) => engine,
        Err(error) => return println!("skipped: {error}"),
    };
    let (address, control, post) = (engine.addresses()[0], engine.control(), engine.post());
    let stats = engine.stats();
    let upstreams = vec![echoing_upstream(), nobody()];
    let (drips, log) = (Arc::<AtomicUsize>::default(), Log::default());
    let (under_way, over) = (Arc::clone(&drips), Arc::<AtomicBool>::default());
    let timeouts = UpstreamTimeouts { connect_ms: 40_000, ..UpstreamTimeouts::default() };
    let handler = || {
        let handler = Echo::new(Arc::clone(&drips), Some(Arc::clone(&log)));
        handler.with_upstreams(upstreams.clone(), timeouts)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
                if under_way.load(Relaxed) > 0 {
                    post.send_to_worker(0, Owner::default(), Tick);
                }
            }
        });
        let worker = scope.spawn(|| engine.run(|_| handler()));
        let outcome = catch_unwind(AssertUnwindSafe(|| with(address)));
        control.drain(Drain { cap_ms: 20_000, idle_ms: Some(0), leave_queues: false });
        worker.join().expect("no panic").expect("workers that do not fail");
        over.store(true, Relaxed);
        outcome.unwrap_or_else(|panic| resume_unwind(panic));
    });
    let log = log.lock().expect("no panic");
    assert_eq!(log.0, log.1.len(), "an exchange was not finished");
    let (opened, closed) = (stats[0].upstreams.opened.get(), stats[0].upstreams.closed.get());
    assert_eq!(opened, closed, "an upstream is leaked");
}

fn converse(address: SocketAddr, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("room in the queue");
    stream.set_read_timeout(Some(Duration::from_secs(40))).expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    for piece in pieces {
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut received = Vec::new();
    // What came before a reset counts.
    let _ = stream.read_to_end(&mut received);
    received
}

fn hold_all(io: IoChoice) {
    serve(io, |address| {
        for conversation in TABLE.iter().filter(|conversation| !conversation.waits) {
            let bytes = conversation.sent.as_bytes();
            let (start, end) = bytes.split_at(bytes.len() * 2 / 3);
            for pieces in [&[bytes][..], &[start, end], &bytes.chunks(7).collect::<Vec<_>>()] {
                let received = converse(address, pieces);
                let (heard, _) = answers(&received, false);
                assert_eq!(heard, conversation.answers, "{:?}", conversation.sent);
            }
        }
    });
}

/// Sends far more than any buffer holds before it reads, and while it reads.
fn echo_much(io: IoChoice, path: &str) {
    const BYTES: usize = 48 << 20;
    serve(io, |address| {
        let stream = TcpStream::connect(address).expect("room in the queue");
        let body: Vec<u8> = (0..BYTES as u32).map(|at| (at ^ (at >> 9)) as u8).collect();
        let expected = sum(&body);
        let mut sending = stream.try_clone().expect("a descriptor");
        let path = path.to_owned();
        let sender = std::thread::spawn(move || {
            let head =
                format!("POST {path}?length={BYTES} HTTP/1.1\r\nHost: a\r\nContent-Length: {BYTES}\r\n\r\n");
            sending.write_all(head.as_bytes()).expect("a peer that reads");
            sending.write_all(&body).expect("a peer that reads");
            sending.shutdown(Shutdown::Write).expect("a socket");
        });
        let (mut received, mut stream) = (Vec::new(), stream);
        stream.read_to_end(&mut received).expect("an orderly end");
        sender.join().expect("no panic");
        let (heard, rest) = answers(&received, false);
        assert_eq!((heard, rest.len()), (vec![format!("200 length {BYTES} bytes, sum {expected}")], 0));
    });
}

#[test]
fn every_conversation_on_epoll() {
    hold_all(IoChoice::Epoll);
}

#[test]
fn every_conversation_on_uring() {
    hold_all(IoChoice::Uring);
}

#[test]
fn a_long_body_comes_back_on_epoll() {
    echo_much(IoChoice::Epoll, "/echo");
}

#[test]
fn a_long_body_comes_back_on_uring() {
    echo_much(IoChoice::Uring, "/echo");
}

#[test]
fn a_long_body_comes_back_of_an_upstream_on_epoll() {
    echo_much(IoChoice::Epoll, "/upstream");
}

#[test]
fn a_long_body_comes_back_of_an_upstream_on_uring() {
    echo_much(IoChoice::Uring, "/upstream");
}
