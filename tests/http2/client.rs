//! A client of HTTP/2 that sends exactly what a test wants, and keeps what it hears by stream.
//!
//! It knows nothing of the server's code but the reader of its blocks. It must never send what the test did
//! not ask for, but for acknowledgements, and windows while `opens_windows` holds.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use staunch_protocol::http2::PREFACE;
use staunch_protocol::http2::probe::Blocks;

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// A window is opened by no less.
const OWED_BYTES_MIN: u32 = 4_096;

/// The setting of the window that streams begin with.
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

/// The bytes of a frame of HTTP/2.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A window of a stream, or of the connection if that is 0, grows.
pub(crate) fn window(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// A block of fields, each spelled out without compression.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            assert!(text.len() < 127 + 128, "a longer text takes more bytes for its length");
            match text.len().checked_sub(127) {
                Some(more) => block.extend_from_slice(&[127, more as u8]),
                None => block.push(text.len() as u8),
            }
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// HEADERS of a request, which ends with them or not.
pub(crate) fn request(stream: u32, ends: bool, method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path)];
    let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, &block(&[&pseudo, fields].concat()))
}

/// GET as a whole.
pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    request(stream, true, "GET", path, &[])
}

/// Asks for a WebSocket on a stream (RFC 8441).
pub(crate) fn websocket(stream: u32, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let own = [(":protocol", "websocket"), ("sec-websocket-version", "13")];
    request(stream, false, "CONNECT", path, &[&own, fields].concat())
}

/// What has come on a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Statuses of interim answers before it.
    pub(crate) interim: Vec<u16>,
    /// Fields behind the body.
    pub(crate) trailers: Vec<(String, String)>,
    /// The stream ended as it should.
    pub(crate) is_whole: bool,
    /// The stream was reset with this code.
    pub(crate) reset: Option<u32>,
}

impl Reply {
    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// A frame that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// Everything that has come on a connection.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    blocks: Blocks,
    replies: BTreeMap<u32, Reply>,
    /// By how much windows of streams were opened.
    granted_bytes: BTreeMap<u32, usize>,
    /// The code of the last GOAWAY.
    pub(crate) goaway: Option<u32>,
    goaway_text: String,
}

impl Inbox {
    /// Bytes came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// What has come on a stream so far.
    pub(crate) fn reply(&self, stream: u32) -> Reply {
        self.replies.get(&stream).cloned().unwrap_or_default()
    }

    /// The next frame, if it is there as a whole. It is noted.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let head = *self.bytes.first_chunk::<9>()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        assert!(length <= 16_384, "longer than a frame may be: {:?}", String::from_utf8_lossy(&self.bytes));
        let payload = self.bytes.get(9..9 + length)?.to_vec();
        self.bytes.drain(..9 + length);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let frame = Frame { kind: head[3], flags: head[4], stream, payload };
        self.note(&frame);
        Some(frame)
    }

    fn note(&mut self, heard: &Frame) {
        let (flags, stream) = (heard.flags, heard.stream);
        match heard.kind {
            HEADERS => {
                assert!(flags & END_HEADERS != 0, "answers here have small heads");
                let fields = self.blocks.read(&heard.payload).expect("a good block");
                let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
                let mut fields: Vec<(String, String)> =
                    fields.into_iter().map(|(name, value)| (text(name), text(value))).collect();
                let reply = self.replies.entry(stream).or_default();
                assert!(!reply.is_whole, "a head behind the end");
                if reply.status >= 200 {
                    assert!(flags & END_STREAM != 0, "trailers do not end the stream");
                    reply.trailers = fields;
                } else {
                    let (name, status) = fields.remove(0);
                    assert_eq!(name, ":status");
                    reply.interim.extend((reply.status > 0).then_some(reply.status));
                    (reply.status, reply.fields) = (status.parse().expect("a status"), fields);
                }
            }
            DATA => {
                let reply = self.replies.entry(stream).or_default();
                assert!(!reply.is_whole && reply.reset.is_none(), "data behind the end");
                reply.body.extend_from_slice(&heard.payload);
            }
            WINDOW_UPDATE => {
                let bytes = heard.payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
                *self.granted_bytes.entry(stream).or_default() += bytes as usize;
            }
            RST_STREAM => {
                let code = heard.payload.first_chunk().map(|code| u32::from_be_bytes(*code));
                self.replies.entry(stream).or_default().reset = code;
            }
            GOAWAY => {
                let code = heard.payload.get(4..8).and_then(<[u8]>::first_chunk);
                self.goaway_text = String::from_utf8_lossy(heard.payload.get(8..).unwrap_or_default()).into();
                self.goaway = code.map(|code| u32::from_be_bytes(*code));
            }
            _ => {}
        }
        if flags & END_STREAM != 0 && matches!(heard.kind, HEADERS | DATA) {
            self.replies.entry(stream).or_default().is_whole = true;
        }
    }
}

/// A client of HTTP/2 with one connection.
pub(crate) struct Client {
    stream: TcpStream,
    inbox: Inbox,
    /// Whether windows are opened by what has come: by some frames at a time, as clients do.
    pub(crate) opens_windows: bool,
    /// By stream, 0 for the connection: what has come and is not told yet.
    owed: BTreeMap<u32, u32>,
}

impl Client {
    /// Connects, and says what a client says first.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::with_settings(address, &[])
    }

    /// A client that begins with these settings.
    pub(crate) fn with_settings(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut client = Self::silent(address);
        let pairs = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        let settings: Vec<u8> = pairs.collect();
        client.send(&[&PREFACE[..], &frame(SETTINGS, 0, 0, &settings)].concat());
        client
    }

    /// Connects, and says nothing.
    pub(crate) fn silent(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("room in the queue");
        stream.set_read_timeout(Some(PATIENCE)).expect("an open socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("an open socket");
        stream.set_nodelay(true).expect("an open socket");
        Self { stream, inbox: Inbox::default(), opens_windows: true, owed: BTreeMap::new() }
    }

    /// Sends. That the server has closed already is seen by what comes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends no more.
    pub(crate) fn half_close(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// The code of the last GOAWAY.
    pub(crate) fn goaway(&self) -> Option<u32> {
        self.inbox.goaway
    }

    /// By how much the server has opened the window of a stream.
    pub(crate) fn granted_bytes(&self, stream: u32) -> usize {
        self.inbox.granted_bytes.get(&stream).copied().unwrap_or(0)
    }

    /// What has come on a stream so far.
    pub(crate) fn heard(&self, stream: u32) -> Reply {
        self.inbox.reply(stream)
    }

    /// What comes on a stream until it ends or is reset.
    pub(crate) fn reply(&mut self, stream: u32) -> Reply {
        loop {
            let heard = self.heard(stream);
            if heard.is_whole || heard.reset.is_some() {
                return heard;
            }
            assert!(self.next().is_some(), "closed before the end of stream {stream}: {heard:?}");
        }
    }

    /// Waits until what has come on a stream is as it should be.
    pub(crate) fn until(&mut self, stream: u32, holds: impl Fn(&Reply) -> bool) {
        while !holds(&self.heard(stream)) {
            assert!(self.next().is_some(), "closed: {:?}, {}", self.goaway(), self.inbox.goaway_text);
        }
    }

    /// Asks, and waits for the whole answer.
    pub(crate) fn get(&mut self, stream: u32, path: &str) -> Reply {
        self.send(&get(stream, path));
        self.reply(stream)
    }

    /// Waits until all that was sent before has been dealt with.
    pub(crate) fn settle(&mut self) {
        self.send(&frame(PING, 0, 0, b"settled?"));
        while let Some(frame) = self.next() {
            if (frame.kind, frame.flags) == (PING, ACK) && frame.payload == b"settled?" {
                return;
            }
        }
        panic!("closed before the ping came back: {:?}", self.goaway());
    }

    /// Waits for the end of the connection, without another word.
    pub(crate) fn ends(&mut self) {
        while self.hear().is_some() {}
    }

    /// The next frame, which is noted and answered; `None` when the server has closed.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let heard = self.hear()?;
        self.react(&heard);
        Some(heard)
    }

    fn hear(&mut self) -> Option<Frame> {
        loop {
            if let Some(heard) = self.inbox.next() {
                return Some(heard);
            }
            let mut piece = [0; 65_536];
            match self.stream.read(&mut piece) {
                // A reset is an end too: the server closed while we sent.
                Ok(0) => return None,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(count) => self.inbox.push(&piece[..count]),
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// Acknowledges, and opens windows.
    fn react(&mut self, heard: &Frame) {
        match heard.kind {
            DATA if self.opens_windows && !heard.payload.is_empty() => {
                for stream in [0, heard.stream] {
                    let owed = self.owed.entry(stream).or_default();
                    *owed += heard.payload.len() as u32;
                    if *owed >= OWED_BYTES_MIN {
                        let bytes = std::mem::take(owed);
                        self.send(&window(stream, bytes));
                    }
                }
            }
            SETTINGS if heard.flags & ACK == 0 => self.send(&frame(SETTINGS, ACK, 0, b"")),
            PING if heard.flags & ACK == 0 => self.send(&frame(PING, ACK, 0, &heard.payload)),
            _ => {}
        }
    }
}
