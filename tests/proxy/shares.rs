//! A client takes much: others find room, and it is told.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use staunch_tests::process::binary;
use staunch_tests::response::Response;
use staunch_tests::truth::Plan;

use crate::scripted::play;
use crate::world::{Client, ENGINES, PATIENCE, World, application};

/// Connections to servers that there may be: half is 32, a quarter 16, and the reserve 8.
const LINKS: &str = "64";
const GREEDY: &str = "127.0.0.2";
const OTHER: &str = "127.0.0.3";

/// A client at an address of its own, or one that a trusted proxy names.
fn client(world: &World, address: &str, is_forwarded: bool) -> Client {
    let source = if is_forwarded { "127.0.0.1" } else { address };
    Client::from(source.parse::<IpAddr>().expect("an address"), world.server.address())
}

/// Asks for a WebSocket.
fn tunnel(world: &World, address: &str, is_forwarded: bool) -> (Client, Response) {
    let mut client = client(world, address, is_forwarded);
    let forwarded = if is_forwarded { format!("X-Forwarded-For: {address}\r\n") } else { String::new() };
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    client.send(format!("GET /tunnel HTTP/1.1\r\nHost: a\r\n{upgrade}{forwarded}\r\n").as_bytes());
    let response = client.read(true);
    (client, response)
}

/// Waits until the log has these words.
fn await_line(log: &Path, words: &str) {
    let began = Instant::now();
    while !std::fs::read_to_string(log).is_ok_and(|said| said.contains(words)) {
        assert!(began.elapsed() < PATIENCE, "{} has no \"{words}\"", log.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn one_client_takes_no_more_than_its_share_of_connections_to_servers() {
    for (io, is_forwarded) in ENGINES.into_iter().flat_map(|io| [(io, false), (io, true)]) {
        let (address, _got) = play(|application, _| {
            application.head();
            application.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n");
            application.send(b"Connection: Upgrade\r\n\r\n");
            application.until(|_| false);
        });
        let log = staunch_tests::tree::Tree::with(&[]).expect("a folder");
        let log_file = log.root().join("errors");
        let mut command = Command::new(binary());
        command.args(["proxy", &address.to_string(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--io", io, "--workers", "1", "--proxy-connections", LINKS]);
        command.args(["--proxy-limit", "off", "--error-log"]);
        command.arg(&log_file);
        if is_forwarded {
            command.args(["--trusted-proxies", "127.0.0.1"]);
        }
        let mut world = World::of(&mut command);
        let words = format!("{io} {is_forwarded}");
        // Alone it gets all but an eighth.
        let mut greedy: Vec<Client> = Vec::new();
        let refused = loop {
            let (client, response) = tunnel(&world, GREEDY, is_forwarded);
            match response.status {
                101 => greedy.push(client),
                _ => break response,
            }
        };
        assert_eq!((greedy.len(), refused.status), (56, 429), "{words}");
        assert_eq!(refused.value("retry-after").as_deref(), Some("1"), "{words}");
        let policy = r#""proxy_share";q=56;qu="concurrent-requests""#;
        assert_eq!(refused.value("ratelimit-policy").as_deref(), Some(policy), "{words}");
        assert_eq!(refused.value("ratelimit").as_deref(), Some(r#""proxy_share";r=0"#), "{words}");
        assert_eq!(world.metric("staunch_proxy_excess_total", "connections"), 1.0, "{words}");
        await_line(&log_file, &format!("{GREEDY} has 56 of {LINKS} connections to servers"));
        // The next client finds room, though not for more than the rest.
        let (_first, response) = tunnel(&world, OTHER, is_forwarded);
        assert_eq!(response.status, 101, "{words}");
        assert_eq!(tunnel(&world, GREEDY, is_forwarded).1.status, 429, "{words}");
        // Links that the one leaves the other may have, up to more than half of all.
        drop(greedy);
        let mut others: Vec<Client> = Vec::new();
        while others.len() < 32 {
            let (client, response) = tunnel(&world, OTHER, is_forwarded);
            if response.status == 101 {
                others.push(client);
            }
        }
        assert_eq!(tunnel(&world, OTHER, is_forwarded).1.status, 429, "{words}");
        assert_eq!(tunnel(&world, GREEDY, is_forwarded).1.status, 101, "{words}");
    }
}

#[test]
fn one_client_takes_no_more_than_its_share_of_a_line() {
    for io in ENGINES {
        let (truth, address) = application(Plan::default());
        let mut world = World::proxy(io, &[address], &["--proxy-limit", "1", "--proxy-patience", "1min"]);
        let ask = |world: &World, address: &str, path: &str| {
            let mut one = client(world, address, false);
            one.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            one
        };
        let at_work = ask(&world, GREEDY, "/stall");
        truth.await_counts(|counts| counts.requests_of("stall") == 1);
        let mut in_line = Vec::new();
        loop {
            in_line.push(ask(&world, GREEDY, "/ok"));
            let refused = world.await_line(in_line.len() as f64);
            if refused > 0.0 {
                break;
            }
        }
        let mut refused = in_line.pop().expect("the last one");
        assert_eq!(refused.read(false).status, 503, "{io}: nobody else was there");
        assert_eq!(ask(&world, GREEDY, "/ok").read(false).status, 503, "{io}");
        assert_eq!(world.metric("staunch_proxy_excess_total", ""), 0.0, "{io}");
        // Another client finds no place: from now on the one with all of them is told so.
        loop {
            assert_eq!(ask(&world, OTHER, "/ok").read(false).status, 503, "{io}: nobody is pushed out");
            let response = ask(&world, GREEDY, "/ok").read(false);
            if response.status == 429 {
                assert_eq!(response.value("retry-after").as_deref(), Some("1"), "{io}");
                break;
            }
            // More than a second has passed between both.
            assert_eq!(response.status, 503, "{io}");
        }
        assert!(world.metric("staunch_proxy_excess_total", "line") >= 1.0, "{io}");
        drop(at_work);
        for mut one in in_line {
            assert_eq!(one.read(false).status, 200, "{io}: those in line keep their places");
        }
        assert_eq!(ask(&world, GREEDY, "/ok").read(false).status, 200, "{io}");
    }
}
