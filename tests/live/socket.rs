//! A WebSocket of a test: it sends what it is told and reads message by message.
//!
//! It must never answer by itself but a sign of life, so that what a server does is what is seen.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use staunch_protocol::websocket::{
    Deflater, Happening, Inflater, Opcode, Role, Session, accept_key, append_frame, deflate_message,
};

use crate::world::connect;

/// The key of each handshake.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// The mask of each frame.
const MASK: [u8; 4] = [1, 2, 3, 4];

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    Text(String),
    Binary(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
}

/// The WebSocket of a client.
pub(crate) struct TestSocket {
    pub(crate) stream: TcpStream,
    pub(crate) head: String,
    session: Session,
    inflater: Inflater,
    came: VecDeque<Came>,
    id: u32,
}

/// What a server answers to a handshake with this method, version of HTTP and further field lines.
pub(crate) fn handshake(address: SocketAddr, line: &str, lines: &str) -> (TcpStream, String, Vec<u8>) {
    handshake_on(connect(address), line, lines)
}

/// A handshake on a connection that was made already.
pub(crate) fn handshake_on(mut stream: TcpStream, line: &str, lines: &str) -> (TcpStream, String, Vec<u8>) {
    let host = if lines.contains("Host: ") { "" } else { "Host: a.example\r\n" };
    let head = format!("{line}\r\n{host}{lines}\r\n");
    stream.write_all(head.as_bytes()).expect("a server that reads");
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return (stream, String::from_utf8(bytes).expect("a head of text"), rest);
        }
        let count = stream.read(&mut piece).expect("an answer");
        assert!(count > 0, "no head: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&piece[..count]);
    }
}

/// Field lines of a handshake.
pub(crate) fn upgrade_lines() -> String {
    format!(
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: {KEY}\r\n"
    )
}

impl TestSocket {
    /// Opens one; compression is offered, and taken if the server does.
    pub(crate) fn open(address: SocketAddr, path: &str, lines: &str) -> Self {
        let line = format!("GET {path} HTTP/1.1");
        let (stream, head, rest) = handshake(address, &line, &format!("{}{lines}", upgrade_lines()));
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let accept = format!("Sec-WebSocket-Accept: {}\r\n", accept_key(KEY.as_bytes()).expect("a key"));
        assert!(head.contains(&accept), "{head}");
        let mut socket = Self::of(stream, head);
        socket.take(rest);
        socket
    }

    /// A WebSocket that was opened, with the head of the server's answer.
    pub(crate) fn of(stream: TcpStream, head: String) -> Self {
        let deflates = head.contains("permessage-deflate");
        let session = Session::new(Role::Client, deflates, 32 << 20);
        Self { stream, head, session, inflater: Inflater::default(), came: VecDeque::new(), id: 0 }
    }

    /// Opens one for commands, and connects.
    pub(crate) fn connect(address: SocketAddr, path: &str, lines: &str) -> Self {
        let mut socket = Self::open(address, path, lines);
        let reply = socket.ask("\"connect\":{}");
        assert_eq!(reply["connect"]["pong"], true, "{reply}");
        socket
    }

    fn take(&mut self, mut bytes: Vec<u8>) {
        let mut rest = &mut bytes[..];
        let mut answers = Vec::new();
        while let (Some(happening), behind) =
            self.session.step(rest, &mut self.inflater).expect("a server that keeps to the protocol")
        {
            rest = behind;
            self.came.push_back(match happening {
                Happening::Text("{}") => {
                    append_frame(Opcode::Text, false, Some(MASK), b"{}", &mut answers);
                    continue;
                }
                Happening::Ping(payload) => {
                    append_frame(Opcode::Pong, false, Some(MASK), payload, &mut answers);
                    continue;
                }
                Happening::Text(text) => Came::Text(text.to_owned()),
                Happening::Binary(bytes) => Came::Binary(bytes.to_vec()),
                Happening::Pong(payload) => Came::Pong(payload.to_vec()),
                Happening::Close(code, reason) => {
                    Came::Close(code.map(|code| code.number()), reason.to_owned())
                }
            });
        }
        self.stream.write_all(&answers).expect("a server that reads");
    }

    /// Sends from another thread.
    pub(crate) fn sender(&self) -> Sender {
        Sender(self.stream.try_clone().expect("another handle of a socket"))
    }

    /// Sends bytes as they are.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("a server that reads");
    }

    /// Sends a frame.
    pub(crate) fn send(&mut self, opcode: Opcode, payload: &[u8]) {
        let mut frame = Vec::new();
        append_frame(opcode, false, Some(MASK), payload, &mut frame);
        self.send_bytes(&frame);
    }

    /// Sends a message of text that is compressed.
    pub(crate) fn send_deflated(&mut self, text: &[u8]) {
        let (mut payload, mut frame) = (Vec::new(), Vec::new());
        deflate_message(&mut Deflater::new(6), text, &mut payload);
        append_frame(Opcode::Text, true, Some(MASK), &payload, &mut frame);
        self.send_bytes(&frame);
    }

    /// What came next; `None` when the connection was ended.
    pub(crate) fn next(&mut self) -> Option<Came> {
        let mut piece = vec![0; 64 * 1024];
        while self.came.is_empty() {
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => self.take(piece[..count].to_vec()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("nothing came: {error}"),
            }
        }
        self.came.pop_front()
    }

    /// The next message of text.
    pub(crate) fn text(&mut self) -> String {
        match self.next() {
            Some(Came::Text(text)) => text,
            other => panic!("{other:?} in place of text"),
        }
    }

    /// The code with which the server closes, whatever comes before it.
    pub(crate) fn close_code(&mut self) -> Option<u16> {
        loop {
            match self.next() {
                Some(Came::Close(code, _)) => return code,
                Some(_) => {}
                None => panic!("the connection ended without a close frame"),
            }
        }
    }

    /// Sends a command under the next number.
    pub(crate) fn command(&mut self, ask: &str) -> u32 {
        self.id += 1;
        let text = format!("{{\"id\":{},{ask}}}", self.id);
        self.send(Opcode::Text, text.as_bytes());
        self.id
    }

    /// Sends a command and gives its reply, which is the next message.
    pub(crate) fn ask(&mut self, ask: &str) -> Value {
        let id = self.command(ask);
        let text = self.text();
        let reply: Value = serde_json::from_str(&text).expect("a reply of JSON");
        assert_eq!(reply["id"], id, "{ask}: {text}");
        reply
    }

    /// Subscribes to a channel; gives the result.
    pub(crate) fn subscribe(&mut self, channel: &str, more: &str) -> Value {
        let reply = self.ask(&format!("\"subscribe\":{{\"channel\":{channel:?}{more}}}"));
        assert!(reply["subscribe"].is_object(), "{channel}: {reply}");
        reply["subscribe"].clone()
    }

    /// The next push: channel and publication.
    pub(crate) fn push(&mut self) -> (String, Value) {
        let text = self.text();
        let message: Value = serde_json::from_str(&text).expect("a push of JSON");
        let push = &message["push"];
        assert!(push["pub"].is_object(), "{text}");
        (push["channel"].as_str().expect("a channel").to_owned(), push["pub"].clone())
    }

    /// The publication of the next push; `None` when the server closes or has closed.
    pub(crate) fn next_push(&mut self) -> Option<Value> {
        match self.next() {
            Some(Came::Text(text)) => {
                let message: Value = serde_json::from_str(&text).expect("a push of JSON");
                assert!(message["push"]["pub"].is_object(), "{text}");
                Some(message["push"]["pub"].clone())
            }
            Some(Came::Close(..)) | None => None,
            other => panic!("{other:?} in place of a push"),
        }
    }

    /// The data of the next push.
    pub(crate) fn data(&mut self) -> Value {
        self.push().1["data"].clone()
    }
}

/// The sending half of a [`TestSocket`].
pub(crate) struct Sender(TcpStream);

impl Sender {
    /// Sends a frame.
    pub(crate) fn send(&self, opcode: Opcode, payload: &[u8]) {
        let mut frame = Vec::new();
        append_frame(opcode, false, Some(MASK), payload, &mut frame);
        (&self.0).write_all(&frame).expect("a server that reads");
    }
}
