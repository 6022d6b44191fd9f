//! Exchanges that go on: bodies of requests, and live data, several on one connection.

use crate::client::{Client, DATA, END_STREAM, HEADERS, RST_STREAM, block, frame, request};
use crate::world::{ENGINES, World};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// A file of settings that switches live data on.
const SETTINGS: &str = "live = true\npublish_token = \"0123456789abcdef0123456789abcdef\"\n";

fn live(io: &str) -> World {
    World::with_settings(io, SETTINGS, &[])
}

fn bearer() -> String {
    format!("Bearer {TOKEN}")
}

/// Begins to publish: the body follows.
fn publish(stream: u32, method: &str, path: &str, kind: &str, length: Option<usize>) -> Vec<u8> {
    let (bearer, length) = (bearer(), length.map(|length| length.to_string()));
    let mut fields = vec![("authorization", &bearer[..]), ("content-type", kind)];
    fields.extend(length.as_deref().map(|length| ("content-length", length)));
    request(stream, false, method, path, &fields)
}

/// Waits until the body of a stream contains this.
fn until_heard(client: &mut Client, stream: u32, text: &str) {
    while !String::from_utf8_lossy(&client.heard(stream).body).contains(text) {
        assert!(client.next().is_some(), "closed before {text:?}: {:?}", client.heard(stream));
    }
}

#[test]
fn readers_and_publishers_share_a_connection() {
    for io in ENGINES {
        let world = live(io);
        let mut client = Client::new(world.address());
        for (stream, topic) in [(1, "a"), (3, "b"), (5, "a")] {
            client.send(&request(stream, true, "GET", &format!("/events?topic={topic}"), &[]));
            until_heard(&mut client, stream, "retry: ");
            let reply = client.heard(stream);
            assert_eq!((reply.status, reply.field("content-type")), (200, Some("text/event-stream")), "{io}");
            assert!(!reply.is_whole && reply.field("transfer-encoding").is_none(), "{io}");
        }
        let body = br#"{"topic": "a", "data": "one"}"#;
        client.send(&publish(7, "POST", "/publish", "application/json", Some(body.len())));
        client.send(&frame(DATA, END_STREAM, 7, body));
        assert_eq!(client.reply(7).status, 200, "{io}: {:?}", client.heard(7));
        until_heard(&mut client, 1, "one");
        until_heard(&mut client, 5, "one");
        client.send(&publish(9, "PUT", "/topics/b", "text/plain", None));
        client.send(&frame(DATA, 0, 9, b"tw"));
        client.send(&frame(DATA, END_STREAM, 9, b"o"));
        assert_eq!(client.reply(9).status, 200, "{io}: {:?}", client.heard(9));
        until_heard(&mut client, 3, "two");
        assert!(!String::from_utf8_lossy(&client.heard(3).body).contains("one"), "{io}");
        // No chunk is framed.
        let text = String::from_utf8(client.heard(3).body).expect("text");
        assert!(text.lines().all(|line| line.is_empty() || line.contains(':')), "{io}: {text}");
        assert_eq!(client.get(11, "/live/b").body, b"two", "{io}");
        // The reader on stream 1 leaves, the others stay.
        client.send(&frame(RST_STREAM, 0, 1, &8u32.to_be_bytes()));
        world.until_metric("staunch_live_readers{transport=\"sse\"}", 2);
        drop(client);
        world.until_metric("staunch_live_readers{transport=\"sse\"}", 0);
    }
}

/// A poll that waits for the next update, and one that waits in vain for its peer.
#[test]
fn polls_wait_for_mail() {
    for io in ENGINES {
        let world = live(io);
        let mut client = Client::new(world.address());
        client.send(&publish(1, "PUT", "/topics/a", "text/plain", Some(3)));
        client.send(&frame(DATA, END_STREAM, 1, b"old"));
        let tag = client.reply(1).field("etag").expect("a version").to_owned();
        let path = format!("/live/a?wait=50&after={}", tag.trim_matches('"'));
        client.send(&request(3, true, "GET", &path, &[]));
        client.send(&request(5, true, "GET", &path, &[]));
        client.settle();
        assert!(client.heard(3).status == 0 && client.heard(5).status == 0, "{io}: they wait");
        client.send(&frame(RST_STREAM, 0, 5, &8u32.to_be_bytes()));
        client.send(&publish(7, "PUT", "/topics/a", "text/plain", Some(3)));
        client.send(&frame(DATA, END_STREAM, 7, b"new"));
        let reply = client.reply(3);
        assert_eq!((reply.status, &reply.body[..]), (200, &b"new"[..]), "{io}");
        assert_eq!(client.heard(5).status, 0, "{io}: nobody answers what was taken back");
    }
}

/// Lines are read as they come, and answered while more come.
#[test]
fn a_feed_is_answered_line_by_line() {
    for io in ENGINES {
        let world = live(io);
        let mut client = Client::new(world.address());
        client.send(&publish(1, "POST", "/publish", "application/x-ndjson", None));
        for number in 0..50 {
            let line = format!("{{\"topic\": \"n\", \"data\": {number}}}\n");
            client.send(&frame(DATA, 0, 1, line.as_bytes()));
            while client.heard(1).body.iter().filter(|byte| **byte == b'\n').count() <= number {
                assert!(client.next().is_some(), "{io}: closed");
            }
        }
        client.send(&frame(DATA, END_STREAM, 1, b""));
        let reply = client.reply(1);
        assert_eq!((reply.status, reply.is_whole), (200, true), "{io}");
        assert_eq!(client.get(3, "/live/n").body, b"49", "{io}");
    }
}

/// Bodies above the limit are answered 413, whether their length is told or not; what waits for 100 gets it.
#[test]
fn bodies_have_a_limit() {
    for io in ENGINES {
        let world = live(io);
        let mut client = Client::new(world.address());
        client.send(&publish(1, "PUT", "/topics/a", "text/plain", Some(1 << 30)));
        assert_eq!(client.reply(1).status, 413, "{io}");
        client.send(&publish(3, "PUT", "/topics/a", "text/plain", None));
        let mut sent = 0;
        while client.heard(3).status == 0 && sent < 16 << 20 {
            client.send(&frame(DATA, 0, 3, &[b'x'; 8_192]));
            sent += 8_192;
            client.settle();
        }
        assert_eq!(client.reply(3).status, 413, "{io}: after {sent} bytes");
        let bearer = bearer();
        let fields =
            [("authorization", &bearer[..]), ("content-type", "text/plain"), ("expect", "100-continue")];
        client.send(&request(5, false, "PUT", "/topics/a", &fields));
        while client.heard(5).status != 100 {
            assert!(client.next().is_some(), "{io}: closed");
        }
        client.send(&frame(DATA, END_STREAM, 5, b"awaited"));
        while !client.heard(5).is_whole {
            assert!(client.next().is_some(), "{io}: closed");
        }
        assert_eq!(client.heard(5).status, 200, "{io}");
        assert_eq!(client.get(7, "/live/a").body, b"awaited", "{io}");
    }
}

/// A body that stops coming ends its stream, not the connection.
#[test]
fn a_body_that_stops_is_given_up() {
    for io in ENGINES {
        let world = live(io);
        let mut client = Client::new(world.address());
        client.send(&request(1, true, "GET", "/events?topic=a", &[]));
        client.send(&publish(3, "PUT", "/topics/a", "text/plain", Some(10)));
        client.send(&frame(DATA, 0, 3, b"half"));
        client.half_close();
        client.ends();
        let reset = client.heard(3).reset;
        assert!(client.heard(3).status == 0 || reset.is_some(), "{io}: {:?}", client.heard(3));
        world.until_metric("staunch_live_readers{transport=\"sse\"}", 0);
    }
}

/// Bodies that are not as announced, and trailers that are none: each costs its stream alone.
#[test]
fn bodies_that_break_the_rules_are_reset() {
    const PROTOCOL_ERROR: u32 = 1;
    const END_HEADERS: u8 = 4;
    let bad = [
        ("shorter", DATA, END_STREAM, b"four".to_vec()),
        ("longer", DATA, 0, b"sixsix".to_vec()),
        ("fields amid it", HEADERS, END_HEADERS, block(&[("x", "y")])),
        ("a path behind it", HEADERS, END_HEADERS | END_STREAM, block(&[(":path", "/")])),
    ];
    for io in ENGINES {
        let world = live(io);
        let mut client = Client::new(world.address());
        for (stream, (what, kind, flags, payload)) in (1..).step_by(2).zip(&bad) {
            client.send(&publish(stream, "PUT", "/topics/a", "text/plain", Some(5)));
            client.send(&frame(*kind, *flags, stream, payload));
            assert_eq!(client.reply(stream).reset, Some(PROTOCOL_ERROR), "{io}: {what}");
        }
        client.send(&publish(9, "PUT", "/topics/a", "text/plain", Some(5)));
        client.send(&frame(DATA, END_STREAM, 9, b"right"));
        assert_eq!(client.reply(9).status, 200, "{io}");
        assert_eq!(client.get(11, "/live/a").body, b"right", "{io}: nothing of the others was published");
    }
}
