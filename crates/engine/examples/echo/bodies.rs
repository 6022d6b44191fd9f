//! Bodies of requests that are read before they are answered, and bodies that come back.
//!
//! It owns what a request wants of both, and what was taken of a body so far.

use staunch_engine::{Body, Open, Piece};
use staunch_protocol::Request;

/// A body that is read before it is answered.
pub(crate) struct Read {
    pub(crate) kept: Vec<u8>,
    /// The answer begins when so much has come.
    pub(crate) at_bytes: usize,
    /// Bytes that are taken at a time.
    pub(crate) step_bytes: usize,
    /// Time before which nothing of the body is taken.
    pub(crate) held_until_ms: Option<u64>,
    pub(crate) has_ended: bool,
    pub(crate) then: Then,
}

/// The answer to a request whose body was read.
pub(crate) enum Then {
    /// By what was read, and the rest is thrown away.
    Stop,
    /// As `Stop`, and the request waits before.
    Wait,
    /// The whole body comes back, under this length if there is one.
    Echo { length_bytes: Option<u64>, has_trailers: bool },
}

/// A body that comes back.
#[derive(Default)]
pub(crate) struct Echoing {
    /// Bytes of the body that came before the answer began.
    pub(crate) kept: Vec<u8>,
    pub(crate) has_ended: bool,
    pub(crate) has_trailers: bool,
}

impl Read {
    /// As the request wants it.
    pub(crate) fn new(request: &Request<'_>, unix_ms: u64) -> Self {
        let size = |name| query(request, name).and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
        let then = match query(request, "then") {
            Some("echo") => Then::echo(request),
            Some("wait") => Then::Wait,
            _ => Then::Stop,
        };
        let held_until_ms = milliseconds(request, "hold").map(|ms| unix_ms + ms);
        let (at_bytes, step_bytes) = (size("at"), size("step"));
        Self { kept: Vec::new(), at_bytes, step_bytes, held_until_ms, has_ended: false, then }
    }

    /// The answer begins with the first bytes.
    pub(crate) fn echo(request: &Request<'_>) -> Self {
        let (kept, step_bytes, then) = (Vec::new(), usize::MAX, Then::echo(request));
        Self { kept, at_bytes: 1, step_bytes, held_until_ms: None, has_ended: false, then }
    }
}

impl Then {
    /// The body comes back as the request wants it.
    pub(crate) fn echo(request: &Request<'_>) -> Self {
        let length_bytes = query(request, "length").and_then(|text| text.parse().ok());
        Self::Echo { length_bytes, has_trailers: query(request, "trailers").is_some() }
    }
}

impl Echoing {
    /// Sends what came before the answer began.
    pub(crate) fn go_on(&mut self, open: &mut Open<'_>) {
        if !self.kept.is_empty() {
            open.push(Piece::Bytes(std::mem::take(&mut self.kept)));
        }
        match (self.has_ended, self.has_trailers) {
            (true, true) => open.end_with(b"T: x\r\n"),
            (true, false) => open.end(),
            (false, _) => {}
        }
    }

    /// Sends back what comes.
    pub(crate) fn take(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        match body {
            Body::Piece(piece) => self.kept.extend_from_slice(piece),
            Body::End => self.has_ended = true,
        }
        self.go_on(open);
    }
}

/// The value of a parameter that is a time.
pub(crate) fn milliseconds(request: &Request<'_>, name: &str) -> Option<u64> {
    query(request, name)?.strip_suffix("ms")?.parse().ok()
}

/// The value of a parameter.
pub(crate) fn query<'a>(request: &Request<'a>, name: &str) -> Option<&'a str> {
    let query = std::str::from_utf8(request.query?).ok()?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
