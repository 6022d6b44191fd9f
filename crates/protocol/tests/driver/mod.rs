//! Drives a session as an engine does, over bytes in any pieces, and notes everything that can be seen of it.
//!
//! Property tests and fuzz targets share it. It must never know what the bytes mean.

use staunch_protocol::http1::{Event, RequestMemory, Session};
use staunch_protocol::{BodyIn, Method, Request, Version};
use staunch_protocol::{Status, limits};

/// What was said, by both sides.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Transcript {
    /// Every request, in order.
    pub(crate) requests: Vec<Heard>,
    /// Everything the session wrote.
    pub(crate) output: Vec<u8>,
    /// Whether the session closed before the peer did.
    pub(crate) closed: bool,
}

impl Transcript {
    /// Whether both say the same, but for this: a session that saw that the last body is broken before it
    /// gave the request has refused it, and one that saw it later has answered and closed.
    #[allow(dead_code, reason = "a test that reads no bodies has no use for it")]
    pub(crate) fn agrees_with(&self, saw_more: &Self) -> bool {
        self == saw_more || self.breaks_off_like(saw_more).unwrap_or(false)
    }

    fn breaks_off_like(&self, refused: &Self) -> Option<bool> {
        let (last, requests) = self.requests.split_last()?;
        let answer = rfind(&self.output, b"HTTP/1.1 200 OK\r\n")?;
        let refusal = rfind(&refused.output, b"HTTP/1.1 400 Bad Request\r\n")?;
        let (before, said) = refused.output.split_at(refusal);
        let says_why =
            last.method == Method::Head || rfind(said, b"400 Bad Request: the body is not").is_some();
        Some(
            requests == &refused.requests[..]
                && last.content == BodyIn::Open
                && self.output[..answer] == *before
                && says_why
                && self.closed
                && refused.closed,
        )
    }
}

fn rfind(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).rposition(|window| window == what)
}

/// A request, copied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    method: Method,
    path: Vec<u8>,
    query: Option<Vec<u8>>,
    host: Vec<u8>,
    http10: bool,
    content: BodyIn,
    repeated: u16,
    head: Vec<u8>,
    /// Accept-Encoding and Range, which are found by their places.
    kept: [Option<Vec<u8>>; 2],
}

impl From<Request<'_>> for Heard {
    fn from(request: Request<'_>) -> Self {
        Self {
            method: request.method,
            path: request.path.to_vec(),
            query: request.query.map(<[u8]>::to_vec),
            host: request.host.to_vec(),
            http10: request.version == Version::Http10,
            content: request.content,
            repeated: request.repeated,
            head: request.head.to_vec(),
            kept: [request.accept_encoding(), request.range()].map(|value| value.map(<[u8]>::to_vec)),
        }
    }
}

/// How to drive.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    /// Bit by bit from the lowest: whether a request is answered later.
    pub(crate) waits: u32,
    /// The fault of the canary: what the session kept is lost.
    pub(crate) forgets: bool,
}

/// Delivers the pieces, then the end of the peer.
pub(crate) fn run<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, manner: Manner) -> Transcript {
    drive(None, pieces, manner)
}

/// Runs one of several sessions that share a memory of heads.
#[allow(dead_code, reason = "a fuzz target that reads bodies has no use for it")]
pub(crate) fn run_with<'p>(
    heads: &mut RequestMemory,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    manner: Manner,
) -> Transcript {
    drive(Some(heads), pieces, manner)
}

fn drive<'p>(
    heads: Option<&mut RequestMemory>,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    manner: Manner,
) -> Transcript {
    let mut driver = Driver {
        heads,
        session: Session::new(0),
        transcript: Transcript::default(),
        waits: manner.waits,
        waiting: None,
    };
    for piece in pieces {
        if manner.forgets {
            driver.session.take_kept(b"");
        }
        let waited = driver.waiting.is_some();
        driver.deliver(piece);
        if waited {
            driver.resume();
        }
    }
    while driver.waiting.is_some() {
        driver.resume();
    }
    driver.transcript.closed = driver.deliver(b"");
    driver.session.handle_end();
    assert!(driver.deliver(b""), "a peer that ended leaves nothing to wait for");
    driver.transcript
}

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

struct Driver<'m> {
    /// None: every head is read.
    heads: Option<&'m mut RequestMemory>,
    session: Session,
    transcript: Transcript,
    waits: u32,
    /// A request that is answered later.
    waiting: Option<Heard>,
}

impl Driver<'_> {
    fn resume(&mut self) {
        if let Some(request) = self.waiting.take() {
            self.answer(request);
        }
        self.deliver(b"");
    }

    fn answer(&mut self, request: Heard) {
        self.waits >>= 1;
        self.transcript.requests.push(request);
        let rule = self.session.begin_response(Status::OK, DATE, &mut self.transcript.output);
        self.transcript.output.extend_from_slice(format!("{rule:?}\r\n\r\n").as_bytes());
    }

    /// Gives the session one delivery, by its contract. Returns whether the session has closed.
    fn deliver(&mut self, bytes: &[u8]) -> bool {
        let joined = self.session.take_kept(bytes);
        let mut input = &joined[..];
        let mut closed = false;
        loop {
            let out = &mut self.transcript.output;
            let event = match &mut self.heads {
                Some(heads) => self.session.poll_event_with(heads, &mut input, 0, DATE, out),
                None => self.session.poll_event(&mut input, 0, DATE, out),
            };
            match event {
                Event::Request(request) if self.waits & 1 == 1 => {
                    self.waiting = Some(Heard::from(request));
                    break;
                }
                Event::Request(request) => self.answer(Heard::from(request)),
                Event::Body(_) | Event::BodyEnd => unreachable!("nobody asked for a body"),
                Event::NeedInput => break,
                Event::Preface => {
                    self.session.refuse_preface(DATE, &mut self.transcript.output);
                    closed = true;
                    break;
                }
                Event::Close { .. } => {
                    closed = true;
                    break;
                }
            }
        }
        self.session.keep(input);
        let kept_bytes_max = if self.waiting.is_some() { usize::MAX } else { limits::HEAD_BYTES_MAX };
        assert!(self.session.kept_bytes() < kept_bytes_max);
        closed
    }
}
