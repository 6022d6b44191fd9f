//! Service times, places where requests wait, and stalls.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use staunch_tests::truth::{Address, Plan, Queue, Stall, Truth, Work};

use crate::client::Client;

fn port_of(truth: &Truth) -> std::net::SocketAddr {
    match truth.address() {
        Address::Internet(address) => *address,
        Address::Unix(path) => panic!("a port was asked for: {path:?}"),
    }
}

/// A worker serves one request after the other, however many clients ask at once.
#[test]
fn the_service_time_is_a_lower_bound_of_the_whole() {
    for (work, workers) in [(Work::Sleep, 1), (Work::Burn, 1), (Work::Sleep, 2)] {
        let service_time = Duration::from_millis(4);
        let truth = Truth::start(Plan { service_time, workers, work, ..Plan::default() }).unwrap();
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    let mut client = Client::to(&truth);
                    for _ in 0..4 {
                        client.ask("/ok");
                        client.read_answer();
                    }
                });
            }
        });
        let least = service_time * 20 / u32::try_from(workers).unwrap();
        assert!(start.elapsed() >= least, "{work:?}, {workers} workers: {:?} < {least:?}", start.elapsed());
        assert_eq!(truth.finish().answers_of(200), 20);
    }
}

/// In the queue of connections all are read at once, and wait.
#[test]
fn requests_wait_for_the_worker() {
    let plan = Plan { service_time: Duration::from_secs(3600), ..Plan::default() };
    let truth = Truth::start(plan).unwrap();
    let mut clients: Vec<Client> = (0..5).map(|_| Client::asking(&truth, "/ok")).collect();
    let counts = truth.await_counts(|counts| counts.requests_total() == 5);
    assert_eq!((counts.connections_accepted, counts.pending()), (5, 5));
    clients[0].expect_silence();
    let counts = truth.finish();
    assert_eq!((counts.pending(), counts.peers_gone, counts.connections_open), (5, 0, 0));
}

/// In the accept queue the others wait in the kernel, and those for whom the backlog has no room are not
/// connected at all.
#[test]
fn connections_wait_in_the_kernel() {
    let plan = Plan { queue: Queue::Accept, backlog: 1, ..Plan::default() };
    let truth = Truth::start(plan).unwrap();
    let mut first = Client::asking(&truth, "/ok");
    first.read_answer();
    // Linux keeps one more than the backlog.
    let mut second = Client::asking(&truth, "/ok");
    let third = Client::asking(&truth, "/ok");
    for _ in 0..3 {
        let refused = TcpStream::connect_timeout(&port_of(&truth), Duration::from_millis(50)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
    }
    second.expect_silence();
    assert_eq!(truth.counts().requests_total(), 1);
    drop((first, third));
    second.read_answer();
    drop(second);
    let counts =
        truth.await_counts(|counts| counts.connections_accepted == 3 && counts.connections_open == 0);
    // The third was gone when its turn came.
    assert_eq!((counts.answers_of(200), counts.peers_gone), (2, 1));
}

#[test]
fn nothing_is_served_while_it_is_paused() {
    let truth = Truth::start(Plan::default()).unwrap();
    let (mut old, mut asking) = (Client::asking(&truth, "/ok"), Client::asking(&truth, "/ok"));
    old.read_answer();
    asking.read_answer();
    truth.pause();
    truth.pause();
    old.ask("/ok");
    let mut new = Client::asking(&truth, "/ok");
    old.expect_silence();
    new.expect_silence();
    // The truth is told all the same.
    asking.ask("/truth");
    let counts: serde_json::Value = serde_json::from_slice(&asking.read_answer().1).unwrap();
    assert_eq!(counts["answers"]["200"], 2);
    assert_eq!(counts["stalls"].as_array().unwrap().len(), 1);
    assert_eq!(counts["stalls"][0]["ended_ns"], serde_json::Value::Null);
    truth.resume();
    old.read_answer();
    new.read_answer();
    let counts = truth.finish();
    assert_eq!(counts.answers_of(200), 4);
    let stall = &counts.stalls[0];
    assert!(stall.ended_ns.unwrap() > stall.began_ns, "{stall:?}");
}

#[test]
fn a_stall_comes_by_itself_and_goes() {
    let stall = Some(Stall { after: Duration::ZERO, length: Duration::from_millis(100) });
    let truth = Truth::start(Plan { stall, ..Plan::default() }).unwrap();
    truth.await_counts(|counts| counts.stalls.len() == 1);
    Client::asking(&truth, "/ok").read_answer();
    let counts = truth.finish();
    let stall = &counts.stalls[0];
    assert!(stall.ended_ns.unwrap() - stall.began_ns >= 100_000_000, "{stall:?}");
}

/// After a stall the worker has not been working: what waited is served one after the other.
#[test]
fn a_stall_is_no_time_of_service() {
    let service_time = Duration::from_millis(10);
    let truth = Truth::start(Plan { service_time, ..Plan::default() }).unwrap();
    truth.pause();
    let mut clients: Vec<Client> = (0..5).map(|_| Client::asking(&truth, "/ok")).collect();
    // A connection is accepted and waits at the gate: silence for as long as serving all five would take.
    clients[4].expect_silence();
    let resumed = Instant::now();
    truth.resume();
    for client in &mut clients {
        client.read_answer();
    }
    assert!(resumed.elapsed() >= 5 * service_time);
}

#[test]
fn a_server_without_workers_cannot_be() {
    let error = Truth::start(Plan { workers: 0, ..Plan::default() }).unwrap_err();
    assert!(error.to_string().contains("worker"), "{error}");
}
