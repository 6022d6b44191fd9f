//! A plain caller of an HTTP/2 session, and frames as a client writes them: for tests and fuzzing.
//!
//! It checks on the way what must always hold: no window is passed, and every request is over exactly once.
//! It must never look into the session.

use std::collections::BTreeMap;

use staunch_protocol::http2::{Event, HeadFields, Opening, PREFACE, ResponseHead, Session, WorkerMemory};
use staunch_protocol::{BodyIn, BodyRule, Fields, Status, Timeouts};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";
/// What a caller writes at most before it waits for its socket.
const OUT_BYTES_MAX: usize = 64 * 1024;

/// The bytes of a frame of HTTP/2.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Preface and settings.
#[allow(dead_code, reason = "a fuzz target sends its own")]
pub(crate) fn hello() -> Vec<u8> {
    [&PREFACE[..], &frame(4, 0, 0, b"")].concat()
}

/// A block of fields, each spelled out without compression.
#[allow(dead_code, reason = "a fuzz target sends its own")]
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            let length = text.len();
            if length < 127 {
                block.push(length as u8);
            } else {
                let more = length - 127;
                block.extend_from_slice(&[
                    127,
                    more as u8 | 0x80,
                    (more >> 7) as u8 | 0x80,
                    (more >> 14) as u8,
                ]);
            }
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Fields of a request.
#[allow(dead_code, reason = "a fuzz target sends its own")]
pub(crate) fn request<'a>(method: &'a str, path: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![(":method", method), (":scheme", "https"), (":authority", "a.example"), (":path", path)]
}

/// GET as a whole.
#[allow(dead_code, reason = "a fuzz target sends its own")]
pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(1, 5, stream, &block(&request("GET", path)))
}

/// A frame that came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// The frames that bytes are made of.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<Out> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        assert!(length <= 16_384, "a frame is longer than what every peer takes");
        let (payload, behind) = rest.split_at(length);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        frames.push(Out { kind: head[3], flags: head[4], stream, payload: payload.to_vec() });
        bytes = behind;
    }
    assert!(bytes.is_empty(), "half a frame");
    frames
}

/// How a caller acts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    /// Bit by bit from the lowest, a request each, and then again: whether it is answered later.
    pub(crate) waits: u32,
    /// Whether answers that wait for a window go on.
    pub(crate) goes_on: bool,
    /// Whether bodies are read.
    pub(crate) reads: bool,
}

/// What a caller knows of a request.
#[derive(Debug)]
struct Exchange {
    /// What is left of the body of its answer; none before it has begun.
    left: Option<u64>,
    size: u64,
    is_head: bool,
}

/// What the peer allows, as far as was delivered.
#[derive(Debug)]
struct Windows {
    initial: i64,
    connection: i64,
    streams: BTreeMap<u32, i64>,
}

/// The caller.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) session: Session,
    pub(crate) memory: WorkerMemory,
    pub(crate) now_ms: u64,
    /// What happened, in words.
    pub(crate) told: Vec<String>,
    pub(crate) out: Vec<u8>,
    opening: Opening,
    manner: Manner,
    exchanges: BTreeMap<u32, Exchange>,
    /// Requests given, and how many are over.
    pub(crate) given: usize,
    pub(crate) over: usize,
    windows: Windows,
    checked_bytes: usize,
}

impl Driver {
    pub(crate) fn new(manner: Manner) -> Self {
        let mut out = Vec::new();
        Self {
            session: Session::new(0, &mut out),
            memory: WorkerMemory::new([1, 2]),
            now_ms: 0,
            told: Vec::new(),
            out,
            opening: Opening::new(DATE),
            manner,
            exchanges: BTreeMap::new(),
            given: 0,
            over: 0,
            windows: Windows { initial: 65_535, connection: 65_535, streams: BTreeMap::new() },
            checked_bytes: 0,
        }
    }

    /// Gives the session one delivery, by its contract. Returns whether the session has closed.
    pub(crate) fn deliver(&mut self, bytes: &[u8]) -> bool {
        let joined = self.session.take_kept(bytes).into_owned();
        let mut input = &joined[..];
        let closed = self.poll(&mut input);
        self.session.keep(input, self.now_ms);
        if !closed && self.manner.goes_on {
            self.go_on();
        }
        assert!(self.session.kept_bytes() < 9 + 16_384, "less than a frame is kept");
        closed
    }

    fn poll(&mut self, input: &mut &[u8]) -> bool {
        let mut body = None;
        loop {
            if let Some((stream, bytes)) = body.take() {
                self.session.taken(stream, bytes, self.now_ms, &mut self.out);
            }
            let (session, memory) = (&mut self.session, &mut self.memory);
            let event = session.poll_event(memory, input, self.now_ms, &self.opening, &mut self.out);
            match event {
                Event::Request { stream, request } => {
                    let line = format!("{stream} {:?} {}", request.method, request.path.escape_ascii());
                    self.told.push(format!("{line} {:?} {}", request.content, request.head.escape_ascii()));
                    let size = request.path.get(1..).unwrap_or_default();
                    let size = std::str::from_utf8(size).ok().and_then(|size| size.parse().ok()).unwrap_or(0);
                    let is_head = request.method == staunch_protocol::Method::Head;
                    let has_body = request.content != BodyIn::None;
                    self.begin(stream, Exchange { left: None, size, is_head }, has_body);
                }
                Event::Body { stream, piece } => {
                    assert!(self.exchanges.contains_key(&stream), "a body of no request");
                    self.told.push(format!("{stream} body {}", piece.escape_ascii()));
                    body = self.manner.reads.then_some((stream, piece.len()));
                }
                Event::BodyEnd { stream } => {
                    assert!(self.exchanges.contains_key(&stream), "the end of no request's body");
                    self.told.push(format!("{stream} end"));
                }
                Event::Reset { stream, code } => {
                    self.told.push(format!("{stream} reset {}", code.name()));
                    assert!(self.exchanges.remove(&stream).is_some(), "the end of no request");
                    self.over += 1;
                }
                Event::Refused { stream, answered } => {
                    let status = answered.map(|answered| answered.status.code());
                    self.told.push(format!("{stream} refused {status:?}"));
                }
                Event::NeedInput => return false,
                Event::Close { fault, .. } => {
                    if let Some(fault) = fault {
                        self.told.push(format!("closed: {fault}"));
                    }
                    self.over += self.exchanges.len();
                    self.exchanges.clear();
                    return true;
                }
            }
        }
    }

    fn begin(&mut self, stream: u32, exchange: Exchange, has_body: bool) {
        self.given += 1;
        let waits = self.manner.waits & 1 == 1;
        self.manner.waits = self.manner.waits.rotate_right(1);
        assert!(self.exchanges.insert(stream, exchange).is_none(), "a request twice");
        if has_body && self.manner.reads {
            self.session.read_body(stream, self.now_ms, &mut self.out);
        }
        if !waits {
            self.answer(stream);
        }
    }

    /// Begins the answer, and gives as much of it as is granted at once.
    pub(crate) fn answer(&mut self, stream: u32) {
        let exchange = self.exchanges.get_mut(&stream).expect("a request");
        let (size, is_head) = (exchange.size, exchange.is_head);
        exchange.left = Some(size);
        let head = ResponseHead {
            status: Status::OK,
            fields: HeadFields::Lines(Fields::new(b"Content-Type: text/plain\r\n")),
            has_body: size > 0,
        };
        let rule = self.session.begin_response(stream, head, self.now_ms, &self.opening, &mut self.out);
        assert_eq!(rule == BodyRule::Omit, is_head || size == 0);
        match rule {
            BodyRule::Omit => self.finish(stream),
            BodyRule::Send => _ = self.send(stream),
        }
    }

    /// Sends a piece of an answer.
    fn send(&mut self, stream: u32) -> u64 {
        let exchange = self.exchanges.get_mut(&stream).expect("an answer that goes on");
        let left = exchange.left.as_mut().expect("an answer that has begun");
        let granted = self.session.begin_data(stream, *left, true, self.now_ms, &mut self.out);
        assert!(granted <= *left);
        self.out.resize(self.out.len() + granted as usize, b'x');
        *left -= granted;
        if *left == 0 {
            self.finish(stream);
        }
        granted
    }

    fn finish(&mut self, stream: u32) {
        assert!(self.exchanges.remove(&stream).is_some());
        self.over += 1;
    }

    /// Sends what windows and the socket allow.
    pub(crate) fn go_on(&mut self) {
        let start = self.out.len();
        while self.out.len() - start < OUT_BYTES_MAX
            && let Some(stream) = self.session.next_to_send(&mut self.out)
        {
            assert!(self.send(stream) > 0, "a stream was named that may not send");
        }
    }

    /// Requests that wait are answered.
    pub(crate) fn answer_all(&mut self) {
        let waiting = self.exchanges.iter().filter(|(_, exchange)| exchange.left.is_none());
        for stream in waiting.map(|(stream, _)| *stream).collect::<Vec<_>>() {
            self.answer(stream);
        }
    }

    /// The frames written since this was asked last.
    pub(crate) fn new_frames(&mut self) -> Vec<Out> {
        let new = frames(&self.out[self.checked_bytes..]);
        self.checked_bytes = self.out.len();
        new
    }

    /// Notes what frames of the peer allow: to be called before they are delivered, with whole good frames.
    #[allow(dead_code, reason = "a fuzz target does not know what it sends")]
    pub(crate) fn allow(&mut self, sent: &[u8]) {
        for frame in frames(sent) {
            let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("4 bytes"));
            match frame.kind {
                4 if frame.flags & 1 == 0 => {
                    for setting in frame.payload.chunks(6).filter(|setting| setting[..2] == [0, 4]) {
                        let initial = i64::from(number(&setting[2..]));
                        let change = initial - self.windows.initial;
                        self.windows.streams.values_mut().for_each(|window| *window += change);
                        self.windows.initial = initial;
                    }
                }
                8 if frame.stream == 0 => self.windows.connection += i64::from(number(&frame.payload)),
                8 => *self.window(frame.stream) += i64::from(number(&frame.payload)),
                _ => {}
            }
        }
    }

    fn window(&mut self, stream: u32) -> &mut i64 {
        let initial = self.windows.initial;
        self.windows.streams.entry(stream).or_insert(initial)
    }

    /// Checks that what was written keeps to what was allowed.
    #[allow(dead_code, reason = "a fuzz target does not know what it sends")]
    pub(crate) fn check_windows(&mut self) {
        for frame in self.new_frames() {
            if frame.kind == 0 && !frame.payload.is_empty() {
                let count = frame.payload.len() as i64;
                self.windows.connection -= count;
                *self.window(frame.stream) -= count;
                assert!(self.windows.connection >= 0, "the window of the connection is passed");
                assert!(*self.window(frame.stream) >= 0, "the window of stream {} is passed", frame.stream);
            }
        }
    }

    /// Time passes, and with it what waits for too long.
    pub(crate) fn wait(&mut self, ms: u64) -> bool {
        self.now_ms += ms;
        let timeouts = Timeouts::default();
        if let Some((at_ms, _)) = self.session.poll_timeout(&timeouts)
            && at_ms <= self.now_ms
        {
            self.session.handle_timeout(&timeouts, self.now_ms, &mut self.out);
        }
        self.deliver(b"")
    }

    /// The end of the peer. Whether nothing is left.
    pub(crate) fn end(&mut self) {
        self.answer_all();
        self.session.handle_end();
        self.deliver(b"");
        while self.session.next_to_send(&mut self.out).is_some() {
            self.go_on();
        }
        if !self.deliver(b"") {
            assert!(
                !self.exchanges.is_empty(),
                "a session without requests goes on behind the end of its peer"
            );
            self.wait(1_000_000);
            assert!(self.deliver(b""), "a peer that ended leaves nothing to wait for");
        }
        assert_eq!((self.given, self.exchanges.len()), (self.over, 0), "each request is over once");
        self.session.release(&mut self.memory);
        assert_eq!(self.memory.fields_bytes(), 0, "all fields are given back");
    }
}
