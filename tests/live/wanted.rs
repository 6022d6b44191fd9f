//! What readers want made, in whatever forms and codings: it keeps no publisher out, and is made once.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::restart::metric;
use crate::socket::TestSocket;
use crate::world::{ENGINES, Reply, World, connect, publisher};

/// A value that no compressor makes much shorter.
fn drawn_value(bytes: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b' ' + (state >> 58) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// A reader of a stream in one of its forms; it is read until so many bytes came.
fn stream_of(world: &World, query: &str, version: &str, coding: &str, bytes: usize) -> TcpStream {
    let mut stream = connect(world.address());
    let head = format!("GET /events?{query} HTTP/{version}\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a server that reads");
    stream.read_exact(&mut vec![0; bytes]).expect("the values");
    stream
}

#[test]
fn forms_that_readers_want_keep_no_publisher_out() {
    const VALUES: usize = 24;
    const VALUE_BYTES: usize = 20_000;
    const MEMORY_BYTES: u64 = 1 << 20;
    for io in ENGINES {
        let world = World::new(io, &["--live-memory", "1MiB", "--admin", "127.0.0.1:0"]);
        let value = drawn_value(VALUE_BYTES);
        let put = |topic: &str, value: &[u8]| {
            world.ask("PUT", &format!("/topics/{topic}"), &publisher("text/plain"), value).status
        };
        (0..VALUES).for_each(|number| assert_eq!(put(&format!("t{number}"), &value), 200));
        // All of them in every form would be six times the bound.
        let topics: Vec<String> = (0..VALUES).map(|number| format!("topic=t{number}")).collect();
        let query = topics.join("&");
        let mut streams = Vec::new();
        let most = VALUES * VALUE_BYTES / 2;
        for shape in ["", "&plain=1"] {
            for version in ["1.1", "1.0"] {
                for coding in ["identity", "gzip", "zstd"] {
                    streams.push(stream_of(&world, &format!("{query}{shape}"), version, coding, most));
                }
            }
        }
        let sockets: Vec<TestSocket> = ["", "Sec-WebSocket-Extensions: permessage-deflate\r\n"]
            .map(|offer| {
                let mut socket = TestSocket::open(world.address(), &format!("/ws?{query}"), offer);
                assert!(socket.text().contains("\"connect\""), "the welcome");
                (0..VALUES).for_each(|_| assert!(socket.data().is_string()));
                socket
            })
            .into();
        assert_eq!(put("new", b"x"), 200, "{io}: a topic more");
        assert_eq!(put("t0", &drawn_value(VALUE_BYTES + 5000)), 200, "{io}: a longer value");
        assert_eq!(put("t1", b"short"), 200, "{io}");
        // A reader that comes then gets all that it asks for, and those before it hear of the update.
        let mut late = world.read(&format!("{query}&plain=1"), "");
        (0..VALUES).for_each(|_| assert!(!late.data().is_empty()));
        for mut socket in sockets {
            let texts: Vec<usize> = (0..2).map(|_| socket.data().as_str().map_or(0, str::len)).collect();
            assert_eq!(texts, [VALUE_BYTES + 5000, 5], "{io}");
        }
        let admin = world.server.admin_address();
        // What was made for the last letter goes when the clock is looked at.
        staunch_tests::house::waiting::until("memory is bounded", || {
            metric(admin, "staunch_live_memory_bytes") <= MEMORY_BYTES
        });
    }
}

/// Sends another request on a connection, and gives its answer.
fn ask_again(stream: &mut TcpStream, path: &str) -> Reply {
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a server that reads");
    Reply::next(stream)
}

/// Each spelling was once a document of its own, compressed anew.
#[test]
fn a_polled_value_is_coded_once_however_its_name_is_written() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        world.put("scores", &"a value that is long enough ".repeat(100));
        let mut stream = connect(world.address());
        let is_coded = |reply: &Reply| reply.field("content-encoding") == Some("gzip");
        // Asked for as often as it takes the writer to make it.
        while !is_coded(&ask_again(&mut stream, "/live/scores")) {}
        for path in
            ["/live/%73cores", "/live/s%63ores", "/live/%73%63%6f%72%65%73", "/live/%73%63%6F%72%65%73"]
        {
            let reply = ask_again(&mut stream, path);
            assert!(is_coded(&reply), "{io} {path}: {reply:?}");
        }
    }
}

/// Polls of many values in every coding are answered, and so is who publishes meanwhile.
#[test]
fn a_flood_of_polls_leaves_publishers_their_turn() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let topics = 40;
        let value = String::from_utf8(drawn_value(30_000)).expect("letters");
        (0..topics).for_each(|number| world.put(&format!("t{number}"), &value));
        let address = world.address();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = connect(address);
                let mut number = 0;
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    number += 1;
                    let topic = number % topics;
                    let heads = ["gzip", "gzip", "zstd", "zstd"].map(|coding| {
                        let line = format!("GET /live/t{topic} HTTP/1.1\r\nHost: a\r\n");
                        format!("{line}If-None-Match: *\r\nAccept-Encoding: {coding}\r\n\r\n")
                    });
                    stream.write_all(heads.concat().as_bytes()).expect("a server that reads");
                    (0..heads.len()).for_each(|_| assert_eq!(Reply::next(&mut stream).status, 304));
                }
            });
            // Each value makes all codings of its topic be wished for anew.
            for update in 0..200 {
                world.put(&format!("t{}", update % topics), &format!("{update}{value}"));
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}

#[test]
fn json_that_is_sent_as_a_form_is_told_and_line_ends_of_documents_go() {
    let world = World::new("epoll", &[]);
    let form = publisher("application/x-www-form-urlencoded");
    let refused = world.ask("POST", "/publish", &form, br#"{"topic":"scores","data":1}"#);
    assert_eq!(refused.status, 400);
    let told = "this looks like JSON sent as a form: it needs `Content-Type: application/json`";
    assert!(refused.text().contains(told), "{refused:?}");
    let json = publisher("application/json");
    assert_eq!(world.ask("PUT", "/topics/a", &json, b"{\"a\":1}\n").status, 200);
    let mut events = world.read("topic=a", "");
    assert_eq!(events.data(), r#"{"topic":"a","data":{"a":1}}"#);
    assert_eq!(world.ask("GET", "/live/a", "", b"").text(), r#"{"a":1}"#);
}
