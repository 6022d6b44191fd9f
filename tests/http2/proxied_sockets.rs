//! WebSockets on streams of HTTP/2 that go on to an application by HTTP/1.1 (RFC 8441 in front, RFC 6455
//! behind).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, channel};

use staunch_protocol::websocket::accept_key;
use staunch_tests::house::waiting::HANG;

use crate::client::{
    Client, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, Reply, block, frame, request, websocket,
    window,
};
use crate::world::{ENGINES, World};

const CANCEL: u32 = 8;
const VERSION: &str = "Sec-WebSocket-Version: 13";

/// An application, and what it does with the connections that are made to it, one after the other.
struct Application {
    address: SocketAddr,
    heads: Receiver<String>,
}

/// Reads a head.
fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).expect("a head of text")
}

/// The field that answers the key of a head.
fn accept(head: &str) -> String {
    let keys: Vec<&str> = head.lines().filter_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).collect();
    assert_eq!(keys.len(), 1, "{head}");
    format!("Sec-WebSocket-Accept: {}\r\n", accept_key(keys[0].as_bytes()).expect("a good key"))
}

impl Application {
    /// Has `serve` go on with each connection behind the head of its request.
    fn new(serve: impl Fn(&str, TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, heads) = channel();
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (sender, serve) = (sender.clone(), Arc::clone(&serve));
                std::thread::spawn(move || {
                    stream.set_read_timeout(Some(HANG)).expect("an open socket");
                    let head = head(&mut stream);
                    // The test may be over.
                    let _ = sender.send(head.clone());
                    serve(&head, stream);
                });
            }
        });
        Self { address, heads }
    }

    /// A server that passes everything on to it.
    fn world(&self, io: &str) -> World {
        World::with_settings(io, &format!("proxy = \"{}\"\n", self.address), &[])
    }

    fn head(&self) -> String {
        self.heads.recv_timeout(HANG).expect("a request")
    }
}

fn switch(head: &str, more: &str) -> String {
    let accept = accept(head);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{accept}{more}\r\n"
    )
}

/// Asks for a WebSocket, and waits for the head of the answer.
fn ask(client: &mut Client, stream: u32, fields: &[(&str, &str)]) -> Reply {
    client.send(&websocket(stream, "/chat?x=1", fields));
    client.until(stream, |reply| reply.status > 0 || reply.reset.is_some());
    client.heard(stream)
}

#[test]
fn an_application_is_asked_by_http1_and_bytes_go_both_ways() {
    for io in ENGINES {
        let application = Application::new(|head, mut stream| {
            let said = switch(head, "Sec-WebSocket-Protocol: chat\r\nX-Own: 1\r\n");
            stream.write_all(said.as_bytes()).expect("a proxy");
            stream.write_all(b"hello ").expect("a proxy");
            let mut piece = [0; 4_096];
            while let Ok(count @ 1..) = stream.read(&mut piece) {
                stream.write_all(&piece[..count]).expect("a proxy");
            }
        });
        let world = application.world(io);
        let mut client = Client::new(world.address());
        let fields = [
            ("sec-websocket-protocol", "chat, other"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("origin", "https://a.example"),
            ("te", "trailers"),
        ];
        let reply = ask(&mut client, 1, &fields);
        assert_eq!((reply.status, reply.is_whole), (200, false), "{io}: {reply:?}");
        assert_eq!(reply.field("sec-websocket-protocol"), Some("chat"), "{io}");
        assert_eq!(reply.field("x-own"), Some("1"), "{io}");
        for name in ["sec-websocket-accept", "upgrade", "connection", "content-length", "transfer-encoding"] {
            assert_eq!(reply.field(name), None, "{io}: {name}");
        }
        let head = application.head();
        assert!(head.starts_with("GET /chat?x=1 HTTP/1.1\r\nHost: a\r\n"), "{io}: {head}");
        let lines = ["Upgrade: websocket", "Connection: Upgrade", "origin: https://a.example", "Via: 2 "];
        for line in lines {
            assert_eq!(head.matches(&format!("\r\n{line}")).count(), 1, "{io}: {line} in {head}");
        }
        let lower = head.to_ascii_lowercase();
        assert!(lower.contains(&VERSION.to_ascii_lowercase()), "{io}: {head}");
        assert!(!head.contains("dGhlIHNhbXBsZSBub25jZQ=="), "{io}: the key is ours");
        assert!(!lower.contains("transfer-encoding") && !lower.contains("content-length"), "{io}: {head}");
        assert!(!lower.contains(":protocol") && !lower.contains("\r\nte:"), "{io}: {head}");
        for byte in b"a few bytes, one by one" {
            client.send(&frame(DATA, 0, 1, &[*byte]));
        }
        client.until(1, |reply| reply.body == b"hello a few bytes, one by one");
        client.send(&frame(DATA, END_STREAM, 1, b"."));
        let reply = client.reply(1);
        assert!(reply.is_whole && reply.body.ends_with(b"one."), "{io}: {reply:?}");
        assert_eq!(world.metric("staunch_http2_websockets_total"), 1, "{io}");
        // Two of them have keys of their own.
        ask(&mut client, 3, &[]);
        ask(&mut client, 5, &[]);
        assert_ne!(accept(&application.head()), accept(&application.head()), "{io}");
    }
}

/// A success that is no WebSocket would be taken for one, and a handshake that another has answered too.
#[test]
fn answers_that_begin_no_websocket() {
    type Answer = fn(&str) -> String;
    let table: [(Answer, u16, &[u8]); 10] = [
        (|_| "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno".into(), 403, b"no"),
        (|_| "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n".into(), 302, b""),
        (
            |_| "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n".into(),
            426,
            b"",
        ),
        (|_| "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd".into(), 502, b""),
        (|_| "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: \n".into(), 502, b""),
        (|_| "HTTP/1.1 204 No Content\r\n\r\n".into(), 502, b""),
        (
            |_| {
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\nabcd"
                    .into()
            },
            502,
            b"",
        ),
        (|head| switch(head, "").replace("Upgrade: websocket", "Upgrade: h2c"), 502, b""),
        // RFC 6455, section 4.1: Connection has to name Upgrade.
        (|head| switch(head, "").replace("Connection: Upgrade\r\n", ""), 502, b""),
        (|head| switch(head, "").replace("Connection: Upgrade", "Connection: keep-alive"), 502, b""),
    ];
    for io in ENGINES {
        for (answer, status, body) in table {
            let application = Application::new(move |head, mut stream| {
                let _ = stream.write_all(answer(head).as_bytes());
                let _ = stream.read_to_end(&mut Vec::new());
            });
            let world = application.world(io);
            let mut client = Client::new(world.address());
            client.send(&websocket(1, "/", &[]));
            let reply = client.reply(1);
            let told = answer(&application.head());
            assert_eq!((reply.status, reply.is_whole), (status, true), "{io} {told}: {reply:?}");
            assert!(status == 502 || reply.body == body, "{io} {told}: {reply:?}");
            assert_eq!(world.metric("staunch_http2_websockets_total"), 0, "{io} {told}");
        }
    }
}

/// Requests for a WebSocket where there is none harm nobody: the server is well, and has answered once.
#[test]
fn a_server_without_websockets_is_well() {
    const ROUNDS: u32 = 12;
    let paths = ["/whole", "/empty", "/open", "/wrong"];
    for io in ENGINES {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let application = Application::new(move |first, mut stream| {
            let mut asked = first.to_owned();
            while !asked.is_empty() {
                counted.fetch_add(1, SeqCst);
                let answer = match asked.split(' ').nth(1) {
                    Some("/empty") => "HTTP/1.1 204 No Content\r\n\r\n",
                    Some("/open") => "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: \n",
                    Some("/wrong") => {
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n"
                    }
                    _ => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                };
                let _ = stream.write_all(answer.as_bytes());
                asked = head(&mut stream);
            }
        });
        let world = application.world(io);
        let mut client = Client::new(world.address());
        let mut streams = (1..).step_by(2);
        for path in (0..ROUNDS).flat_map(|_| paths) {
            let stream = streams.next().expect("a number");
            client.send(&websocket(stream, path, &[]));
            let reply = client.reply(stream);
            assert_eq!((reply.status, reply.is_whole), (502, true), "{io} {path}: {reply:?}");
        }
        assert_eq!(count.load(SeqCst), ROUNDS * 4, "{io}: each is asked for once");
        let of_server = |name: &str, more: &str| {
            let address = application.address;
            world.metric(&format!("{name}{{application=\"{address}\",server=\"{address}\"{more}}}"))
        };
        assert_eq!(of_server("staunch_proxy_up", ""), 1, "{io}");
        assert_eq!(of_server("staunch_proxy_answers_total", ""), u64::from(ROUNDS) * 4, "{io}");
        assert_eq!(of_server("staunch_proxy_retries_total", ""), 0, "{io}");
        for reason in ["unreachable", "timeout", "broken", "short"] {
            let more = format!(",reason=\"{reason}\"");
            assert_eq!(of_server("staunch_proxy_failures_total", &more), 0, "{io}: {reason}");
        }
        let reply = client.get(streams.next().expect("a number"), "/");
        assert_eq!((reply.status, &reply.body[..]), (200, &b"ok"[..]), "{io}: {reply:?}");
    }
}

/// Methods that are never passed on are refused before a body that may never end.
#[test]
fn methods_that_are_not_passed_on_wait_for_no_body() {
    const NO_ERROR: u32 = 0;
    for io in ENGINES {
        let application = Application::new(|_, _| {});
        let settings = format!("proxy = \"{}\"\nbody_timeout = \"1h\"\n", application.address);
        let world = World::with_settings(io, &settings, &[]);
        let mut client = Client::new(world.address());
        let connect = block(&[(":method", "CONNECT"), (":authority", "a:80")]);
        client.send(&frame(HEADERS, END_HEADERS, 1, &connect));
        client.send(&request(3, false, "TRACE", "/", &[]));
        for stream in [1, 3] {
            let reply = client.reply(stream);
            assert_eq!((reply.status, reply.is_whole), (501, true), "{io} {stream}: {reply:?}");
            client.until(stream, |reply| reply.reset == Some(NO_ERROR));
        }
        assert!(application.heads.try_recv().is_err(), "{io}: the application is asked for nothing");
    }
}

/// Ends of either side are told to the other; a connection broken off is RST_STREAM with CANCEL.
#[test]
fn ends_are_passed_on() {
    for io in ENGINES {
        let (ended, ends) = channel();
        let ended = std::sync::Mutex::new(ended);
        let application = Application::new(move |head, mut stream| {
            stream.write_all(switch(head, "").as_bytes()).expect("a proxy");
            let mut first = [0];
            let _ = stream.read(&mut first);
            match first[0] {
                b'e' => return,
                b'r' => {
                    // Bytes that were not read make an end of it a reset.
                    let _ = stream.peek(&mut first);
                    return;
                }
                _ => {}
            }
            let _ = stream.write_all(&first);
            let _ = stream.read_to_end(&mut Vec::new());
            let _ = ended.lock().expect("no panic").send(first[0]);
        });
        let world = application.world(io);
        let mut client = Client::new(world.address());
        for stream in [1, 3, 5, 7] {
            assert_eq!(ask(&mut client, stream, &[]).status, 200, "{io}");
        }
        client.send(&frame(DATA, 0, 1, b"e"));
        let reply = client.reply(1);
        assert!(reply.is_whole && reply.reset.is_none(), "{io}: {reply:?}");
        client.send(&frame(DATA, 0, 3, b"r and more"));
        assert_eq!(client.reply(3).reset, Some(CANCEL), "{io}: {:?}", client.heard(3));
        client.send(&frame(DATA, 0, 5, b"c"));
        client.until(5, |reply| reply.body == b"c");
        client.send(&frame(RST_STREAM, 0, 5, &CANCEL.to_be_bytes()));
        assert_eq!(ends.recv_timeout(HANG), Ok(b'c'), "{io}");
        client.send(&frame(DATA, 0, 7, b"d"));
        client.until(7, |reply| reply.body == b"d");
        drop(client);
        assert_eq!(ends.recv_timeout(HANG), Ok(b'd'), "{io}");
    }
}

/// An application that takes nothing shuts the window of its stream alone; what a client does not take stays
/// with the application.
#[test]
fn windows_hold_both_sides_back() {
    const BYTES: usize = 3 << 20;
    for io in ENGINES {
        let (go, gate) = channel();
        let gate = std::sync::Mutex::new(gate);
        let application = Application::new(move |head, mut stream| {
            stream.write_all(switch(head, "").as_bytes()).expect("a proxy");
            if head.contains("x-way: down") {
                let _ = stream.write_all(&vec![b'd'; BYTES]);
                return;
            }
            let _ = gate.lock().expect("no panic").recv_timeout(HANG);
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all);
            let _ = stream.write_all(format!("{}", all.len()).as_bytes());
        });
        let world = application.world(io);
        let mut client = Client::new(world.address());
        client.opens_windows = false;
        assert_eq!(ask(&mut client, 1, &[("x-way", "down")]).status, 200, "{io}");
        client.until(1, |reply| reply.body.len() == 65_535);
        client.send(&window(0, 1 << 30));
        assert_eq!(ask(&mut client, 3, &[("x-way", "up")]).status, 200, "{io}");
        let mut sent = 0;
        let room = |client: &Client, sent: usize| 65_535 + client.granted_bytes(3) - sent;
        // More than sockets and the proxy hold.
        while sent < 64 << 20 {
            if room(&client, sent) < 8_192 {
                client.settle();
            }
            if room(&client, sent) < 8_192 {
                break;
            }
            client.send(&frame(DATA, 0, 3, &[b'u'; 8_192]));
            sent += 8_192;
        }
        assert!(sent < 64 << 20, "{io}: the application has read nothing");
        client.send(&window(1, 1 << 30));
        client.until(1, |reply| reply.body.len() == BYTES);
        assert!(client.reply(1).is_whole, "{io}");
        go.send(()).expect("an application");
        client.send(&frame(DATA, END_STREAM, 3, b""));
        let reply = client.reply(3);
        assert_eq!(String::from_utf8_lossy(&reply.body), sent.to_string(), "{io}");
    }
}
