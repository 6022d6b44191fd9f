//! Connections and requests of one client are limited, those of others are not; with real sockets.
use std::thread;

use staunch_tests::house::waiting::until;

use super::caller::{Caller, ENGINES, Served, ip, serve};

/// All workers count together, whichever of them gets a connection.
#[test]
fn a_client_has_so_many_connections_and_no_more() {
    for io in ENGINES {
        let served = serve("127.0.0.1:0", &["--io", io, "--workers", "4", "--client-connections", "3"]);
        let mut held: Vec<Caller> = Vec::new();
        let mut refused = 0;
        for _ in 0..20 {
            let mut caller = Caller::from(ip("127.0.0.2"), served.address());
            let response = caller.ask("/a.txt", "").expect("an answer");
            match response.status {
                200 => held.push(caller),
                429 => {
                    refused += 1;
                    assert_eq!(response.value("Retry-After").as_deref(), Some("1"));
                    assert_eq!(response.value("Connection").as_deref(), Some("close"));
                    assert!(caller.receive().is_none(), "it is closed");
                }
                status => panic!("{status}"),
            }
        }
        assert_eq!((held.len(), refused), (3, 17), "{io}");
        assert_eq!(Caller::from(ip("127.0.0.3"), served.address()).status(), 200, "another client");
        assert_eq!(served.counter("connections_over"), 17);
        assert!(held.iter_mut().all(|caller| caller.status() == 200), "those that are there are served");
        drop(held.pop());
        until("a place is free again", || {
            let mut caller = Caller::from(ip("127.0.0.2"), served.address());
            let served = caller.status() == 200;
            held.push(caller);
            served
        });
    }
}

/// Many at the same moment: the count is exact.
#[test]
fn connections_at_the_same_moment_are_counted_one_by_one() {
    for io in ENGINES {
        let served = serve("127.0.0.1:0", &["--io", io, "--workers", "4", "--client-connections", "10"]);
        let address = served.address();
        for source in ["127.0.0.4", "127.0.0.5"] {
            let ask = || {
                let mut caller = Caller::from(ip(source), address);
                (caller.status(), caller)
            };
            let answers: Vec<(u16, Caller)> = thread::scope(|scope| {
                let threads: Vec<_> = (0..60).map(|_| scope.spawn(ask)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let count = |status| answers.iter().filter(|answer| answer.0 == status).count();
            assert_eq!((count(200), count(429)), (10, 50), "{io} from {source}");
        }
    }
}

#[test]
fn a_client_makes_so_many_requests_a_second() {
    for io in ENGINES {
        let served = serve("127.0.0.1:0", &["--io", io, "--client-rate", "5/s"]);
        let mut caller = Caller::from(ip("127.0.0.6"), served.address());
        caller.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50).as_bytes());
        let answers: Vec<_> = (0..50).map(|_| caller.receive().expect("an answer to each")).collect();
        let granted = answers.iter().filter(|answer| answer.status == 200).count();
        // However slow this machine is: five, and those earned while the others were answered.
        assert!((5..50).contains(&granted), "{granted}");
        for refused in answers.iter().filter(|answer| answer.status != 200) {
            assert_eq!(refused.status, 429);
            assert_eq!(refused.value("Retry-After").as_deref(), Some("1"));
            assert_eq!(refused.value("RateLimit-Policy").as_deref(), Some("\"client_rate\";q=5;w=1"));
            assert_eq!(refused.value("RateLimit").as_deref(), Some("\"client_rate\";r=0;t=1"));
            assert!(!refused.has("Connection"), "the connection stays");
        }
        assert_eq!(Caller::from(ip("127.0.0.7"), served.address()).status(), 200, "another client");
        until("the rate allows the next", || caller.status() == 200);
        assert!(served.counter("requests_over") >= 50 - granted as u64);
    }
}

/// The whole answer of each is there, a HEAD's without its body, and a body that was sent is read away.
#[test]
fn refused_requests_do_not_disturb_those_behind_them() {
    let served = serve("127.0.0.1:0", &["--client-rate", "1/s"]);
    let mut caller = Caller::from(ip("127.0.0.8"), served.address());
    caller.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(caller.receive().unwrap().status, 200);
    caller.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nGET / ...");
    caller.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    for _ in 0..2 {
        let response = caller.receive().expect("an answer to each");
        assert!([200, 405, 429].contains(&response.status), "{response:?}");
    }
}

#[test]
fn a_dry_run_counts_and_refuses_nobody() {
    let arguments = ["--client-connections", "2", "--client-rate", "3/s", "--dry-run"];
    let served = serve("127.0.0.1:0", &arguments);
    let mut callers: Vec<Caller> = (0..5).map(|_| Caller::from(ip("127.0.0.9"), served.address())).collect();
    for _ in 0..4 {
        assert!(callers.iter_mut().all(|caller| caller.status() == 200));
    }
    assert_eq!(served.counter("connections_over"), 3);
    assert!(served.counter("requests_over") > 0);
}

#[test]
fn without_limits_nobody_is_counted() {
    let served = serve("127.0.0.1:0", &[]);
    let mut callers: Vec<Caller> = (0..30).map(|_| Caller::from(ip("127.0.0.2"), served.address())).collect();
    assert!(callers.iter_mut().all(|caller| caller.status() == 200));
    assert_eq!(counters(&served), [0; 4]);
}

fn counters(served: &Served) -> [u64; 4] {
    ["connections_over", "requests_over", "table_full", "proxy_faults"].map(|name| served.counter(name))
}

#[test]
fn ipv6_is_limited_too() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return println!("skipped: no IPv6 here");
    }
    for io in ENGINES {
        let served = serve("[::1]:0", &["--io", io, "--client-connections", "2"]);
        let mut callers: Vec<Caller> = (0..3).map(|_| Caller::from(ip("::1"), served.address())).collect();
        let mut statuses: Vec<u16> = callers.iter_mut().map(Caller::status).collect();
        // On a busy machine the kernel may lose the end of a handshake: that connection comes as the last.
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 200, 429]);
    }
}
