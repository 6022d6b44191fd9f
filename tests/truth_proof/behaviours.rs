//! What each path does to its peer, and that the books say so.

use std::io;
use std::time::{Duration, Instant};

use staunch_tests::truth::{Address, Counts, GARBAGE, Plan, Truth, body, wrong_body};

use crate::client::{Client, everything};

fn truth() -> Truth {
    Truth::start(Plan::default()).unwrap()
}

fn text(bytes: usize) -> String {
    String::from_utf8(body(bytes)).unwrap()
}

/// The books balance, nothing is pending.
fn balanced(truth: Truth) -> Counts {
    let counts = truth.finish();
    assert_eq!(counts.pending(), 0, "{counts:?}");
    assert_eq!(counts.connections_open, 0);
    counts
}

#[test]
fn right_answers_to_the_byte() {
    let truth = truth();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
    let cases = [
        ("/ok?bytes=5", format!("{head}Content-Length: 5\r\nConnection: close\r\n\r\nabcde")),
        ("/ok?bytes=0", format!("{head}Content-Length: 0\r\nConnection: close\r\n\r\n")),
        ("/ok", format!("{head}Content-Length: 100\r\nConnection: close\r\n\r\n{}", text(100))),
        (
            "/chunked?bytes=5&chunk=3",
            format!(
                "{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                 3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            ),
        ),
        ("/no-length?bytes=3", format!("{head}Connection: close\r\n\r\nabc")),
        (
            "/1xx",
            format!(
                "HTTP/1.1 100 Continue\r\n\r\n{head}Content-Length: 100\r\nConnection: close\r\n\r\n{}",
                text(100)
            ),
        ),
        ("/delay/1ms", format!("{head}Content-Length: 100\r\nConnection: close\r\n\r\n{}", text(100))),
        (
            "/slow-body?bytes=25&over=10ms",
            format!("{head}Content-Length: 25\r\nConnection: close\r\n\r\n{}", text(25)),
        ),
        (
            "/status/204",
            "HTTP/1.1 204 As asked for\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n".to_owned(),
        ),
        (
            "/status/503",
            "HTTP/1.1 503 As asked for\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\
             Connection: close\r\n\r\nas asked for\n"
                .to_owned(),
        ),
    ];
    let mut bytes_sent = 0;
    for (path, expected) in &cases {
        let request = format!("GET {path} HTTP/1.1\r\nHost: truth\r\nConnection: close\r\n\r\n");
        assert_eq!(everything(&truth, &request), *expected, "{path}");
        bytes_sent += expected.len() as u64;
    }
    let counts = balanced(truth);
    assert_eq!((counts.answers_of(200), counts.answers_of(204), counts.answers_of(503)), (8, 1, 1));
    assert_eq!(
        (counts.requests_of("ok"), counts.requests_of("status"), counts.requests_of("1xx")),
        (3, 2, 1)
    );
    assert_eq!((counts.connections_accepted, counts.bytes_sent), (10, bytes_sent));
}

#[test]
fn a_wrong_body_is_an_answer_of_the_right_length() {
    let truth = truth();
    let mut client = Client::asking(&truth, "/wrong-body?bytes=50");
    let (head, found) = client.read_answer();
    assert!(head.contains("Content-Length: 50\r\n"));
    assert_eq!(found, wrong_body(50));
    assert_ne!(found, body(50));
    assert_eq!(balanced(truth).answers_of(200), 1);
}

#[test]
fn a_close_is_announced_and_done() {
    let truth = truth();
    let mut client = Client::asking(&truth, "/close?bytes=2");
    let (bytes, end) = client.read_to_end();
    end.expect("an orderly end");
    let answer = String::from_utf8(bytes).unwrap();
    assert!(answer.contains("\r\nConnection: close\r\n") && answer.ends_with("\r\n\r\nab"), "{answer}");
    balanced(truth);
}

#[test]
fn a_close_without_a_word() {
    let truth = Truth::start(Plan { answer_then_close: true, ..Plan::default() }).unwrap();
    let mut client = Client::asking(&truth, "/ok?bytes=2");
    let (bytes, end) = client.read_to_end();
    end.expect("an orderly end");
    let answer = String::from_utf8(bytes).unwrap();
    assert!(!answer.contains("Connection") && answer.ends_with("\r\n\r\nab"), "{answer}");
    balanced(truth);
}

#[test]
fn the_echo_is_the_request_to_the_byte() {
    let truth = truth();
    let request = b"PUT /echo?n=7 HTTP/1.1\r\nHost: truth\r\nX-Odd:  two  spaces \r\n\
                    Content-Length: 4\r\n\r\n\0\r\n\xff";
    let mut client = Client::to(&truth);
    // In two pieces: a request need not come at once.
    client.write(&request[..30]);
    client.write(&request[30..]);
    assert_eq!(client.read_answer().1, request);
    assert_eq!(balanced(truth).requests_of("echo"), 1);
}

#[test]
fn connections_are_kept_and_requests_may_be_pipelined() {
    let truth = truth();
    let mut client = Client::to(&truth);
    for bytes in [1, 3] {
        client.ask(&format!("/ok?bytes={bytes}"));
        assert_eq!(client.read_answer().1, body(bytes));
    }
    client.write(
        b"GET /ok?bytes=5 HTTP/1.1\r\n\r\nGET /ok?bytes=7 HTTP/1.1\r\n\r\nHEAD /ok?bytes=9 HTTP/1.0\r\n\r\n",
    );
    assert_eq!(client.read_answer().1, body(5));
    assert_eq!(client.read_answer().1, body(7));
    let (bytes, end) = client.read_to_end();
    end.expect("an orderly end");
    let answer = String::from_utf8(bytes).unwrap();
    assert!(answer.contains("Content-Length: 9\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    let counts = balanced(truth);
    assert_eq!((counts.connections_accepted, counts.answers_of(200)), (1, 5));
}

#[test]
fn resets_are_resets() {
    let truth = truth();
    let (bytes, end) = Client::asking(&truth, "/reset").read_to_end();
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(bytes, b"");
    let (bytes, end) = Client::asking(&truth, "/reset-in-body?bytes=10").read_to_end();
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    let answer = String::from_utf8(bytes).unwrap();
    assert!(answer.contains("Content-Length: 10\r\n") && answer.ends_with("\r\n\r\nabcde"), "{answer}");
    let counts = balanced(truth);
    assert_eq!((counts.resets, counts.broken, counts.answers_total()), (2, 2, 0));
}

#[test]
fn short_bodies_and_garbage_end_in_order() {
    let truth = truth();
    let (bytes, end) = Client::asking(&truth, "/short?bytes=10").read_to_end();
    end.expect("an orderly end");
    let answer = String::from_utf8(bytes).unwrap();
    assert!(answer.contains("Content-Length: 10\r\n") && answer.ends_with("\r\n\r\nabcde"), "{answer}");
    let (bytes, end) = Client::asking(&truth, "/garbage").read_to_end();
    end.expect("an orderly end");
    assert_eq!(bytes, GARBAGE);
    let counts = balanced(truth);
    assert_eq!((counts.resets, counts.broken, counts.answers_total()), (0, 2, 0));
}

#[test]
fn what_never_comes_does_not_come() {
    let truth = truth();
    let mut stalled = Client::asking(&truth, "/stall");
    stalled.expect_silence();
    let mut hanging = Client::asking(&truth, "/hang-after-head?bytes=10");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(hanging.read_some(&mut byte).unwrap(), 1);
        head.push(byte[0]);
    }
    assert!(String::from_utf8(head).unwrap().contains("Content-Length: 10\r\n"));
    hanging.expect_silence();
    let counts = truth.counts();
    assert_eq!((counts.requests_total(), counts.pending(), counts.peers_gone), (2, 2, 0));
    drop((stalled, hanging));
    truth.await_counts(|counts| counts.peers_gone == 2 && counts.connections_open == 0);
    assert_eq!(balanced(truth).answers_total(), 0);
}

/// Those that go while they wait get no answer, and those that go in the middle of one are noticed too.
#[test]
fn peers_that_go_are_counted() {
    let truth = truth();
    drop(Client::asking(&truth, "/delay/50ms"));
    truth.await_counts(|counts| counts.peers_gone == 1);
    drop(Client::asking(&truth, "/slow-body?bytes=10&over=100ms"));
    truth.await_counts(|counts| counts.peers_gone == 2);
    // More than all buffers hold: the server is writing when the peer goes.
    let mut client = Client::asking(&truth, "/ok?bytes=60000000");
    assert!(client.read_some(&mut [0; 100]).unwrap() > 0);
    drop(client);
    truth.await_counts(|counts| counts.peers_gone == 3);
    let mut client = Client::to(&truth);
    client.write(b"GET /ok HT");
    truth.await_counts(|counts| counts.connections_accepted == 4);
    drop(client);
    truth.await_counts(|counts| counts.requests_incomplete == 1);
    let counts = balanced(truth);
    assert_eq!((counts.requests_total(), counts.answers_total()), (3, 0));
    assert!(counts.bytes_sent < 60_000_000, "{counts:?}");
}

#[test]
fn delays_last_at_least_as_long_as_asked() {
    let truth = truth();
    for path in ["/delay/30ms", "/slow-body?bytes=40&over=30ms"] {
        let start = Instant::now();
        Client::asking(&truth, path).read_answer();
        assert!(start.elapsed() >= Duration::from_millis(30), "{path}");
    }
    balanced(truth);
}

#[test]
fn what_is_not_understood_is_refused_and_counted() {
    let truth = truth();
    let cases = [
        ("GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 ", "/nothing"),
        ("GET /ok?bytes=x HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 400 ", "bytes=x"),
        ("GET /status/99 HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 400 ", "99"),
        ("NONSENSE\r\n\r\n", "HTTP/1.1 400 ", "NONSENSE"),
        (
            "POST /ok HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 411 ",
            "Content-Length",
        ),
    ];
    for (request, status, named) in cases {
        let answer = everything(&truth, request);
        assert!(answer.starts_with(status) && answer.contains(named), "{request:?}: {answer}");
    }
    let counts = balanced(truth);
    assert_eq!((counts.requests_of("unknown"), counts.requests_of("bad")), (1, 4));
    assert_eq!((counts.answers_of(404), counts.answers_of(400), counts.answers_of(411)), (1, 3, 1));
}

#[test]
fn ipv6_and_unix_sockets() {
    let six = Address::Internet("[::1]:0".parse().unwrap());
    if let Ok(truth) = Truth::start(Plan { address: six, ..Plan::default() }) {
        assert!(truth.url("/ok").starts_with("http://[::1]:"));
        assert_eq!(Client::asking(&truth, "/ok").read_answer().1, body(100));
        balanced(truth);
    }
    let path = std::env::temp_dir().join(format!("staunch-truth-{}", std::process::id()));
    let plan = Plan { address: Address::Unix(path.clone()), ..Plan::default() };
    let truth = Truth::start(plan.clone()).unwrap();
    assert_eq!(truth.url("/ok"), format!("unix:{}", path.display()));
    assert_eq!(Client::asking(&truth, "/ok").read_answer().1, body(100));
    let (bytes, end) = Client::asking(&truth, "/reset").read_to_end();
    end.expect("an orderly end");
    assert_eq!(bytes, b"");
    assert_eq!(Truth::start(plan).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    let counts = balanced(truth);
    assert_eq!((counts.broken, counts.resets), (1, 0));
    assert!(!path.exists());
}

/// Every kind of end at once, from many connections: each request is in the books exactly once.
#[test]
fn the_books_balance_under_a_crowd() {
    const PATHS: [&str; 8] =
        ["/ok", "/chunked", "/status/500", "/reset", "/short", "/delay/1ms", "/reset-in-body", "/garbage"];
    let truth = truth();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let truth = &truth;
            scope.spawn(move || {
                for round in 0..25 {
                    let path = PATHS[(thread + round) % PATHS.len()];
                    let mut client = Client::to(truth);
                    client.write(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes());
                    let _ = client.read_to_end();
                }
            });
        }
    });
    let counts = balanced(truth);
    assert_eq!((counts.connections_accepted, counts.requests_total(), counts.peers_gone), (400, 400, 0));
    assert_eq!(
        (counts.answers_of(200), counts.answers_of(500), counts.resets, counts.broken),
        (150, 50, 100, 200)
    );
}

/// A crowd that stays: every connection open at the same time.
#[test]
fn a_thousand_connections_at_once() {
    staunch_netio::descriptors::raise_descriptor_limit().unwrap();
    let truth = truth();
    let mut clients: Vec<Client> = (0..1000).map(|_| Client::asking(&truth, "/ok?bytes=9")).collect();
    for client in &mut clients {
        assert_eq!(client.read_answer().1, body(9));
    }
    let counts = truth.counts();
    assert_eq!(
        (counts.connections_open, counts.answers_of(200), counts.connections_dropped),
        (1000, 1000, 0)
    );
    drop(clients);
    truth.await_counts(|counts| counts.connections_open == 0);
    balanced(truth);
}
