//! WebSockets as clients open and use them: handshakes, commands, publishing, URLs, compression.

use std::time::Duration;

use serde_json::{Value, json};
use staunch_protocol::websocket::Opcode;

use crate::socket::{Came, TestSocket, handshake, upgrade_lines};
use crate::world::{ENGINES, TOKEN, World, publisher};

/// Where commands are taken.
const PATHS: [&str; 2] = ["/ws", "/connection/websocket"];
/// A sender that could send nothing for so long is held by the server.
const STANDSTILL: Duration = Duration::from_millis(300);
const LOG: &str = "live_topic = [{ match = \"l.*\", kind = \"log\", ring = 8 }]";

#[test]
fn what_is_no_handshake_is_refused() {
    let get = "GET /ws HTTP/1.1";
    let whole = upgrade_lines();
    let without = |name: &str| {
        let lines = whole.lines().filter(|line| !line.starts_with(name));
        lines.map(|line| format!("{line}\r\n")).collect::<String>()
    };
    let with = |line: &str| format!("{whole}{line}\r\n");
    let table = [
        (get, without("Upgrade"), 426, "Upgrade: websocket\r\n"),
        (get, without("Connection"), 426, "Upgrade: websocket\r\n"),
        (get, without("Sec-WebSocket-Version"), 426, "Sec-WebSocket-Version: 13\r\n"),
        (get, whole.replace("13", "8"), 426, "Sec-WebSocket-Version: 13\r\n"),
        (get, without("Sec-WebSocket-Key"), 400, ""),
        (get, whole.replace("dGhl", ""), 400, ""),
        ("GET /ws HTTP/1.0", whole.clone(), 400, ""),
        ("POST /ws HTTP/1.1", with("Content-Length: 0"), 405, "Allow: GET, OPTIONS\r\n"),
        ("OPTIONS /ws HTTP/1.1", String::new(), 204, "Allow: GET, OPTIONS\r\n"),
        (get, with("Origin: https://other.example"), 403, ""),
        (get, with("Origin: null"), 403, ""),
        (
            get,
            with("Authorization: Bearer wrong"),
            401,
            "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n",
        ),
        ("GET /ws?topic= HTTP/1.1", whole.clone(), 400, ""),
        ("GET /ws?topic=a&from=then HTTP/1.1", whole.clone(), 400, ""),
        ("GET /ws?format=xml HTTP/1.1", whole.clone(), 400, ""),
        ("GET /ws?cf_protocol=xml HTTP/1.1", whole.clone(), 400, ""),
        ("GET /ws?topic=a&plain=1&format=protobuf HTTP/1.1", whole.clone(), 400, ""),
        ("GET /ws/echo HTTP/1.1", whole.clone(), 404, ""),
        (get, with("Origin: https://known.example"), 101, "Upgrade: websocket\r\n"),
        (get, with("Origin: http://a.example"), 101, "Connection: Upgrade\r\n"),
        (get, with(&format!("Authorization: Bearer {TOKEN}")), 101, ""),
        ("GET /ws HTTP/1.1", whole.replace("Upgrade: websocket", "Upgrade: h2c, WebSocket"), 101, ""),
    ];
    for io in ENGINES {
        let world = World::with_settings(io, &[], "live_origins = [\"https://known.example\"]");
        for (line, lines, status, field) in &table {
            let (_, head, _) = handshake(world.address(), line, lines);
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{io} {line}\n{lines}{head}");
            assert!(head.contains(field), "{io} {line}: {head}");
        }
    }
}

/// Browsers and other clients end where a sub-protocol was offered and none is named.
#[test]
fn a_sub_protocol_that_is_known_is_named() {
    let table = [
        ("/connection/websocket", "centrifuge-json", Some("centrifuge-json")),
        ("/ws", "chat, centrifuge-json ,x", Some("centrifuge-json")),
        ("/ws", "chat\r\nSec-WebSocket-Protocol: centrifuge-json", Some("centrifuge-json")),
        ("/ws", "chat, centrifuge-protobuf, centrifuge-json", Some("centrifuge-protobuf")),
        ("/ws?format=json", "centrifuge-protobuf", Some("centrifuge-protobuf")),
        ("/ws?topic=a", "centrifuge-json", Some("centrifuge-json")),
        ("/ws?topic=a", "centrifuge-protobuf", Some("centrifuge-protobuf")),
        ("/ws?topic=a&plain=1", "centrifuge-json", None),
        ("/ws/echo", "centrifuge-json", None),
        ("/ws", "Centrifuge-JSON", None),
    ];
    for io in ENGINES {
        let world = World::with_settings(io, &[], "live_echo = true");
        for (path, offered, expected) in table {
            let lines = format!("{}Sec-WebSocket-Protocol: {offered}\r\n", upgrade_lines());
            let (_, head, _) = handshake(world.address(), &format!("GET {path} HTTP/1.1"), &lines);
            assert!(head.starts_with("HTTP/1.1 101 "), "{io} {path}: {head}");
            let named = head.lines().filter(|line| line.starts_with("Sec-WebSocket-Protocol: "));
            let expected = expected.map(|name| format!("Sec-WebSocket-Protocol: {name}"));
            assert_eq!(named.collect::<Vec<_>>(), Vec::from_iter(expected), "{io} {path} {offered}");
        }
    }
}

#[test]
fn a_client_of_commands_reads_and_is_answered_in_order() {
    for (io, path) in ENGINES.into_iter().zip(PATHS) {
        let world = World::new(io, &[]);
        world.publish(r#"{"topic":"a","data":{"n":1}}"#);
        let mut socket = TestSocket::connect(world.address(), path, "");
        let begun = socket.subscribe("a", "");
        assert_eq!((begun["recoverable"].as_bool(), begun.get("recovered")), (Some(true), None));
        let (channel, first) = socket.push();
        assert_eq!((&channel[..], &first["data"]), ("a", &json!({"n": 1})));
        assert!(begun["offset"].as_u64() < first["offset"].as_u64(), "{begun} {first}");
        world.put("a", "text \"quoted\"");
        assert_eq!(socket.data(), json!("text \"quoted\""));
        // Several commands in one message, and several messages at once, are answered in their order.
        let many = "{\"id\":101,\"ping\":{}}\n{\"id\":102,\"subscribe\":{\"channel\":\"b\"}}\n\
                    {\"id\":103,\"subscribe\":{\"channel\":\"c.*\"}}\n{}\n{\"id\":104,\"presence\":{}}";
        socket.send(Opcode::Text, many.as_bytes());
        socket.send(Opcode::Text, b"{\"id\":105,\"unsubscribe\":{\"channel\":\"a\"}}");
        socket.send(Opcode::Ping, b"alive");
        let (mut ids, mut pongs) = (Vec::new(), 0);
        while ids.len() < 5 || pongs < 1 {
            match socket.next() {
                Some(Came::Pong(payload)) => {
                    assert_eq!(payload, b"alive");
                    pongs += 1;
                }
                Some(Came::Text(text)) => {
                    let replies = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
                    ids.extend(replies.map(|reply| reply["id"].as_u64().unwrap()));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ids, [101, 102, 103, 104, 105]);
        world.put("a", "nobody reads it");
        world.put("b", "b");
        world.put("c.x", "c");
        let came: Vec<_> =
            (0..2).map(|_| socket.push()).map(|(name, data)| (name, data["data"].clone())).collect();
        assert_eq!(came, [("b".to_owned(), json!("b")), ("c.x".to_owned(), json!("c"))]);
        world.publish(r#"{"topic":"b","data":[1,2]}"#);
        assert_eq!(socket.data(), json!([1, 2]));
        let answer = world.ask("DELETE", "/topics/b", &publisher("text/plain"), b"");
        assert_eq!(answer.status, 200);
        let (_, gone) = socket.push();
        assert_eq!((&gone["data"], &gone["tags"]["deleted"]), (&Value::Null, &json!("1")));
    }
}

#[test]
fn what_cannot_be_asked_is_answered_by_its_error() {
    for io in ENGINES {
        let world = World::with_settings(io, &[], LOG);
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        socket.subscribe("a", "");
        let long = format!("\"subscribe\":{{\"channel\":\"{}\"}}", "x".repeat(257));
        let table = [
            ("\"subscribe\":{\"channel\":\"a\"}", 105),
            ("\"subscribe\":{\"channel\":\"\"}", 102),
            ("\"subscribe\":{\"channel\":\"$status\"}", 102),
            ("\"subscribe\":{\"channel\":\"a.>.b\"}", 102),
            (&long[..], 102),
            ("\"subscribe\":{\"channel\":\"b\",\"token\":\"x\"}", 108),
            ("\"publish\":{\"channel\":\"a\",\"data\":1}", 103),
            ("\"history\":{\"channel\":\"*\",\"limit\":1}", 102),
            ("\"history\":{\"channel\":\"a\",\"limit\":1,\"since\":{\"epoch\":\"0\",\"offset\":1}}", 112),
            ("\"presence\":{\"channel\":\"a\"}", 108),
            ("\"rpc\":{}", 108),
        ];
        for (ask, code) in table {
            let reply = socket.ask(ask);
            assert_eq!(reply["error"]["code"], code, "{io} {ask}: {reply}");
        }
        for ask in ["\"unsubscribe\":{\"channel\":\"never\"}", "\"unsubscribe\":{\"channel\":\"\"}"] {
            assert!(socket.ask(ask)["unsubscribe"].is_object());
        }
        let many: String = (0..1001)
            .map(|number| {
                format!("{{\"id\":{},\"subscribe\":{{\"channel\":\"t{number}\"}}}}\n", number + 1000)
            })
            .collect();
        let lines: Vec<&str> = many.lines().collect();
        lines.chunks(200).for_each(|lines| socket.send(Opcode::Text, lines.join("\n").as_bytes()));
        let (mut begun, mut refused) = (0, 0);
        while begun + refused < 1001 {
            for line in socket.text().lines() {
                let reply: Value = serde_json::from_str(line).unwrap();
                match reply["error"]["code"].as_u64() {
                    None => begun += 1,
                    Some(code) => {
                        assert_eq!(code, 106);
                        refused += 1;
                    }
                }
            }
        }
        assert_eq!((begun, refused), (999, 2), "{io}: a thousand with the first one");
        world.put("t500", "x");
        assert_eq!(socket.push().0, "t500");
    }
}

#[test]
fn who_may_publish_does_so_by_command() {
    for io in ENGINES {
        let world = World::with_settings(io, &[], LOG);
        let lines = format!("Authorization: Bearer {TOKEN}\r\n");
        let mut own = TestSocket::connect(world.address(), "/ws", &lines);
        let mut other = TestSocket::open(world.address(), "/ws", "");
        assert!(other.ask(&format!("\"connect\":{{\"token\":\"{TOKEN}\"}}"))["connect"].is_object());
        other.subscribe("a", "");
        let done = own.ask("\"publish\":{\"channel\":\"a\",\"data\":{ \"x\" : 1.50 }}");
        assert!(done["publish"].is_object(), "{done}");
        assert!(other.text().contains("\"data\":{ \"x\" : 1.50 }"), "as it was published");
        // Its own update may come before or behind the reply.
        other.command("\"publish\":{\"channel\":\"a\",\"data\":\"text\"}");
        let both = [other.text(), other.text()];
        assert!(both.iter().any(|text| text.contains("\"publish\":{}")), "{both:?}");
        assert!(both.iter().any(|text| text.contains("\"data\":\"text\"")), "{both:?}");
        assert_eq!(world.ask("GET", "/live/a", "", b"").text(), "text");
        for (ask, code) in [
            ("\"publish\":{\"channel\":\"$a\",\"data\":1}", 107),
            (&format!("\"publish\":{{\"channel\":\"a\",\"data\":\"{}\"}}", "x".repeat(66_000))[..], 106),
        ] {
            assert_eq!(own.ask(ask)["error"]["code"], code, "{io}");
        }
        for number in 0..5 {
            assert!(
                own.ask(&format!("\"publish\":{{\"channel\":\"l.a\",\"data\":{number}}}"))["publish"]
                    .is_object()
            );
        }
        let wanted = |more: &str| format!("\"history\":{{\"channel\":\"l.a\"{more}}}");
        let history = |socket: &mut TestSocket, more: &str| {
            let reply = socket.ask(&wanted(more));
            let all = reply["history"]["publications"].as_array().expect("a list").clone();
            (
                reply["history"].clone(),
                all.iter().map(|one| one["data"].as_u64().unwrap()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(history(&mut own, "").1, [0; 0], "without a limit the position alone");
        assert_eq!(history(&mut own, ",\"limit\":2").1, [0, 1]);
        assert_eq!(history(&mut own, ",\"limit\":2,\"reverse\":true").1, [4, 3]);
        let (all, numbers) = history(&mut own, ",\"limit\":-1");
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        let offset = &all["publications"][2]["offset"];
        let since = format!(",\"limit\":-1,\"since\":{{\"epoch\":{},\"offset\":{offset}}}", all["epoch"]);
        assert_eq!(history(&mut own, &since).1, [3, 4]);
    }
}

#[test]
fn messages_are_compressed_both_ways_if_that_is_agreed() {
    let value = "goal by nobody, ".repeat(100);
    for io in ENGINES {
        let world = World::new(io, &[]);
        world.put("a", &value);
        let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
        let mut socket = TestSocket::connect(world.address(), "/ws", offer);
        let agreed = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; \
                      client_no_context_takeover\r\n";
        assert!(socket.head.contains(agreed), "{}", socket.head);
        socket.send_deflated(b"{\"id\":7,\"subscribe\":{\"channel\":\"a\"}}");
        assert!(socket.text().starts_with("{\"id\":7,\"subscribe\":"));
        assert_eq!(socket.data(), json!(value));
        let mut late = TestSocket::connect(world.address(), "/ws", offer);
        late.subscribe("a", "");
        assert_eq!(late.data(), json!(value));
        world.put("a", &format!("{value}!"));
        for socket in [&mut socket, &mut late] {
            assert_eq!(socket.data(), json!(format!("{value}!")));
        }
        let mut plain = TestSocket::connect(world.address(), "/ws", "");
        assert!(!plain.head.contains("Sec-WebSocket-Extensions"));
        plain.subscribe("a", "");
        assert_eq!(plain.data(), json!(format!("{value}!")));
    }
}

#[test]
fn a_url_says_what_is_read() {
    for io in ENGINES {
        let world = World::with_settings(io, &[], LOG);
        world.put("a", "1");
        let mut socket = TestSocket::open(world.address(), "/ws?topic=a&topic=l.*", "");
        let welcome: Value = serde_json::from_str(&socket.text()).unwrap();
        let position = &welcome["push"]["connect"];
        assert!((1000..5000).contains(&position["retry"].as_u64().unwrap()), "{welcome}");
        let (channel, first) = socket.push();
        assert_eq!((&channel[..], &first["data"]), ("a", &json!("1")));
        world.put("l.x", "2");
        let (_, second) = socket.push();
        assert_eq!(second["data"], "2");
        world.put("l.x", "3");
        let id = format!("{}-{}", position["epoch"].as_str().unwrap(), second["offset"]);
        let mut again = TestSocket::open(world.address(), &format!("/ws?topic=l.*&last-event-id={id}"), "");
        again.text();
        assert_eq!(again.data(), "3");
        let mut bare = TestSocket::open(world.address(), "/ws?topic=a&plain=1", "");
        assert_eq!(bare.text(), "1");
        let body = "\u{e4}\u{fe}".as_bytes();
        world.ask("PUT", "/topics/a", &publisher("application/octet-stream"), &[body, b"\xff"].concat());
        assert_eq!(bare.next(), Some(Came::Binary([body, b"\xff"].concat())));
        let mut now = TestSocket::open(world.address(), "/ws?topic=a&plain=1&from=now", "");
        now.send(Opcode::Ping, b"");
        assert_eq!(now.next(), Some(Came::Pong(Vec::new())));
        world.put("a", "next");
        assert_eq!(now.text(), "next");
        now.send(Opcode::Text, b"hello");
        assert_eq!(now.close_code(), Some(1003));
    }
}

/// Updates as Protobuf: bytes as they were published.
#[test]
fn commands_and_pushes_are_protobuf_where_it_is_asked_for() {
    for (io, path) in
        ENGINES.into_iter().zip(["/ws?cf_protocol=protobuf", "/connection/websocket?format=protobuf"])
    {
        let world = World::with_settings(io, &[], LOG);
        world.put("a", "text");
        let mut socket = TestSocket::open(world.address(), path, "");
        // `connect`, a sign of life, and `subscribe` to `a`, in one message.
        socket.send(Opcode::Binary, b"\x04\x08\x01\x22\0\0\x07\x08\x02\x2a\x03\x0a\x01a");
        let mut came = Vec::new();
        while !came.ends_with(b"text\x30\x01") {
            let Some(Came::Binary(bytes)) = socket.next() else { panic!("{came:?}") };
            came.extend(bytes);
        }
        let is_there = |part: &[u8]| came.windows(part.len()).any(|window| window == part);
        assert!(
            is_there(b"\x12\x07staunch") && is_there(b"\x12\x01a\x22\x08\x22\x04text\x30\x01"),
            "{came:?}"
        );
        let mut named = TestSocket::open(world.address(), "/ws?topic=a&format=protobuf&from=now", "");
        let Some(Came::Binary(welcome)) = named.next() else { panic!("no welcome") };
        assert!(String::from_utf8_lossy(&welcome).contains("\"retry\":"), "{welcome:?}");
        let answer = world.ask("PUT", "/topics/a", &publisher("application/octet-stream"), b"\x08\xff");
        assert_eq!(answer.status, 200);
        let push = b"\x0d\x22\x0b\x12\x01a\x22\x06\x22\x02\x08\xff\x30\x02";
        for reader in [&mut socket, &mut named] {
            let Some(Came::Binary(came)) = reader.next() else { panic!("no push") };
            assert_eq!(came, push, "{io}");
        }
        socket.send(Opcode::Binary, b"\x05\x08");
        assert_eq!(socket.close_code(), Some(3501), "{io}");
    }
}

#[test]
fn a_websocket_for_tests_sends_back_what_it_gets() {
    for io in ENGINES {
        let world = World::with_settings(io, &[], "live_echo = true");
        let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
        let mut socket = TestSocket::open(world.address(), "/ws/echo", offer);
        socket.send(Opcode::Text, "gr\u{fc}n".as_bytes());
        assert_eq!(socket.text(), "gr\u{fc}n");
        socket.send_deflated(b"long, long, long, long, long");
        assert_eq!(socket.text(), "long, long, long, long, long");
        for length in [0, 125, 126, 65_535, 65_536, 79_000] {
            let message = vec![b'x'; length];
            socket.send(Opcode::Binary, &message);
            assert_eq!(socket.next(), Some(Came::Binary(message)), "{io} {length}");
        }
    }
}

#[test]
fn who_sends_far_more_than_it_reads_is_made_to_wait_and_gets_it_all() {
    const COUNT: usize = 500;
    let payload = vec![b'x'; 60_000];
    for io in ENGINES {
        let world = World::with_settings(io, &[], "live_echo = true");
        let mut socket = TestSocket::open(world.address(), "/ws/echo", "");
        // More than sockets hold on both sides and the server beside them, before the first byte is read.
        let sender = socket.sender();
        std::thread::scope(|scope| {
            let (payload, done) = (&payload, std::sync::mpsc::channel());
            scope.spawn(move || {
                for _ in 0..COUNT {
                    sender.send(Opcode::Binary, payload);
                    if done.0.send(()).is_err() {
                        return;
                    }
                }
            });
            // The sender goes on until the server reads no more.
            while done.1.recv_timeout(STANDSTILL).is_ok() {}
            for number in 0..COUNT {
                let came = socket.next();
                let is_right = came.as_ref().is_some_and(|came| *came == Came::Binary(payload.clone()));
                assert!(is_right, "{io} {number}: {:.200}", format!("{came:?}"));
            }
        });
    }
}
