//! Applications that are away, silent, slow, broken or gone amid an answer.

use std::net::TcpListener;

use staunch_tests::truth::{self, Plan};

use crate::scripted::play;
use crate::world::{Client, ENGINES, Told as _, World, application};

/// An address at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

#[test]
fn each_way_to_fail_has_its_status_and_its_counter() {
    for io in ENGINES {
        let (truth, address) = application(Plan::default());
        let mut world = World::proxy(io, &[address], &["--proxy-answer-timeout", "500ms"]);
        for (path, status, reason) in
            [("/reset", 502, "unreachable"), ("/garbage", 502, "broken"), ("/stall", 504, "timeout")]
        {
            let response = world.get(path);
            assert_eq!(response.status, status, "{io} {path}");
            assert!(response.text().contains("application behind this server"), "{}", response.text());
            let count = world.metric("staunch_proxy_failures_total", reason);
            assert!(count >= 1.0, "{io} {path}: {count} of {reason}");
        }
        // Amid a body the client sees that it is not whole.
        for path in ["/short?bytes=5000", "/reset-in-body?bytes=5000", "/hang-after-head?bytes=5000"] {
            let mut client = Client::of(&world);
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            let bytes = client.rest();
            assert!(!bytes.ends_with(&truth::body(5000)), "{io} {path}");
        }
        assert_eq!(world.get("/ok").status, 200, "{io}");
        assert_eq!(world.metric("staunch_proxy_in_work", ""), 0.0, "{io}: every place was given back");
        assert!(truth.counts().requests_of("stall") == 1, "a request that may be at work is not repeated");
    }
}

#[test]
fn an_application_that_is_away_is_502_and_another_server_answers_for_it() {
    for io in ENGINES {
        let world = World::proxy(io, &[nobody()], &[]);
        assert_eq!(world.get("/").status, 502, "{io}");
        let (_truth, address) = application(Plan::default());
        let world = World::proxy(io, &[nobody(), address], &[]);
        for number in 0..40 {
            assert_eq!(world.get("/ok").status, 200, "{io} {number}");
        }
    }
}

#[test]
fn a_connection_that_the_application_closes_while_nobody_uses_it_fails_no_request() {
    for io in ENGINES {
        let (truth, address) = application(Plan { answer_then_close: true, ..Plan::default() });
        let world = World::proxy(io, &[address], &[]);
        let mut client = Client::of(&world);
        for number in 0..200 {
            client.send(b"GET /ok HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(client.read(false).status, 200, "{io} {number}");
        }
        assert!(truth.counts().requests_of("ok") >= 200);
    }
}

#[test]
fn a_request_that_may_not_be_repeated_is_sent_once() {
    for io in ENGINES {
        let (address, got) = play(|application, _| {
            application.head();
        });
        let world = World::proxy(io, &[address.to_string()], &[]);
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(world.ask(post).status, 502, "{io}");
        assert_eq!(got.try_iter().count(), 1, "{io}: a POST");
        assert_eq!(world.get("/").status, 502, "{io}");
        assert_eq!(got.try_iter().count(), 2, "{io}: a GET goes there once more");
    }
}

#[test]
fn answers_that_can_be_read_in_two_ways_are_not_passed_on() {
    const ANSWERS: [&[u8]; 8] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: a\0b\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 099 No\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ];
    for io in ENGINES {
        let (address, _got) = play(|application, number| {
            application.head();
            application.send(ANSWERS[number]);
            application.until(|_| false);
        });
        let world = World::proxy(io, &[address.to_string()], &[]);
        for answer in ANSWERS {
            assert_eq!(world.get("/").status, 502, "{io} {}", String::from_utf8_lossy(answer));
        }
    }
}

#[test]
fn bytes_behind_an_answer_are_nobodys() {
    for io in ENGINES {
        let (address, _got) = play(|application, number| {
            application.head();
            application.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n");
            application.send(format!("Content-Length: 4\r\n\r\nevil{number}").as_bytes());
            application.until(|_| false);
        });
        let world = World::proxy(io, &[address.to_string()], &[]);
        let mut client = Client::of(&world);
        for number in 0..10 {
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(client.read(false).text(), "ok", "{io} {number}");
        }
    }
}

#[test]
fn a_client_that_leaves_gives_its_place_back() {
    for io in ENGINES {
        let (truth, address) = application(Plan::default());
        let mut world = World::proxy(io, &[address], &["--proxy-limit", "1", "--proxy-patience", "1min"]);
        let mut at_work = Client::of(&world);
        at_work.send(b"GET /stall HTTP/1.1\r\nHost: a\r\n\r\n");
        truth.await_counts(|counts| counts.requests_of("stall") == 1);
        let mut in_line = Client::of(&world);
        in_line.send(b"GET /ok HTTP/1.1\r\nHost: a\r\n\r\n");
        world.await_metric("staunch_proxy_waiting", "", |count| count == 1.0);
        let mut also = Client::of(&world);
        also.send(b"GET /ok?bytes=7 HTTP/1.1\r\nHost: a\r\n\r\n");
        world.await_metric("staunch_proxy_waiting", "", |count| count == 2.0);
        drop(in_line);
        world.await_metric("staunch_proxy_waiting", "", |count| count == 1.0);
        drop(at_work);
        assert!(also.read(false).body == truth::body(7), "{io}");
        assert_eq!(truth.counts().requests_of("ok"), 1, "{io}: who has left the line is not served");
        world.await_metric("staunch_proxy_in_work", "", |count| count == 0.0);
    }
}

#[test]
fn a_client_that_takes_its_answer_slowly_holds_no_place_and_little_memory() {
    for io in ENGINES {
        let (truth, address) = application(Plan::default());
        let mut world = World::proxy(io, &[address], &["--proxy-limit", "1"]);
        let mut slow = Client::of(&world);
        slow.send(b"GET /ok?bytes=50000000 HTTP/1.1\r\nHost: a\r\n\r\n");
        truth.await_counts(|counts| counts.requests_of("ok") == 1);
        world.await_metric("staunch_proxy_in_work", "", |count| count == 0.0);
        assert_eq!(world.get("/ok").status, 200, "{io}");
        let held_bytes = world.metric("staunch_proxy_held_bytes", "");
        assert!(held_bytes < 4e6, "{io}: {held_bytes} held");
        assert!(slow.read(false).body == truth::body(50_000_000), "{io}");
    }
}

#[test]
fn a_request_that_has_come_round_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let world = World::proxy("epoll", &[address.to_string()], &["--listen", &address.to_string()]);
    let mut client = Client::to(address);
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let statuses = client.read(false).status;
    assert!([508, 503].contains(&statuses), "{statuses}");
    drop(world);
}
