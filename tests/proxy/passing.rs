//! Requests and answers arrive as they were sent, in whatever form they come.

use std::process::Command;

use staunch_tests::truth::{self, Plan};

use crate::scripted::play;
use crate::world::{Client, ENGINES, Told as _, World, application, chunked};

#[test]
fn answers_arrive_whole_in_whatever_form_they_come() {
    for io in ENGINES {
        let (_truth, address) = application(Plan::default());
        let world = World::proxy(io, &[address], &[]);
        for bytes in [0_usize, 1, 100, 70_000, 3_000_000] {
            for path in ["ok", "chunked", "no-length", "close", "1xx"] {
                let response = world.get(&format!("/{path}?bytes={bytes}&chunk=1000"));
                assert_eq!(response.status, 200, "{path} {bytes}");
                let expected = truth::body(if path == "1xx" { 100 } else { bytes });
                assert!(response.body == expected, "{io} {path} {bytes}: {}", response.body.len());
            }
        }
        for status in [204, 299, 404, 418, 503, 599] {
            assert_eq!(world.get(&format!("/status/{status}")).status, status);
        }
        let head = world.ask("HEAD /ok?bytes=500 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((head.status, head.value("content-length").as_deref()), (200, Some("500")));
    }
}

#[test]
fn many_requests_of_a_client_use_one_connection_to_the_application() {
    for io in ENGINES {
        let (truth, address) = application(Plan::default());
        let world = World::proxy(io, &[address], &[]);
        let mut client = Client::of(&world);
        for bytes in 0..100 {
            client.send(format!("GET /ok?bytes={bytes} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            assert!(client.read(false).body == truth::body(bytes));
        }
        let counts = truth.counts();
        assert_eq!((counts.requests_of("ok"), counts.connections_accepted), (100, 1), "{io}");
    }
}

#[test]
fn bodies_arrive_whole_and_a_slow_one_takes_no_place() {
    for io in ENGINES {
        let (truth, address) = application(Plan::default());
        let world = World::proxy(io, &[address], &["--proxy-limit", "1", "--proxy-body-size", "100KiB"]);
        for bytes in [1_usize, 1000, 100_000, 400_000] {
            let body = truth::body(bytes);
            let head = "POST /echo HTTP/1.1\r\nHost: a\r\n";
            let mut by_length = Client::of(&world);
            by_length.send(format!("{head}Content-Length: {bytes}\r\n\r\n").as_bytes());
            by_length.send(&body);
            let echoed = by_length.read(false).body;
            assert!(echoed.ends_with(&body), "{io} {bytes}: {} came back", echoed.len());
        }
        // Half a body of a client that goes on later: nothing of it has come to the application.
        let mut slow = Client::of(&world);
        slow.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
        assert_eq!(world.get("/ok").status, 200, "{io}: its place is free");
        assert_eq!(truth.counts().requests_of("echo"), 4);
        slow.send(b"def");
        assert!(slow.read(false).body.ends_with(b"abcdef"));
    }
}

#[test]
fn bodies_in_chunks_arrive_with_a_length_if_they_are_short_and_in_chunks_else() {
    for io in ENGINES {
        let (address, got) = play(|application, _| {
            let bytes = application.until(|bytes| {
                bytes.ends_with(b"0\r\n\r\n") || bytes.windows(9).any(|nine| nine == b"\r\n\r\nshort")
            });
            let is_answered = !bytes.is_empty();
            if is_answered {
                application.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        let world = World::proxy(io, &[address.to_string()], &["--proxy-body-size", "1KiB"]);
        let long = vec![b'x'; 10_000];
        for body in [&b"short"[..], &long] {
            let mut client = Client::of(&world);
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
            client.send(&chunked(body, 700));
            assert_eq!(client.read(false).status, 200, "{io}");
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (short, long) = (text(got.recv().expect("a request")), text(got.recv().expect("a request")));
        assert!(
            short.contains("\r\nContent-Length: 5\r\n") && !short.contains("Transfer-Encoding"),
            "{short}"
        );
        assert!(long.contains("\r\nTransfer-Encoding: chunked\r\n") && !long.contains("Content-Length"));
        assert_eq!(long.matches('x').count(), 10_000, "{io}");
    }
}

#[test]
fn an_early_answer_is_passed_on_and_hints_come_before_it() {
    for io in ENGINES {
        let (address, _got) = play(|application, _| {
            application.head();
            application.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
            application.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno\n");
            application.until(|_| false);
        });
        let world = World::proxy(io, &[address.to_string()], &["--proxy-body-size", "1KiB"]);
        let mut client = Client::of(&world);
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
        client.send(&[b'x'; 5_000]);
        let answer = client.read(false);
        assert_eq!((answer.status, answer.value("link").as_deref()), (103, Some("</a.css>")), "{io}");
        let answer = client.read(false);
        assert_eq!((answer.status, answer.text().as_str()), (413, "no\n"), "{io}");
    }
}

#[test]
fn events_are_flushed_at_once_and_take_no_place() {
    for io in ENGINES {
        let (address, _got) = play(|application, number| {
            application.head();
            if number > 0 {
                return application.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            application.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
            application.until(|_| false);
        });
        let world = World::proxy(io, &[address.to_string()], &["--proxy-limit", "1"]);
        let mut reader = Client::of(&world);
        reader.send(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut seen = Vec::new();
        while !seen.ends_with(b"data: 1\n\n\r\n") {
            let mut byte = [0];
            std::io::Read::read_exact(&mut reader.stream, &mut byte).expect("an event");
            seen.push(byte[0]);
        }
        assert_eq!(world.get("/other").text(), "ok", "{io}: the stream has no place");
    }
}

#[test]
fn another_protocol_goes_both_ways_once_the_application_has_agreed() {
    for io in ENGINES {
        let (address, got) = play(|application, number| {
            let head = application.head();
            if number == 1 {
                // Says no to the upgrade.
                return application.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
            }
            application
                .send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
            application.send(b"Sec-Thing: 7\r\n\r\nhello ");
            drop(head);
            let rest = application.until(|bytes| bytes.ends_with(b"bye"));
            application.send(&rest);
        });
        let mut world = World::proxy(io, &[address.to_string()], &["--proxy-limit", "1"]);
        let request = "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let mut client = Client::of(&world);
        client.send(request.as_bytes());
        let answer = client.read(true);
        assert_eq!((answer.status, answer.value("sec-thing").as_deref()), (101, Some("7")), "{io}");
        assert_eq!(world.metric("staunch_proxy_in_work", ""), 0.0, "{io}: a tunnel takes no place");
        client.send(b"\0\xffraw bye");
        assert_eq!(client.rest(), b"hello \0\xffraw bye", "{io}");
        let seen = String::from_utf8(got.recv().expect("a request")).expect("text");
        assert!(
            seen.contains("\r\nUpgrade: websocket\r\n") && seen.contains("\r\nConnection: Upgrade\r\n"),
            "{seen}"
        );
        // What follows an upgrade that is refused is the next request, and was not passed on as it stood.
        let mut client = Client::of(&world);
        client.send(format!("{request}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert_eq!(client.read(false).text(), "no", "{io}");
        let _ = got.recv();
        let seen = String::from_utf8(got.recv().expect("a request")).expect("text");
        assert!(seen.starts_with("GET /socket") && !seen.contains("smuggled"), "{seen}");
    }
}

#[test]
fn a_client_of_http2_is_served_by_an_application_of_http1() {
    let (_truth, address) = application(Plan::default());
    let world = World::proxy("uring", &[address], &[]);
    let body = vec![b'y'; 300_000];
    let file = std::env::temp_dir().join(format!("staunch-proxy-body-{}", std::process::id()));
    std::fs::write(&file, &body).expect("a file");
    let mut command = Command::new("curl");
    command.args(["--silent", "--http2-prior-knowledge", "--max-time", "120", "--data-binary"]);
    command.arg(format!("@{}", file.display())).arg(format!("{}/echo", world.server.url()));
    let output = command.output().expect("curl");
    std::fs::remove_file(&file).expect("our file");
    assert!(output.status.success() && output.stdout.ends_with(&body), "{:?}", output.status);
}

#[test]
fn a_unix_socket_is_an_address_too() {
    let file = std::env::temp_dir().join(format!("staunch-proxy-{}.sock", std::process::id()));
    let (_truth, address) = application(Plan { address: truth::Address::Unix(file), ..Plan::default() });
    for io in ENGINES {
        let world = World::proxy(io, std::slice::from_ref(&address), &[]);
        assert!(world.get("/ok?bytes=5000").body == truth::body(5000), "{io}");
    }
}

#[test]
fn what_a_client_says_of_itself_is_not_believed() {
    let (address, got) = play(|application, _| {
        application.head();
        application.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    let world = World::proxy("epoll", &[address.to_string()], &[]);
    world.ask(
        "GET /a?b=c HTTP/1.1\r\nHost: shop.test\r\nX-Forwarded-For: 10.1.2.3\r\nX-Real-IP: 10.1.2.3\r\n\
         Forwarded: for=10.1.2.3\r\nX_Forwarded_For: 10.1.2.3\r\nProxy: http://evil\r\nConnection: X-Mine\r\n\
         X-Mine: 1\r\nX-Yours: 2\r\nTE: trailers\r\n\r\n",
    );
    let seen = String::from_utf8(got.recv().expect("a request")).expect("text");
    world.ask("GET /old HTTP/1.0\r\n\r\n");
    let old = String::from_utf8(got.recv().expect("a request")).expect("text");
    assert!(old.contains(&format!("\r\nHost: {address}\r\n")), "who names no host gets one: {old}");
    assert!(seen.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{seen}");
    assert!(!seen.contains("10.1.2.3") && !seen.contains("evil") && !seen.contains("X-Mine"), "{seen}");
    for line in ["Host: shop.test", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Yours: 2"] {
        assert!(seen.contains(&format!("\r\n{line}\r\n")), "{line} in {seen}");
    }
}
