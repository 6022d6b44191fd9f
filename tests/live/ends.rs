//! Why WebSockets end: faults of theirs, slowness, limits, the server's end.

use std::net::Shutdown;

use rustix::process::Signal;
use serde_json::Value;
use staunch_protocol::websocket::{Deflater, Opcode, append_frame, deflate_message};
use staunch_tests::house::waiting::until;

use crate::socket::{Came, TestSocket, handshake, upgrade_lines};
use crate::world::{ENGINES, World};

#[test]
fn what_ends_a_websocket_is_told_by_its_code() {
    let masked = |opcode, compressed, payload: &[u8]| {
        let mut frame = Vec::new();
        append_frame(opcode, compressed, Some([9, 8, 7, 6]), payload, &mut frame);
        frame
    };
    let mut bomb = Vec::new();
    deflate_message(&mut Deflater::new(9), &vec![b' '; 8 << 20], &mut bomb);
    let mut unmasked = Vec::new();
    append_frame(Opcode::Text, false, None, b"{}", &mut unmasked);
    let mut in_parts = masked(Opcode::Ping, false, b"");
    in_parts[0] &= 0x7f;
    let mut reserved = masked(Opcode::Text, false, b"{}");
    reserved[0] |= 0x20;
    let table = [
        (unmasked, 1002),
        (in_parts, 1002),
        (reserved, 1002),
        (masked(Opcode::Continuation, false, b"x"), 1002),
        (masked(Opcode::Text, false, b"\xff"), 1007),
        (masked(Opcode::Text, true, b"\xff\xff\xff"), 1007),
        (masked(Opcode::Text, false, &vec![b' '; 200_000]), 1009),
        (masked(Opcode::Text, true, &bomb), 1009),
        (masked(Opcode::Binary, false, b"{}"), 1003),
        (masked(Opcode::Close, false, &[0x03, 0xe9]), 1001),
        (masked(Opcode::Close, false, &[0x03, 0xed]), 1002),
        (masked(Opcode::Text, false, b"hello"), 3501),
        (masked(Opcode::Text, false, b"{\"id\":2,\"connect\":{}}"), 3501),
        (masked(Opcode::Text, false, b"{\"subscribe\":{\"channel\":\"a\"}}"), 3501),
    ];
    for io in ENGINES {
        let world = World::new(io, &[]);
        for (bytes, code) in &table {
            let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
            let mut socket = TestSocket::connect(world.address(), "/ws", offer);
            socket.send_bytes(bytes);
            assert_eq!(socket.close_code(), Some(*code), "{io} {:x?}", &bytes[..bytes.len().min(12)]);
            assert_eq!(socket.next(), None, "the connection ends behind it");
        }
        let mut socket = TestSocket::open(world.address(), "/ws", "");
        socket.command("\"ping\":{}");
        assert_eq!(socket.close_code(), Some(3501), "before it has connected");
        let mut socket = TestSocket::open(world.address(), "/ws", "");
        socket.command("\"connect\":{\"token\":\"wrong\"}");
        assert_eq!(socket.close_code(), Some(3500));
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        socket.send(Opcode::Close, b"");
        assert_eq!(socket.next(), Some(Came::Close(None, String::new())));
        // Frames in pieces of any size are taken together.
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        for byte in masked(Opcode::Text, false, b"{\"id\":9,\"ping\":{}}") {
            socket.send_bytes(&[byte]);
        }
        assert_eq!(socket.text(), "{\"id\":9,\"ping\":{}}");
    }
}

#[test]
fn a_slow_websocket_delays_nobody_and_gets_the_last_value() {
    for io in ENGINES {
        let world = World::new(io, &["--live-value-size", "1MiB"]);
        let mut slow = TestSocket::connect(world.address(), "/ws", "");
        slow.subscribe("a", "");
        let mut quick = TestSocket::connect(world.address(), "/ws", "");
        quick.subscribe("a", "");
        let updates = 60u32;
        for number in 0..updates {
            world.put("a", &format!("{number:03}{}", "x".repeat(200_000)));
            assert!(
                quick.data().as_str().is_some_and(|data| data.starts_with(&format!("{number:03}"))),
                "{io}"
            );
        }
        // The slow client asks for something while it reads nothing: that waits for its turn.
        let id = slow.command("\"ping\":{}");
        let (mut came, mut last, mut is_answered) = (0, None, false);
        while last != Some(updates - 1) || !is_answered {
            let message: Value = serde_json::from_str(&slow.text()).unwrap();
            if message["id"] == id {
                is_answered = true;
                continue;
            }
            let number = message["push"]["pub"]["data"].as_str().unwrap()[..3].parse::<u32>().unwrap();
            assert!(last.is_none_or(|last| last < number), "{io}: {number} after {last:?}");
            (came, last) = (came + 1, Some(number));
        }
        assert!(came < updates, "{io}: outdated values are skipped, {came} came");
    }
}

#[test]
fn a_websocket_that_stalls_is_closed() {
    for io in ENGINES {
        let world = World::new(io, &["--send-timeout", "1s", "--live-value-size", "1MiB"]);
        let mut stalled = TestSocket::connect(world.address(), "/ws", "");
        stalled.subscribe("a", "");
        for number in 0..40 {
            world.put("a", &format!("{number} {}", "x".repeat(1_000_000)));
        }
        until("nobody is counted as a reader", || world.has_readers("a", 0));
    }
}

#[test]
fn websockets_are_counted_and_bounded() {
    for io in ENGINES {
        let world = World::new(io, &["--live-connections", "4"]);
        let readers = |expected: u64| {
            until("so many read the topic", || world.has_readers("a", expected));
        };
        let mut first = TestSocket::connect(world.address(), "/ws", "");
        readers(0);
        first.subscribe("a", "");
        readers(1);
        first.command("\"subscribe\":{\"channel\":\"b\"}");
        readers(1);
        let mut second = TestSocket::connect(world.address(), "/ws", "");
        second.subscribe("*", "");
        readers(2);
        first.command("\"unsubscribe\":{\"channel\":\"a\"}");
        readers(1);
        first.command("\"unsubscribe\":{\"channel\":\"b\"}");
        second.stream.shutdown(Shutdown::Both).expect("a connection of ours");
        readers(0);
        // The share of a worker is two, and the first one is still there.
        let mut sockets = vec![first];
        let refused = loop {
            let (stream, head, _) = handshake(world.address(), "GET /ws?topic=a HTTP/1.1", &upgrade_lines());
            if !head.starts_with("HTTP/1.1 101 ") {
                break head;
            }
            sockets.push(TestSocket::of(stream, head));
            assert!(sockets.len() <= 4, "{io}: more than allowed");
        };
        assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("Retry-After: "), "{refused}");
        assert_eq!(world.ask("GET", "/a.txt", "", b"").status, 200);
    }
}

#[test]
fn a_server_that_ends_says_so_to_its_websockets() {
    for io in ENGINES {
        let mut world = World::new(io, &["--drain-timeout", "20s"]);
        let mut sockets: Vec<_> = (0..6).map(|_| TestSocket::connect(world.address(), "/ws", "")).collect();
        sockets.iter_mut().take(3).for_each(|socket| drop(socket.subscribe("a", "")));
        sockets.push(TestSocket::open(world.address(), "/ws?topic=a", ""));
        world.signal(Signal::TERM);
        for socket in &mut sockets {
            assert_eq!(socket.close_code(), Some(1001), "{io}");
        }
        drop(sockets);
        assert!(world.server.end().is_some_and(|status| status.success()), "{io}");
    }
}
