//! Files, problems and conditions: the same answers as by HTTP/1.1, as windows and priorities have it.

use staunch_protocol::http2::PREFACE;
use staunch_tests::response::Response;

use crate::client::{
    Client, DATA, END_STREAM, INITIAL_WINDOW_SIZE, RST_STREAM, Reply, frame, get, request, window,
};
use crate::world::{ENGINES, World, say};

/// Asks by HTTP/1.1.
fn by_http1(world: &World, method: &str, path: &str, fields: &[(&str, &str)]) -> Response {
    let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{lines}\r\n");
    let bytes = say(world.address(), head.as_bytes());
    Response::read(&bytes, method == "HEAD").expect("an answer").expect("a whole one").0
}

/// What must be the same whatever is spoken: status, body, and these fields.
fn compare(what: &str, one: &Response, other: &Reply) {
    assert_eq!(one.status, other.status, "{what}");
    assert!(one.body == other.body, "{what}: {} and {} bytes", one.body.len(), other.body.len());
    for name in
        ["content-length", "content-type", "etag", "last-modified", "content-range", "location", "allow"]
    {
        assert_eq!(one.value(name).as_deref(), other.field(name), "{what}: {name}");
    }
    assert_eq!(other.field("server"), Some("staunch"), "{what}");
    assert!(other.field("date").is_some() && other.field("connection").is_none(), "{what}");
}

/// A method, a path, and fields.
type Asked<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

#[test]
fn answers_are_those_of_http1() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let etag = by_http1(&world, "GET", "/a.txt", &[]).value("etag").expect("a tag");
        let asked: &[Asked<'_>] = &[
            ("GET", "/a.txt", &[]),
            ("GET", "/", &[]),
            ("GET", "/sub", &[]),
            ("GET", "/empty.txt", &[]),
            ("GET", "/page.html", &[]),
            ("GET", "/big.bin", &[]),
            ("GET", "/absent", &[]),
            ("GET", "/absent", &[("accept", "application/json")]),
            ("GET", "/%zz", &[]),
            ("HEAD", "/page.html", &[]),
            ("HEAD", "/absent", &[]),
            ("GET", "/a.txt", &[("if-none-match", &etag)]),
            ("GET", "/a.txt", &[("if-match", "\"other\"")]),
            ("GET", "/big.bin", &[("range", "bytes=1000000-1999999")]),
            ("GET", "/big.bin", &[("range", "bytes=9999999-")]),
            ("POST", "/a.txt", &[]),
            ("OPTIONS", "/a.txt", &[]),
            ("BREW", "/a.txt", &[]),
        ];
        let mut client = Client::new(world.address());
        for (index, (method, path, fields)) in asked.iter().enumerate() {
            let stream = 2 * index as u32 + 1;
            client.send(&request(stream, true, method, path, fields));
            let one = by_http1(&world, method, path, fields);
            compare(&format!("{io}: {method} {path} {fields:?}"), &one, &client.reply(stream));
        }
        // The parts of several ranges are told apart by something made up each time.
        let ranges = [("range", "bytes=0-9,100-109")];
        client.send(&request(101, true, "GET", "/big.bin", &ranges));
        let (one, other) = (by_http1(&world, "GET", "/big.bin", &ranges), client.reply(101));
        assert_eq!((one.status, one.body.len()), (other.status, other.body.len()), "{io}");
        assert_eq!(world.metric("staunch_http2_connections_total"), 1);
        assert_eq!(world.metric("staunch_http2_requests_total"), asked.len() as u64 + 1);
    }
}

#[test]
fn every_split_of_the_first_bytes_is_understood() {
    let first = [&PREFACE[..], &frame(4, 0, 0, b""), &get(1, "/a.txt")].concat();
    for io in ENGINES {
        let world = World::new(io, &[]);
        for at in (1..first.len()).step_by(if io == "uring" { 1 } else { 7 }) {
            let mut client = Client::silent(world.address());
            client.send(&first[..at]);
            std::thread::yield_now();
            client.send(&first[at..]);
            assert_eq!(client.reply(1).body, b"hello, world\n", "{io}: split at {at}");
        }
        let mut client = Client::silent(world.address());
        first.iter().for_each(|byte| client.send(&[*byte]));
        assert_eq!(client.reply(1).status, 200, "{io}: byte by byte");
    }
}

/// A large answer goes out to the byte, however small the windows that are opened for it.
#[test]
fn answers_wait_for_windows() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut client = Client::with_settings(world.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
        client.opens_windows = false;
        client.send(&get(1, "/page.html"));
        client.until(1, |reply| reply.status == 200);
        assert!(client.get(3, "/empty.txt").is_whole, "{io}: an answer without a body needs no window");
        assert_eq!(client.heard(1).body.len(), 0, "{io}");
        let length = by_http1(&world, "GET", "/page.html", &[]).body.len();
        for opened in 1..=100 {
            client.send(&window(1, 1));
            client.until(1, |reply| reply.body.len() >= opened);
            assert_eq!(client.heard(1).body.len(), opened, "{io}");
        }
        // The window of the connection is 65 535 bytes, more than is left.
        client.send(&window(1, 1 << 20));
        let reply = client.reply(1);
        assert_eq!((reply.body.len(), reply.is_whole), (length, true), "{io}");
        client.send(&get(5, "/big.bin"));
        client.send(&window(5, 1 << 30));
        let left = 65_535 - length;
        client.until(5, |reply| reply.body.len() >= left);
        client.settle();
        assert_eq!(client.heard(5).body.len(), left, "{io}: no more than the connection's window");
        client.send(&window(0, 1 << 30));
        assert_eq!(client.reply(5).body.len(), 3_000_000, "{io}");
    }
}

#[test]
fn what_is_urgent_overtakes() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut client = Client::with_settings(world.address(), &[(INITIAL_WINDOW_SIZE, 1 << 30)]);
        client.opens_windows = false;
        client.send(&request(1, true, "GET", "/big.bin", &[("priority", "u=7")]));
        client.until(1, |reply| reply.body.len() == 65_535);
        client.send(&request(3, true, "GET", "/big.bin", &[("priority", "u=0")]));
        client.send(&request(5, true, "GET", "/big.bin", &[("priority", "u=0")]));
        client.settle();
        client.send(&window(0, 7_000_000));
        client.reply(3);
        client.reply(5);
        // What the windows leave goes to the first.
        client.until(1, |reply| reply.body.len() >= 65_535 + 1_000_000);
        client.settle();
        let lengths = [1, 3, 5].map(|stream| client.heard(stream).body.len());
        assert_eq!(lengths, [65_535 + 1_000_000, 3_000_000, 3_000_000], "{io}");
    }
}

#[test]
fn a_reset_takes_the_rest_of_an_answer_back() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut client = Client::new(world.address());
        client.opens_windows = false;
        client.send(&get(1, "/big.bin"));
        client.until(1, |reply| reply.body.len() == 65_535);
        client.send(&frame(RST_STREAM, 0, 1, &8u32.to_be_bytes()));
        client.send(&window(0, 1 << 20));
        client.settle();
        let heard = client.heard(1).body.len();
        client.opens_windows = true;
        assert_eq!(client.get(3, "/a.txt").body, b"hello, world\n", "{io}");
        assert_eq!(client.heard(1).body.len(), heard, "{io}: nothing comes behind the reset");
        assert_eq!(world.metric("staunch_http2_resets_total"), 1, "{io}");
    }
}

/// The bodies that nobody wants are taken for a while and thrown away, and the connection goes on.
#[test]
fn bodies_that_nobody_wants() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut client = Client::new(world.address());
        client.send(&request(1, false, "POST", "/a.txt", &[("content-length", "100000")]));
        let reply = client.reply(1);
        assert_eq!((reply.status, reply.is_whole), (405, true), "{io}");
        client.send(&frame(DATA, 0, 1, &[b'x'; 16_384]));
        client.settle();
        assert_eq!(client.heard(1).reset, None, "{io}: not in one breath with the answer");
        client.send(&request(3, false, "POST", "/a.txt", &[]));
        client.send(&frame(DATA, END_STREAM, 3, b"a=b"));
        assert_eq!(client.reply(3).status, 405, "{io}");
        // That no more is wanted is said in the end, of the one that has not ended.
        client.until(1, |reply| reply.reset == Some(0));
        client.settle();
        assert_eq!(client.heard(3).reset, None, "{io}");
        assert_eq!(client.get(5, "/a.txt").status, 200, "{io}");
    }
}

#[test]
fn the_preface_is_for_the_beginning_and_may_be_refused() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let late = [b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n", &PREFACE[..]].concat();
        let text = String::from_utf8_lossy(&say(world.address(), &late)).into_owned();
        assert!(text.contains("hello, world") && text.contains("HTTP/1.1 505 "), "{io}: {text}");
        drop(world);
        let world = World::new(io, &["--http2", "off"]);
        let text = String::from_utf8_lossy(&say(world.address(), PREFACE)).into_owned();
        assert!(text.starts_with("HTTP/1.1 505 ") && text.contains("Connection: close"), "{io}: {text}");
        assert_eq!(world.metric("staunch_http2_connections_total"), 0, "{io}");
    }
}
