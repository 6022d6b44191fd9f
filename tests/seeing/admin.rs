//! The admin address: figures that agree with what was done, and nothing of it on the site's address.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

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
    for path in ["/metrics", "/healthz", "/readyz", "/status.json"] {
        assert!(get(seen.server.address(), path, "").starts_with("HTTP/1.1 404 "), "{path}");
        assert!(seen.ask(path).starts_with("HTTP/1.1 200 "), "{path}");
    }
    assert!(seen.ask("/ten").starts_with("HTTP/1.1 404 "));
    assert!(
        say(seen.admin, b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            .starts_with("HTTP/1.1 405 ")
    );
    assert!(body(&seen.ask("/")).contains("/metrics"));
}

#[test]
fn slow_peers_are_sent_away_and_hold_up_nobody_for_long() {
    let seen = start(&[]);
    let slow: Vec<TcpStream> = (0..8)
        .map(|_| {
            let stream = TcpStream::connect(seen.admin).expect("a connection");
            (&stream).write_all(b"GET /metr").expect("bytes sent");
            stream
        })
        .collect();
    // Eight that say nothing more, in turns of four and two seconds each; then it is this one's turn.
    assert!(body(&seen.ask("/healthz")) == "ok\n");
    for mut stream in slow {
        stream.set_read_timeout(Some(crate::peer::PATIENCE)).expect("a timeout");
        // Closed: with an end or, as bytes were left unread, with a reset.
        assert!(matches!(stream.read(&mut [0; 100]), Ok(0) | Err(_)));
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
