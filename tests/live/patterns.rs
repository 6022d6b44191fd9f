//! Patterns from strangers, and what readers make the server hold: bounded, in steps, and counted.

use std::net::SocketAddr;

use serde_json::Value;
use staunch_tests::house::waiting::until;

use crate::socket::TestSocket;
use crate::world::{ENGINES, TOKEN, World, ask_host, publisher};

/// What connections of all workers hold, as it is told.
fn held_bytes(admin: SocketAddr) -> u64 {
    let text = ask_host(&admin.to_string(), admin, "GET", "/metrics", "", b"").text();
    let lines = text.lines().filter(|line| line.starts_with("staunch_memory_held_bytes"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn a_regular_expression_needs_a_right_and_has_a_bound() {
    let path = |pattern: &str| format!("/.well-known/mercure?match_urlpattern={pattern}");
    for io in ENGINES {
        let world = World::new(io, &[]);
        let refused = world.ask("GET", &path("https://a.b/:id(%5Cd%2B)"), "", b"");
        assert_eq!(refused.status, 400, "{io}: {refused:?}");
        assert!(refused.text().contains("needs a token that grants this very pattern"), "{refused:?}");
        let lines = format!("Authorization: Bearer {TOKEN}\r\n");
        let large = world.ask("GET", &path("a:///(%5Cw%7B200%7D)"), &lines, b"");
        assert_eq!(large.status, 400, "{io}: {large:?}");
        assert!(large.text().contains("more than 16384 bytes"), "{large:?}");
        let mut events = world.read_at("a", &path("https://a.b/:id(%5Cd%2B)"), &lines).begin();
        world.put("https:%2F%2Fa.b%2Fx", "no digit");
        world.put("https:%2F%2Fa.b%2F12", "digits");
        assert_eq!(events.data(), "digits", "{io}");
        let many = "match_urlpattern=a:///(%5Cw%7B200%7D)&".repeat(240);
        let refused = world.ask("HEAD", &format!("/.well-known/mercure?{many}"), "", b"");
        assert!([400, 414, 431].contains(&refused.status), "{io}: {refused:?}");
    }
}

#[test]
fn a_new_pattern_is_compared_in_steps_and_its_reader_lacks_nothing() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let lines: String = (0..9000)
            .map(|number| format!("{{\"topic\":\"board.{number}.x\",\"data\":\"{number}\"}}\n"))
            .collect();
        let answer =
            world.ask("POST", "/publish?quiet", &publisher("application/x-ndjson"), lines.as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        let mut events = world.read("topic=board.*.none&topic=board.8999.*&plain=1", "");
        assert_eq!(events.data(), "8999", "{io}");
        world.put("board.8999.y", "later");
        assert_eq!(events.data(), "later", "{io}");
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        socket.subscribe("board.77.*", "");
        assert_eq!(socket.data(), "77", "{io}");
        world.put("board.77.y", "later");
        assert_eq!(socket.data(), "later", "{io}");
    }
}

#[test]
fn a_websocket_has_its_share_of_patterns() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        for number in 0..64 {
            socket.subscribe(&format!("a{number}.*"), "");
        }
        let ask = |name: &str| format!("\"subscribe\":{{\"channel\":{name:?}}}");
        assert_eq!(socket.ask(&ask("b.*"))["error"]["code"], 106, "{io}");
        socket.subscribe("b.c", "");
        socket.ask("\"unsubscribe\":{\"channel\":\"a7.*\"}");
        socket.subscribe("b.*", "");
        let mut events = world.read("topic=news.*", "");
        world.put("news.1", "new");
        assert_eq!(serde_json::from_str::<Value>(&events.data()).unwrap()["data"], "new", "{io}");
    }
}

#[test]
fn what_a_websocket_subscribes_to_is_counted() {
    for io in ENGINES {
        let world = World::new(io, &["--admin", "127.0.0.1:0"]);
        let admin = world.server.admin_address();
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        socket.subscribe("first", "");
        let before_bytes = held_bytes(admin);
        let name = |number: u64| format!("{number:04}-{}", "x".repeat(245));
        (0..999).for_each(|number| drop(socket.subscribe(&name(number), "")));
        let ask = format!("\"subscribe\":{{\"channel\":{:?}}}", name(999));
        assert_eq!(socket.ask(&ask)["error"]["code"], 106, "{io}: a thousand and no more");
        until("its names are counted", || held_bytes(admin) - before_bytes > 300_000);
        world.put(&name(7), "seven");
        assert_eq!(socket.data(), "seven", "{io}");
        for number in 0..999 {
            socket.ask(&format!("\"unsubscribe\":{{\"channel\":{:?}}}", name(number)));
        }
        until("they are counted no more", || held_bytes(admin) < before_bytes + 30_000);
        world.put("first", "again");
        assert_eq!(socket.data(), "again", "{io}");
    }
}

#[test]
fn what_a_stream_asks_for_is_counted_by_http1_and_stays_so_for_whoever_is_left() {
    for io in ENGINES {
        let world = World::new(io, &["--admin", "127.0.0.1:0"]);
        let admin = world.server.admin_address();
        let names: Vec<String> =
            (0..30).map(|number| format!("topic={number}-{}", "x".repeat(200))).collect();
        let query = names.join("&");
        let first = world.read(&query, "").begin();
        let second = world.read(&query, "").begin();
        until("it is counted", || held_bytes(admin) > 14_000);
        // The second asks for the same; it has the account alone now.
        drop(first);
        until("it stays counted", || {
            let bytes = held_bytes(admin);
            world.has_readers(names[3].strip_prefix("topic=").unwrap(), 1) && bytes > 8_000
        });
        drop(second);
        until("it is counted no more", || held_bytes(admin) < 6_000);
    }
}
