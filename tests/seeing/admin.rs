//! The admin address: figures that agree with what was done, and nothing of it on the site's address.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use staunch_tests::house::waiting::until;
use staunch_tests::process::{finish, serve};

use crate::peer::{body, get, say, start, start_workers};

#[test]
fn figures_agree_with_what_was_done() {
    for io in ["epoll", "uring"] {
        let seen = start_workers("2", &["--io", io]);
        let site = seen.server.address();
        for _ in 0..20 {
            assert!(get(site, "/ten", "").ends_with("0123456789"));
        }
        for _ in 0..3 {
            get(site, "/absent", "");
        }
        say(site, b"nonsense\r\n\r\n");
        let held = TcpStream::connect(site).expect("a connection");
        (&held).write_all(b"GET /ten HTTP/1.1\r\nHost: a\r\n\r\n").expect("bytes sent");
        (&held).read_exact(&mut [0; 20]).expect("an answer");
        seen.await_metric("staunch_requests_total", 24.0);
        seen.await_metric("staunch_refusals_total{reason=\"malformed\"}", 1.0);
        for (sample, expected) in [
            ("staunch_requests_total", 24.0),
            ("staunch_responses_total{class=\"2xx\"}", 21.0),
            ("staunch_responses_total{class=\"4xx\"}", 3.0),
            ("staunch_request_duration_seconds_count", 24.0),
            ("staunch_queue_age_seconds_count", 24.0),
            ("staunch_connections_accepted_total", 25.0),
            ("staunch_connections{state=\"idle\"}", 1.0),
            ("staunch_connections{state=\"waiting\"}", 0.0),
            ("staunch_content_files{site=\"default\"}", 1.0),
            ("staunch_access_log_lines_total{outcome=\"written\"}", 0.0),
        ] {
            let start = Instant::now();
            // Connections that the peer has closed are gone a moment later.
            while seen.metric(sample) != expected {
                assert!(
                    start.elapsed() < Duration::from_secs(5),
                    "{io}: {sample} is {}",
                    seen.metric(sample)
                );
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        assert!(seen.metric("process_resident_memory_bytes") > 1e6);
        until("all content is prepared", || seen.status()["readiness"] == "ready");
        let status = seen.status();
        assert_eq!(status["workers"].as_array().expect("workers").len(), 2);
        assert_eq!(
            (&status["io"], &status["readiness"]),
            (&if io == "uring" { "io_uring" } else { io }.into(), &"ready".into())
        );
    }
}

#[test]
fn nothing_of_it_stands_on_the_address_of_the_site() {
    let seen = start(&[]);
    seen.await_metric("staunch_ready", 1.0);
    for path in ["/metrics", "/healthz", "/readyz", "/status.json"] {
        assert!(get(seen.server.address(), path, "").starts_with("HTTP/1.1 404 "), "{path}");
        assert!(seen.ask(path).starts_with("HTTP/1.1 200 "), "{path}");
    }
    assert!(seen.ask("/ten").starts_with("HTTP/1.1 404 "));
    assert!(
        say(seen.admin, b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            .starts_with("HTTP/1.1 405 ")
    );
    assert!(body(&seen.ask("/")).contains("/metrics"));
}

/// While this one is answered all the others wait: it has waited for none of them. A machine that is busy may
/// take as long as a peer has; then the attempt is made again.
#[test]
fn silent_peers_hold_up_nobody() {
    let seen = start(&[]);
    let held_up_nobody = (0..10).any(|_| {
        let silent: Vec<TcpStream> =
            (0..40).map(|_| TcpStream::connect(seen.admin).expect("a connection")).collect();
        assert!(body(&seen.ask("/healthz")) == "ok\n");
        silent.iter().all(|mut stream| {
            stream.set_nonblocking(true).expect("a socket");
            stream.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        })
    });
    assert!(held_up_nobody, "silent peers were waited for");
}

/// A hundred are more than it keeps, and the rest has its deadline.
#[test]
fn slow_peers_are_sent_away() {
    let seen = start(&[]);
    let slow: Vec<TcpStream> = (0..100)
        .map(|number| {
            let stream = TcpStream::connect(seen.admin).expect("a connection");
            if number % 2 == 0 {
                (&stream).write_all(b"GET /metr").expect("bytes sent");
            }
            stream
        })
        .collect();
    assert!(body(&seen.ask("/healthz")) == "ok\n");
    for mut stream in slow {
        stream.set_read_timeout(Some(crate::peer::PATIENCE)).expect("a timeout");
        // Closed: with an end or, as bytes were left unread, with a reset.
        assert!(matches!(stream.read(&mut [0; 100]), Ok(0) | Err(_)));
    }
}

/// A web page that gives its own name this address reads nothing.
#[test]
fn only_known_names_are_answered() {
    let seen = start(&["--admin-hosts", "web1.example"]);
    for (host, status) in [("web1.example:9", "200"), ("localhost", "200"), ("evil.example", "421")] {
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = say(seen.admin, head.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let seen = start(&[]);
    let tree = staunch_tests::tree::Tree::new().expect("a folder");
    let finished = finish(serve(tree.root()).args(["--admin", &seen.admin.to_string()]));
    assert_eq!(finished.status.code(), Some(1));
    let words = format!("cannot listen on the admin address {}", seen.admin);
    assert!(finished.stderr.contains(&words), "{}", finished.stderr);
}
