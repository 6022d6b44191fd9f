//! WebSockets of live data on streams of HTTP/2 (RFC 8441), beside other requests of the same connection.

use rustix::process::Signal;
use staunch_protocol::websocket::Opcode;

use crate::client::{
    Client, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, SETTINGS, block, frame, request, websocket,
    window,
};
use crate::socket::{Came, StreamSocket, masked};
use crate::world::{ENGINES, World};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const READERS: &str = "staunch_live_readers{transport=\"websocket\"}";
const CANCEL: u32 = 8;
const PROTOCOL_ERROR: u32 = 1;
const REFUSED_STREAM: u32 = 7;
const PADDED: u8 = 8;
/// Streams that a connection may have at a time.
const STREAMS_MAX: u32 = 100;

fn live(io: &str, more: &str) -> World {
    World::with_settings(io, &format!("live = true\npublish_token = \"{TOKEN}\"\n{more}"), &[])
}

/// Sets a topic's value by a request of its own connection.
fn put(world: &World, topic: &str, value: &[u8]) {
    let mut client = Client::new(world.address());
    let fields = [("authorization", &format!("Bearer {TOKEN}")[..]), ("content-type", "text/plain")];
    client.send(&request(1, false, "PUT", &format!("/topics/{topic}"), &fields));
    client.send(&frame(DATA, END_STREAM, 1, value));
    assert_eq!(client.reply(1).status, 200);
}

/// A request with these pseudo-fields.
fn head(flags: u8, stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &block(fields))
}

/// The setting without which no client asks (RFC 8441, section 3).
#[test]
fn it_is_offered() {
    let world = live("epoll", "");
    let mut client = Client::new(world.address());
    let first = client.next().expect("settings");
    assert_eq!(first.kind, SETTINGS);
    assert!(first.payload.chunks(6).any(|setting| setting == [0, 8, 0, 0, 0, 1]), "{first:?}");
}

#[test]
fn what_asks_for_no_websocket_is_answered_so() {
    let version = ("sec-websocket-version", "13");
    type Asked<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);
    let asked: &[Asked<'_>] = &[
        ("/ws", &[("sec-websocket-protocol", "x")], 400),
        ("/ws", &[("sec-websocket-version", "8")], 400),
        ("/ws/echo", &[version], 404),
        ("/a.txt", &[version], 405),
        ("/absent", &[version], 405),
        ("/events?topic=a", &[version], 405),
        ("/live/a", &[version], 405),
        ("/quotes?symbols=a", &[version], 405),
        ("/live.js", &[version], 405),
        ("/publish", &[version], 405),
        ("/ws", &[version, ("origin", "https://other.example")], 403),
        ("/ws", &[version, ("authorization", "Bearer wrong")], 401),
        ("/ws?topic=", &[version], 400),
        ("/ws?format=xml", &[version], 400),
    ];
    for io in ENGINES {
        let world = live(io, "");
        put(&world, "a", b"secret");
        let mut client = Client::new(world.address());
        let mut streams = (1..).step_by(2);
        for ((path, fields, status), stream) in asked.iter().zip(&mut streams) {
            client.send(&request(
                stream,
                false,
                "CONNECT",
                path,
                &[&[(":protocol", "websocket")], *fields].concat(),
            ));
            let reply = client.reply(stream);
            assert_eq!((reply.status, reply.is_whole), (*status, true), "{io} {path} {fields:?}: {reply:?}");
            // Data that the client sends before it has heard of the refusal are thrown away.
            client.send(&frame(DATA, END_STREAM, stream, &masked(Opcode::Text, b"early")));
        }
        let stream = streams.next().expect("a number");
        client.send(&websocket(stream, "/ws", &[("sec-websocket-version", "8")]));
        assert_eq!(client.reply(stream).status, 400, "{io}: two versions");
        for protocol in ["chat", "connect-udp", "websocket2"] {
            let stream = streams.next().expect("a number");
            client.send(&request(stream, false, "CONNECT", "/ws", &[(":protocol", protocol), version]));
            assert_eq!(client.reply(stream).status, 501, "{io}: {protocol}");
        }
        let stream = streams.next().expect("a number");
        client.send(&request(stream, true, "CONNECT", "/ws", &[(":protocol", "websocket"), version]));
        assert_eq!(client.reply(stream).status, 400, "{io}: it has ended");
        let stream = streams.next().expect("a number");
        client.send(&request(stream, true, "GET", "/ws", &[version]));
        assert_eq!(client.reply(stream).status, 400, "{io}: GET");
        let stream = streams.next().expect("a number");
        assert_eq!(client.get(stream, "/a.txt").status, 200, "{io}");
        assert_eq!(world.metric("staunch_http2_websockets_total"), 0, "{io}");
        world.until_metric(READERS, 0);
    }
}

/// RFC 8441, section 4: each costs its stream alone.
#[test]
fn what_is_malformed_is_reset() {
    let [method, protocol, scheme, host, path] = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/ws"),
    ];
    let version = ("sec-websocket-version", "13");
    let table: &[&[(&str, &str)]] = &[
        &[method, protocol, scheme, host, version],
        &[method, protocol, host, path, version],
        &[method, protocol, scheme, host, (":path", "*"), version],
        &[method, protocol, scheme, host, (":path", "ws"), version],
        &[(":method", "GET"), protocol, scheme, host, path, version],
        &[(":method", "POST"), protocol, scheme, host, path, version],
        &[method, protocol, protocol, scheme, host, path, version],
        &[method, (":protocol", ""), scheme, host, path, version],
        &[method, (":protocol", "web socket"), scheme, host, path, version],
        &[method, scheme, host, path, version, protocol],
        &[method, scheme, host, path, version],
        &[method, protocol, scheme, host, path, version, ("content-length", "5")],
        &[method, protocol, scheme, host, path, version, ("upgrade", "websocket")],
        &[method, protocol, scheme, host, path, version, ("connection", "upgrade")],
        &[method, protocol, scheme, path, version],
    ];
    for io in ENGINES {
        let world = live(io, "");
        let mut client = Client::new(world.address());
        for (fields, stream) in table.iter().zip((1..).step_by(2)) {
            client.send(&head(0, stream, fields));
            let reply = client.reply(stream);
            assert_eq!((reply.status, reply.reset), (0, Some(PROTOCOL_ERROR)), "{io}: {fields:?}");
        }
        let mut socket = StreamSocket::open(&mut client, 101, "/ws?topic=a&plain=1", &[]);
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 101, &block(&[("x", "trailer")])));
        assert_eq!(client.reply(101).reset, Some(PROTOCOL_ERROR), "{io}: no frame but DATA");
        assert_eq!(socket.next(&mut client), None, "{io}");
        world.until_metric(READERS, 0);
        assert_eq!(client.get(103, "/a.txt").status, 200, "{io}");
    }
}

#[test]
fn messages_come_back_beside_other_answers() {
    for io in ENGINES {
        let world = live(io, "live_echo = true");
        let mut client = Client::new(world.address());
        let offer = [("sec-websocket-extensions", "permessage-deflate")];
        let mut socket = StreamSocket::open(&mut client, 1, "/ws/echo", &offer);
        socket.send(&mut client, Opcode::Text, "gr\u{fc}n".as_bytes());
        assert_eq!(socket.text(&mut client), "gr\u{fc}n");
        socket.send_deflated(&mut client, b"long, long, long, long, long");
        assert_eq!(socket.text(&mut client), "long, long, long, long, long");
        for (length, stream) in
            [0, 125, 126, 16_384, 65_535, 65_536, 79_000].into_iter().zip((3..).step_by(2))
        {
            let message = vec![b'x'; length];
            socket.send(&mut client, Opcode::Binary, &message);
            assert_eq!(client.get(stream, "/page.html").body.len(), 7_200, "{io}");
            assert_eq!(socket.next(&mut client), Some(Came::Binary(message)), "{io} {length}");
        }
        socket.send(&mut client, Opcode::Close, &1000_u16.to_be_bytes());
        assert_eq!(socket.close_code(&mut client), Some(1000), "{io}");
        assert!(client.reply(1).is_whole, "{io}");
        assert_eq!(client.get(101, "/a.txt").status, 200, "{io}");
        assert_eq!(world.metric("staunch_http2_websockets_total"), 1, "{io}");
        assert_eq!(world.metric("staunch_http2_connections_total"), 1, "{io}");
        world.until_metric(READERS, 0);
    }
}

/// A message in parts, with a ping between, cut at every byte; padding and empty DATA between.
#[test]
fn frames_may_be_cut_anywhere() {
    let mut sent = Vec::new();
    let part = |last: bool, opcode: u8, text: &[u8]| {
        let mut bytes = masked(Opcode::Text, text);
        bytes[0] = u8::from(last) << 7 | opcode;
        bytes
    };
    sent.extend(part(false, 1, b"in "));
    sent.extend(part(false, 0, b"three "));
    sent.extend(masked(Opcode::Ping, b"alive"));
    sent.extend(part(true, 0, b"parts"));
    sent.extend(masked(Opcode::Binary, &[7; 300]));
    for io in ENGINES {
        let world = live(io, "live_echo = true");
        let mut client = Client::new(world.address());
        for (size, stream) in [1, 2, 7, 1_000].into_iter().zip((1..).step_by(2)) {
            let mut socket = StreamSocket::open(&mut client, stream, "/ws/echo", &[]);
            for piece in sent.chunks(size) {
                let padded = [&[3][..], piece, &[0; 3]].concat();
                client.send(&frame(DATA, PADDED, stream, &padded));
            }
            client.send(&frame(DATA, 0, stream, b""));
            assert_eq!(socket.next(&mut client), Some(Came::Pong(b"alive".to_vec())), "{io} {size}");
            assert_eq!(socket.text(&mut client), "in three parts", "{io} {size}");
            assert_eq!(socket.next(&mut client), Some(Came::Binary(vec![7; 300])), "{io} {size}");
            // Not masked: the peer is told, and the stream ends.
            client.send(&frame(DATA, 0, stream, b"\x81\x01x"));
            assert_eq!(socket.close_code(&mut client), Some(1002), "{io} {size}");
            assert!(client.reply(stream).is_whole, "{io} {size}");
        }
        assert_eq!(world.metric("staunch_http2_calmed_total"), 0, "{io}: short messages are not odd");
    }
}

/// Commands, sub-protocols and publications: what is told by mail finds its stream.
#[test]
fn commands_of_two_streams_do_not_meet() {
    for io in ENGINES {
        let world = live(io, "");
        let mut client = Client::new(world.address());
        let offered = [("sec-websocket-protocol", "chat, centrifuge-json")];
        let named = StreamSocket::open(&mut client, 1, "/connection/websocket", &offered);
        let name = client.heard(1).field("sec-websocket-protocol").map(str::to_owned);
        assert_eq!(name.as_deref(), Some("centrifuge-json"), "{io}");
        client.send(&frame(RST_STREAM, 0, named.stream, &CANCEL.to_be_bytes()));
        let mut reader = StreamSocket::connect(&mut client, 3, "/ws", "");
        let mut publisher = StreamSocket::connect(&mut client, 5, "/connection/websocket", TOKEN);
        assert!(
            reader.ask(&mut client, "\"subscribe\":{\"channel\":\"a\"}").contains("\"subscribe\":{"),
            "{io}"
        );
        // A pattern may have to be compared with topics first, and so may one in a URL.
        let mut bare = StreamSocket::open(&mut client, 9, "/ws?topic=p.*&plain=1", &[]);
        for round in 0..2 {
            let begun = reader.ask(&mut client, "\"subscribe\":{\"channel\":\"p.*\"}");
            assert!(begun.contains("\"subscribe\":{"), "{io}: {begun}");
            let value = format!("by pattern {round}");
            put(&world, "p.x", value.as_bytes());
            // The value before comes first.
            while !reader.text(&mut client).contains(&value) {}
            assert_eq!(bare.text(&mut client), value, "{io}");
            let left = reader.ask(&mut client, "\"unsubscribe\":{\"channel\":\"p.*\"}");
            assert!(left.contains("\"unsubscribe\":{"), "{io}: {left}");
        }
        for number in 0..20 {
            let asked = format!("\"publish\":{{\"channel\":\"a\",\"data\":{{\"n\":{number}}}}}");
            let done = publisher.ask(&mut client, &asked);
            assert!(done.contains("\"publish\":{}"), "{io}: {done}");
            let push = reader.text(&mut client);
            assert!(push.contains(&format!("\"data\":{{\"n\":{number}}}")), "{io}: {push}");
        }
        let refused = reader.ask(&mut client, "\"publish\":{\"channel\":\"a\",\"data\":1}");
        assert!(refused.contains("\"code\":103"), "{io}: {refused}");
        assert!(client.get(11, "/live/a").body.starts_with(b"{\"n\":19}"), "{io}");
    }
}

/// Ends by either side, of a stream or of the connection: nobody is left.
#[test]
fn whoever_leaves_is_forgotten() {
    for io in ENGINES {
        let world = live(io, "");
        let mut client = Client::new(world.address());
        let sockets = [1, 3, 5, 7].map(|stream| StreamSocket::open(&mut client, stream, "/ws?topic=a", &[]));
        world.until_metric(READERS, 4);
        let [first, second, ..] = sockets;
        // END_STREAM is FIN, RST_STREAM a reset (RFC 8441, section 5).
        client.send(&frame(DATA, END_STREAM, first.stream, b""));
        assert!(client.reply(first.stream).is_whole, "{io}");
        world.until_metric(READERS, 3);
        client.send(&frame(RST_STREAM, 0, second.stream, &CANCEL.to_be_bytes()));
        world.until_metric(READERS, 2);
        assert_eq!(client.get(9, "/a.txt").status, 200, "{io}");
        client.half_close();
        client.ends();
        world.until_metric(READERS, 0);
        let mut other = Client::new(world.address());
        let _socket = StreamSocket::open(&mut other, 1, "/ws?topic=a", &[]);
        world.until_metric(READERS, 1);
        drop(other);
        world.until_metric(READERS, 0);
    }
}

#[test]
fn a_connection_has_as_many_as_it_may_have_streams() {
    for io in ENGINES {
        let world = live(io, "");
        let mut client = Client::new(world.address());
        let streams = (0..STREAMS_MAX).map(|number| 2 * number + 1);
        let mut sockets: Vec<StreamSocket> = streams
            .map(|stream| StreamSocket::open(&mut client, stream, "/ws?topic=a&plain=1", &[]))
            .collect();
        world.until_metric(READERS, u64::from(STREAMS_MAX));
        let next = 2 * STREAMS_MAX + 1;
        client.send(&websocket(next, "/ws?topic=a", &[]));
        assert_eq!(client.reply(next).reset, Some(REFUSED_STREAM), "{io}");
        put(&world, "a", b"for all");
        for socket in &mut sockets {
            assert_eq!(socket.text(&mut client), "for all", "{io} {}", socket.stream);
        }
        client.send(&frame(DATA, END_STREAM, 1, b""));
        assert!(client.reply(1).is_whole, "{io}");
        assert_eq!(client.get(next + 2, "/a.txt").status, 200, "{io}");
        drop(client);
        world.until_metric(READERS, 0);
    }
}

/// Back-pressure both ways: what is sent back has no room, so the window of the stream stays shut; another
/// stream goes on meanwhile.
#[test]
fn who_reads_nothing_may_send_little() {
    const MESSAGE_BYTES: usize = 10_000;
    for io in ENGINES {
        let world = live(io, "live_echo = true");
        let mut client = Client::new(world.address());
        client.opens_windows = false;
        let mut socket = StreamSocket::open(&mut client, 1, "/ws/echo", &[]);
        let message = masked(Opcode::Binary, &[b'x'; MESSAGE_BYTES]);
        let mut count = 0;
        loop {
            if socket.window_bytes(&client) < message.len() {
                client.settle();
            }
            if socket.window_bytes(&client) < message.len() {
                break;
            }
            socket.send_bytes(&mut client, &message);
            count += 1;
            assert!(count < 1_000, "{io}: {count} messages are held");
        }
        client.send(&window(0, 1 << 30));
        let mut other = StreamSocket::open(&mut client, 3, "/ws/echo", &[]);
        other.send(&mut client, Opcode::Text, b"others go on");
        assert_eq!(other.text(&mut client), "others go on", "{io}");
        client.send(&window(1, 1 << 30));
        for number in 0..count {
            let came = socket.next(&mut client);
            let is_right = matches!(&came, Some(Came::Binary(bytes)) if bytes[..] == [b'x'; MESSAGE_BYTES]);
            assert!(is_right, "{io} {number} of {count}");
        }
        socket.send_bytes(&mut client, &message);
        assert!(matches!(socket.next(&mut client), Some(Came::Binary(_))), "{io}");
    }
}

/// A server that ends says so on each stream, and then on the connection.
#[test]
fn a_server_that_ends_closes_each() {
    for io in ENGINES {
        let world = live(io, "");
        let mut client = Client::new(world.address());
        let mut sockets = [1, 3, 5].map(|stream| StreamSocket::open(&mut client, stream, "/ws?topic=a", &[]));
        world.until_metric(READERS, 3);
        world.signal(Signal::TERM);
        for socket in &mut sockets {
            assert_eq!(socket.close_code(&mut client), Some(1001), "{io} {}", socket.stream);
            assert!(client.reply(socket.stream).is_whole, "{io} {}", socket.stream);
        }
        client.ends();
        assert_eq!(client.goaway(), Some(0), "{io}");
    }
}
