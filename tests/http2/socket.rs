//! A WebSocket of a client on a stream of HTTP/2 (RFC 8441): messages out, messages in.
//!
//! This client must never send more than the server's windows allow, nor answer by itself.

use std::collections::VecDeque;

use staunch_protocol::websocket::{
    Deflater, Happening, Inflater, Opcode, Role, Session, append_frame, deflate_message,
};

use crate::client::{Client, DATA, Reply, frame, websocket};

/// The mask of each frame.
const MASK: [u8; 4] = [1, 2, 3, 4];
/// Bytes that a stream may send before it hears of windows.
const WINDOW_BYTES: usize = 65_535;

/// An event on the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    Text(String),
    Binary(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>),
}

/// A WebSocket on a stream of a client's connection.
pub(crate) struct StreamSocket {
    pub(crate) stream: u32,
    session: Session,
    inflater: Inflater,
    /// Bytes of the stream's body that were read.
    read_bytes: usize,
    came: VecDeque<Came>,
    sent_bytes: usize,
    id: u32,
}

/// A frame of a client.
pub(crate) fn masked(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_frame(opcode, false, Some(MASK), payload, &mut bytes);
    bytes
}

impl StreamSocket {
    /// Opens one, with these further fields.
    pub(crate) fn open(client: &mut Client, stream: u32, path: &str, fields: &[(&str, &str)]) -> Self {
        client.send(&websocket(stream, path, fields));
        client.until(stream, |reply| reply.status > 0);
        let head = client.heard(stream);
        assert_eq!((head.status, head.is_whole), (200, false), "{path}: {head:?}");
        for name in ["sec-websocket-accept", "upgrade", "connection", "content-length"] {
            assert_eq!(head.field(name), None, "{path}: {name}");
        }
        let extensions = head.field("sec-websocket-extensions");
        let session = Session::new(Role::Client, extensions.is_some(), 32 << 20);
        let (inflater, came) = (Inflater::default(), VecDeque::new());
        Self { stream, session, inflater, read_bytes: 0, came, sent_bytes: 0, id: 0 }
    }

    /// Opens one for commands, and connects.
    pub(crate) fn connect(client: &mut Client, stream: u32, path: &str, token: &str) -> Self {
        let mut socket = Self::open(client, stream, path, &[]);
        let asked = if token.is_empty() { String::new() } else { format!("\"token\":\"{token}\"") };
        let reply = socket.ask(client, &format!("\"connect\":{{{asked}}}"));
        assert!(reply.contains("\"connect\":{"), "{reply}");
        socket
    }

    /// Sends bytes as they are, as far as the server's window goes, and then as that opens.
    pub(crate) fn send_bytes(&mut self, client: &mut Client, bytes: &[u8]) {
        for piece in bytes.chunks(16_384) {
            while self.window_bytes(client) < piece.len() {
                assert!(client.next().is_some(), "closed before stream {} has room", self.stream);
            }
            self.sent_bytes += piece.len();
            client.send(&frame(DATA, 0, self.stream, piece));
        }
    }

    /// How much the server takes of the stream now.
    pub(crate) fn window_bytes(&self, client: &Client) -> usize {
        WINDOW_BYTES + client.granted_bytes(self.stream) - self.sent_bytes
    }

    /// Sends a frame.
    pub(crate) fn send(&mut self, client: &mut Client, opcode: Opcode, payload: &[u8]) {
        self.send_bytes(client, &masked(opcode, payload));
    }

    /// Sends a message of text that is compressed.
    pub(crate) fn send_deflated(&mut self, client: &mut Client, text: &[u8]) {
        let (mut payload, mut bytes) = (Vec::new(), Vec::new());
        deflate_message(&mut Deflater::new(6), text, &mut payload);
        append_frame(Opcode::Text, true, Some(MASK), &payload, &mut bytes);
        self.send_bytes(client, &bytes);
    }

    /// The next event; `None` when the stream has ended.
    pub(crate) fn next(&mut self, client: &mut Client) -> Option<Came> {
        loop {
            if let Some(came) = self.came.pop_front() {
                return Some(came);
            }
            let reply = client.heard(self.stream);
            if reply.body.len() > self.read_bytes {
                self.read(&reply);
            } else if reply.is_whole || reply.reset.is_some() {
                return None;
            } else {
                assert!(client.next().is_some(), "closed before the end of stream {}", self.stream);
            }
        }
    }

    fn read(&mut self, reply: &Reply) {
        let mut bytes = reply.body[self.read_bytes..].to_vec();
        self.read_bytes = reply.body.len();
        let mut rest = &mut bytes[..];
        while let (Some(happening), behind) =
            self.session.step(rest, &mut self.inflater).expect("a server that keeps to the protocol")
        {
            rest = behind;
            self.came.push_back(match happening {
                Happening::Text(text) => Came::Text(text.to_owned()),
                Happening::Binary(bytes) => Came::Binary(bytes.to_vec()),
                Happening::Pong(payload) => Came::Pong(payload.to_vec()),
                Happening::Close(code, _) => Came::Close(code.map(|code| code.number())),
                Happening::Ping(_) => continue,
            });
        }
    }

    /// The next message of text, but for signs of life.
    pub(crate) fn text(&mut self, client: &mut Client) -> String {
        loop {
            match self.next(client) {
                Some(Came::Text(text)) if text == "{}" => {}
                Some(Came::Text(text)) => return text,
                other => panic!("{other:?} in place of text on stream {}", self.stream),
            }
        }
    }

    /// The code with which the server closes, whatever comes before it.
    pub(crate) fn close_code(&mut self, client: &mut Client) -> Option<u16> {
        loop {
            match self.next(client) {
                Some(Came::Close(code)) => return code,
                Some(_) => {}
                None => panic!("stream {} ended without a close frame", self.stream),
            }
        }
    }

    /// Sends a command under the next number.
    pub(crate) fn command(&mut self, client: &mut Client, ask: &str) {
        self.id += 1;
        let text = format!("{{\"id\":{},{ask}}}", self.id);
        self.send(client, Opcode::Text, text.as_bytes());
    }

    /// Sends a command and gives the next message.
    pub(crate) fn ask(&mut self, client: &mut Client, ask: &str) -> String {
        self.command(client, ask);
        self.text(client)
    }
}
