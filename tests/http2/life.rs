//! What operators see and do: the log, draining, upgrades of what is said, deadlines of idle connections.

use rustix::process::Signal;
use staunch_protocol::http2::PREFACE;
use staunch_tests::house::waiting::until;

use crate::client::{Client, GOAWAY, get, request, window};
use crate::world::{ENGINES, World, say};

#[test]
fn the_log_tells_the_version() {
    for io in ENGINES {
        let format = "$request $status $body_bytes_sent";
        let world = World::new(io, &["--access-log", "{}/log", "--access-log-format", format]);
        let mut client = Client::new(world.address());
        client.get(1, "/a.txt?b=c");
        client.send(&request(3, true, "HEAD", "/absent", &[]));
        client.reply(3);
        client.send(&request(5, true, "GET", "/", &[("x", "y"); 120]));
        let refused = client.reply(5);
        assert_eq!(refused.status, 431);
        let log = world.tree.root().parent().expect("a folder").join("log");
        let mut text = String::new();
        until("three lines are written", || {
            text = std::fs::read_to_string(&log).unwrap_or_default();
            text.lines().count() >= 3
        });
        let last = format!("- 431 {}", refused.body.len());
        let expected = ["GET /a.txt?b=c HTTP/2.0 200 13", "HEAD /absent HTTP/2.0 404 0", &last];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{io}");
    }
}

/// A connection that nothing is asked for is told that the server leaves, and one with an answer under way
/// gets it to its end.
#[test]
fn draining_asks_clients_to_go_elsewhere() {
    for io in ENGINES {
        let mut world = World::new(io, &[]);
        let mut idle = Client::new(world.address());
        assert_eq!(idle.get(1, "/a.txt").status, 200, "{io}");
        let mut busy = Client::new(world.address());
        busy.opens_windows = false;
        busy.send(&get(1, "/big.bin"));
        busy.until(1, |reply| reply.body.len() == 65_535);
        world.signal(Signal::TERM);
        idle.ends();
        assert_eq!(idle.goaway(), Some(0), "{io}");
        while busy.goaway().is_none() {
            assert!(busy.next().is_some(), "{io}: closed before the answer was whole");
        }
        busy.opens_windows = true;
        busy.send(&[window(0, 65_535), window(1, 65_535)].concat());
        let reply = busy.reply(1);
        assert_eq!((reply.body.len(), reply.is_whole), (3_000_000, true), "{io}");
        busy.ends();
        assert!(world.server.end().is_some_and(|status| status.success()), "{io}");
    }
}

/// Requests that cross with the word that the server leaves are answered.
#[test]
fn what_crosses_with_the_farewell_is_answered() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut client = Client::with_settings(world.address(), &[]);
        client.opens_windows = false;
        client.send(&get(1, "/big.bin"));
        client.until(1, |reply| reply.body.len() == 65_535);
        world.signal(Signal::TERM);
        // The answer to our first word after it is read only then.
        client.send(&get(3, "/empty.txt"));
        assert_eq!(client.reply(3).status, 200, "{io}");
    }
}

#[test]
fn an_idle_connection_is_closed_in_time() {
    for io in ENGINES {
        let world = World::new(io, &["--keep-alive", "1s"]);
        let mut client = Client::new(world.address());
        assert_eq!(client.get(1, "/a.txt").status, 200, "{io}");
        let mut last = None;
        while let Some(frame) = client.next() {
            last = Some(frame.kind);
        }
        assert_eq!((last, client.goaway()), (Some(GOAWAY), Some(0)), "{io}");
        assert_eq!(world.metric("staunch_timeouts_total{deadline=\"keep_alive\"}"), 1, "{io}");
        assert_eq!(world.metric("staunch_refusals_total{reason=\"malformed\"}"), 0, "{io}");
    }
}

/// A reload may switch it off for those who come later.
#[test]
fn a_reload_is_for_new_connections() {
    for io in ENGINES {
        let world =
            World::with_settings(io, "http2 = true\n", &["--header-timeout", "1s", "--keep-alive", "1h"]);
        let mut client = Client::new(world.address());
        assert_eq!(client.get(1, "/a.txt").status, 200, "{io}");
        world.set("http2 = false\n");
        world.signal(Signal::HUP);
        until("the preface is refused", || say(world.address(), PREFACE).starts_with(b"HTTP/1.1 505 "));
        assert_eq!(client.get(3, "/a.txt").status, 200, "{io}");
    }
}
