//! Peers that do what is odd: each costs little and hinders nobody.

use std::io::Write as _;
use std::net::TcpStream;

use staunch_protocol::http2::PREFACE;

use crate::client::{
    Client, DATA, END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, PING, RST_STREAM, SETTINGS, block, frame,
    get, request, window,
};
use crate::world::{ENGINES, World, say};

const ENHANCE_YOUR_CALM: u32 = 0xb;
const PROTOCOL_ERROR: u32 = 1;
const CONTINUATION: u8 = 9;
const PRIORITY_UPDATE: u8 = 0x10;

/// The server still answers others.
fn serves(world: &World, what: &str) {
    assert_eq!(Client::new(world.address()).get(1, "/a.txt").body, b"hello, world\n", "{what}");
}

/// More than any flood may have.
const FRAMES: u32 = 40_000;

/// Sends what one makes of the number of a stream so often, or until the connection ends.
fn flood(world: &World, what: &str, times: u32, make: impl Fn(u32) -> Vec<u8>) -> Option<u32> {
    let mut client = Client::new(world.address());
    client.opens_windows = false;
    let bytes: Vec<u8> = (0..times).flat_map(|number| make(2 * number + 1)).collect();
    client.send(&bytes);
    client.ends();
    serves(world, what);
    client.goaway()
}

#[test]
fn floods_end_calmly() {
    let reset = |stream| frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
    for io in ENGINES {
        let world = World::new(io, &[]);
        // CVE-2023-44487: each is answered, and costs more than its answer earns.
        let calm = |what, times, make: &dyn Fn(u32) -> Vec<u8>| {
            assert_eq!(flood(&world, what, times, make), Some(ENHANCE_YOUR_CALM), "{io}: {what}");
        };
        calm("rapid reset", 6_000, &|stream| [get(stream, "/a.txt"), reset(stream)].concat());
        calm("rapid reset of large answers", 6_000, &|stream| {
            [get(stream, "/big.bin"), reset(stream)].concat()
        });
        // CVE-2025-8671: we are made to reset.
        calm("made to reset by an empty window", 2_000, &|stream| {
            [get(stream, "/big.bin"), window(stream, 0)].concat()
        });
        calm("made to reset by a malformed request", 2_000, &|stream| {
            request(stream, true, "GET", "/a.txt", &[("connection", "close")])
        });
        calm("pings", FRAMES, &|_| frame(PING, 0, 0, b"12345678"));
        calm("settings", FRAMES, &|_| frame(SETTINGS, 0, 0, b""));
        calm("priorities", FRAMES, &|_| frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1"));
        calm("unknown frames", FRAMES, &|_| frame(0x77, 0, 0, b""));
        assert_eq!(world.metric("staunch_http2_calmed_total"), 8, "{io}");
    }
}

#[test]
fn empty_data_ends_calmly() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let goaway = flood(&world, "empty data", FRAMES, |stream| match stream {
            1 => [request(1, false, "POST", "/a.txt", &[]), frame(DATA, 0, 1, b"")].concat(),
            _ => frame(DATA, 0, 1, b""),
        });
        assert_eq!(goaway, Some(ENHANCE_YOUR_CALM), "{io}");
    }
}

/// CVE-2024-27316: a block of fields that has no end.
#[test]
fn a_block_without_an_end_is_cut_off() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        for piece in [&b""[..], &[b'x'; 100], &[0; 16_384]] {
            let goaway = flood(&world, "continuation", 2_000, |stream| match stream {
                1 => frame(HEADERS, 0, 1, &block(&[(":method", "GET")])),
                _ => frame(CONTINUATION, 0, 1, piece),
            });
            assert!(matches!(goaway, Some(ENHANCE_YOUR_CALM)), "{io}: {goaway:?}");
        }
    }
}

/// CVE-2016-6581: a field of 4 000 bytes in the table, named thousands of times by a byte each.
#[test]
fn a_bomb_of_fields_is_not_unpacked() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut client = Client::new(world.address());
        let value = [b'x'; 3_900];
        // A literal that is added to the table: name of 1 byte, value of 127 + 3 773 bytes.
        let mut bomb =
            block(&[(":method", "GET"), (":scheme", "http"), (":path", "/a.txt"), (":authority", "a")]);
        bomb.extend_from_slice(&[0x40, 1, b'x', 127, (3_773 & 127) as u8 | 0x80, (3_773 >> 7) as u8]);
        bomb.extend_from_slice(&value);
        let entry = 0x80 | 62;
        bomb.extend_from_slice(&[entry; 20]);
        client.send(&frame(HEADERS, 5, 1, &bomb));
        assert_eq!(client.reply(1).status, 431, "{io}: too large, and the connection goes on");
        assert_eq!(client.get(3, "/a.txt").status, 200, "{io}");
        let whole = block(&[(":method", "GET")]);
        client.send(&frame(HEADERS, 5, 5, &[&whole[..], &[entry; 10_000]].concat()));
        client.ends();
        assert_eq!(client.goaway(), Some(ENHANCE_YOUR_CALM), "{io}: so much is not even read");
        serves(&world, "a bomb");
    }
}

/// CVE-2019-9511 and -9517: large answers, and windows that never open. What waits is a reference.
#[test]
fn answers_that_nobody_takes_cost_little() {
    const CLIENTS: u64 = 20;
    const STREAMS: u32 = 100;
    for io in ENGINES {
        let world = World::new(io, &["--send-timeout", "2s"]);
        let mut clients: Vec<Client> = (0..CLIENTS)
            .map(|_| {
                let mut client = Client::with_settings(world.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
                let asked: Vec<u8> = (0..STREAMS).flat_map(|at| get(2 * at + 1, "/big.bin")).collect();
                client.send(&asked);
                client.settle();
                client
            })
            .collect();
        let held_bytes = world.metric("staunch_memory_held_bytes{worker=\"0\"}");
        let waiting = CLIENTS * u64::from(STREAMS);
        // Heads that were written are held until their sending is reported, be it after they have come.
        let written_bytes = CLIENTS * 16 * 1024;
        assert!(held_bytes < waiting * 400 + written_bytes, "{io}: {held_bytes} bytes for {waiting} answers");
        // After the send timeout each is reset, and nothing is left.
        for client in &mut clients {
            assert_eq!(client.reply(2 * STREAMS - 1).reset, Some(8), "{io}");
        }
        serves(&world, "windows that never open");
        drop(clients);
        world.until_metric("staunch_connections{state=\"idle\"}", 0);
    }
}

/// A stream above the number that may wait is refused so that it may be sent again.
#[test]
fn too_many_at_a_time_are_told_to_come_again() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let mut client = Client::with_settings(world.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
        let asked: Vec<u8> = (0..101).flat_map(|at| get(2 * at + 1, "/a.txt")).collect();
        client.send(&asked);
        assert_eq!(client.reply(201).reset, Some(7), "{io}: REFUSED_STREAM");
        assert_eq!(world.metric("staunch_http2_refused_total"), 1, "{io}");
    }
}

#[test]
fn what_breaks_the_rules_ends_with_a_reason() {
    let cases: &[(&str, Vec<u8>, u32)] = &[
        ("an even stream", get(2, "/a.txt"), PROTOCOL_ERROR),
        ("a lower stream", [get(5, "/a.txt"), get(3, "/a.txt")].concat(), PROTOCOL_ERROR),
        ("data on an idle stream", frame(DATA, END_STREAM, 1, b"x"), PROTOCOL_ERROR),
        ("settings of five bytes", frame(SETTINGS, 0, 0, b"12345"), 6),
        ("a window above all", window(0, 0x7fff_ffff), 3),
        ("a bad block", frame(HEADERS, 5, 1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), 9),
        ("a frame that is too long", [&[0, 0x40, 1, DATA, 0, 0, 0, 0, 1][..], &[0; 100]].concat(), 6),
        ("a goaway of three bytes", frame(GOAWAY, 0, 0, b"123"), 6),
    ];
    for io in ENGINES {
        let world = World::new(io, &[]);
        for (what, bytes, code) in cases {
            let mut client = Client::new(world.address());
            client.send(bytes);
            client.ends();
            assert_eq!(client.goaway(), Some(*code), "{io}: {what}");
        }
        // What is no preface is no HTTP/2, and a first frame that is not SETTINGS ends it.
        let mut client = Client::silent(world.address());
        client.send(&[&PREFACE[..], &frame(PING, 0, 0, b"12345678")].concat());
        client.ends();
        assert_eq!(client.goaway(), Some(PROTOCOL_ERROR), "{io}");
        serves(&world, "all of these");
    }
}

/// Half a preface, half a frame, half a block: each has the time that a head has.
#[test]
fn what_stops_half_way_is_given_up() {
    let hello = [&PREFACE[..], &frame(SETTINGS, 0, 0, b"")].concat();
    let half_frame = [&hello[..], &get(1, "/a.txt")[..12]].concat();
    let half_block = [&hello[..], &frame(HEADERS, 1, 1, &block(&[(":method", "GET")]))].concat();
    for io in ENGINES {
        let world = World::new(io, &["--header-timeout", "1s", "--keep-alive", "1h"]);
        // Half a preface may still be the head of a request.
        assert!(say(world.address(), &PREFACE[..10]).starts_with(b"HTTP/1.1 408 "), "{io}");
        for bytes in [PREFACE, &half_frame[..], &half_block] {
            let mut client = Client::silent(world.address());
            client.send(bytes);
            client.ends();
        }
        assert_eq!(world.metric("staunch_timeouts_total{deadline=\"header\"}"), 4, "{io}");
    }
}

/// A client that asks and never reads is paused, then cut off.
#[test]
fn who_never_reads_is_cut_off() {
    for io in ENGINES {
        let world = World::new(io, &["--send-timeout", "1s", "--send-rate-min", "0"]);
        let mut stream = TcpStream::connect(world.address()).expect("room in the queue");
        let settings = [0, INITIAL_WINDOW_SIZE as u8, 0x7f, 0xff, 0xff, 0xff];
        stream.write_all(&[&PREFACE[..], &frame(SETTINGS, 0, 0, &settings)].concat()).expect("it reads");
        stream.write_all(&window(0, 0x7000_0000)).expect("it reads");
        let asked: Vec<u8> = (0..90).flat_map(|at| get(2 * at + 1, "/big.bin")).collect();
        stream.write_all(&asked).expect("it reads");
        world.until_metric("staunch_timeouts_total{deadline=\"send\"}", 1);
        serves(&world, "one that never reads");
    }
}
