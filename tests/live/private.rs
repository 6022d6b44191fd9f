//! What is private is told to who may read it; others learn neither that it is there nor when it changes.

use std::io::Write as _;

use staunch_protocol::event_stream::EventReader;

use crate::socket::{TestSocket, handshake, upgrade_lines};
use crate::world::{ENGINES, Reply, TOKEN, World, connect, publisher};

const RULE: &str = "live_topic = [{ match = \"p.*\", private = true }]";

fn publish_private(world: &World, topic: &str, value: &str) -> String {
    world.publish(&format!("{{\"topic\":\"{topic}\",\"data\":\"{value}\",\"private\":true}}"))
}

/// What an answer says, but for the moment it was given.
fn said(reply: &Reply) -> (u16, String, Option<&str>) {
    (reply.status, reply.text(), reply.field("www-authenticate"))
}

#[test]
fn what_is_private_looks_as_if_it_were_not_there() {
    for io in ENGINES {
        let world = World::with_settings(io, &[], RULE);
        let version = publish_private(&world, "secret", "1");
        for query in ["", "?after=0-0", "?after=1-1&wait=0", "?after=x"] {
            for method in ["GET", "HEAD"] {
                let [there, absent] = ["secret", "nothing"]
                    .map(|topic| world.ask(method, &format!("/live/{topic}{query}"), "", b""));
                assert_eq!(said(&there), said(&absent), "{io} {method} {query}");
                assert_eq!((there.status, there.field("www-authenticate")), (404, Some("Bearer")));
            }
        }
        let wrong = "Authorization: Bearer wrong\r\n";
        let [there, absent] =
            ["secret", "nothing"].map(|topic| world.ask("GET", &format!("/live/{topic}"), wrong, b""));
        assert_eq!((there.status, said(&there)), (401, said(&absent)), "{io}");
        let own = format!("Authorization: Bearer {TOKEN}\r\n");
        assert_eq!(world.ask("GET", "/live/secret", &own, b"").text(), "1", "{io}");
        // What a rule makes private is refused whether or not it is there, and before anything waits.
        world.put("p.there", "1");
        for topic in ["p.there", "p.not"] {
            for path in [format!("/live/{topic}"), format!("/live/{topic}?after={version}&wait=55")] {
                let refused = world.ask("GET", &path, "", b"");
                assert_eq!(
                    (refused.status, refused.field("www-authenticate")),
                    (401, Some("Bearer")),
                    "{path}"
                );
            }
            let events = world.ask("GET", &format!("/events?topic=a&topic={topic}"), "", b"");
            assert_eq!((events.status, events.field("www-authenticate")), (401, Some("Bearer")), "{topic}");
            let line = format!("GET /ws?topic={topic} HTTP/1.1");
            let (_, head, _) = handshake(world.address(), &line, &upgrade_lines());
            assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
        }
    }
}

/// Centrifugo's code for it, whether or not there is something; patterns and other topics are read as before.
#[test]
fn a_channel_that_a_rule_makes_private_is_denied() {
    for io in ENGINES {
        let world = World::with_settings(io, &[], RULE);
        world.put("p.there", "1");
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        for channel in ["p.there", "p.not"] {
            for ask in ["subscribe", "history"] {
                let reply = socket.ask(&format!("\"{ask}\":{{\"channel\":\"{channel}\"}}"));
                assert_eq!(reply["error"]["code"], 103, "{io} {ask} {channel}: {reply}");
                assert_eq!(reply["error"]["message"], "permission denied");
            }
        }
        assert!(socket.subscribe("p.*", "")["epoch"].is_string());
        let own = format!("Authorization: Bearer {TOKEN}\r\n");
        let mut socket = TestSocket::connect(world.address(), "/ws", &own);
        socket.subscribe("p.there", "");
        assert_eq!(socket.data(), "1", "{io}");
    }
}

/// The poll waits on through a private update, which it may not read, and is answered by the next one.
#[test]
fn a_private_update_ends_no_poll_of_who_may_not_read_it() {
    for io in ENGINES {
        let world = World::new(io, &["--admin", "127.0.0.1:0"]);
        let version = publish_private(&world, "secret", "1");
        let waiting = |own: &str| {
            let mut stream = connect(world.address());
            let path = format!("/live/secret?after={version}&wait=55");
            let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{own}\r\n");
            stream.write_all(head.as_bytes()).expect("a server that reads");
            stream
        };
        let (anybody, owner) = (waiting(""), waiting(&format!("Authorization: Bearer {TOKEN}\r\n")));
        let polls = "staunch_live_readers{transport=\"longpoll\"}";
        let admin = world.server.admin_address();
        staunch_tests::house::waiting::until("both wait", || crate::restart::metric(admin, polls) == 2);
        publish_private(&world, "secret", "2");
        assert_eq!(Reply::read(owner).text(), "2", "{io}");
        world.put("secret", "3");
        let reply = Reply::read(anybody);
        assert_eq!((reply.status, reply.text()), (200, "3".to_owned()), "{io}");
    }
}

#[test]
fn a_stream_says_that_private_updates_may_be_left_out() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let begins = |query: &str, lines: &str| {
            let mut events = world.read(query, lines);
            let begin = events.beginning();
            (events, begin)
        };
        let own = format!("Authorization: Bearer {TOKEN}\r\n");
        let told = ": private updates are left out";
        for (query, lines, is_told) in
            [("topic=a", "", true), ("topic=a.*", "", true), ("topic=a&topic=b.*", &own[..], false)]
        {
            let (_, begin) = begins(query, lines);
            assert_eq!(begin.contains(told), is_told, "{io} {query}: {begin}");
            let mut reader = EventReader::new();
            reader.read(begin.as_bytes(), |event| panic!("{event:?}")).expect("a stream of events");
            assert!(reader.retry_ms().is_some());
        }
        // The end of a private value is private as well.
        let (mut events, _) = begins("topic=a&plain=1", "");
        publish_private(&world, "a", "secret");
        assert_eq!(world.ask("DELETE", "/topics/a", &publisher("text/plain"), b"").status, 200);
        world.put("a", "open");
        assert_eq!(events.data(), "open", "{io}");
    }
}
