//! Drives a session whose requests are answered in different ways, over bytes in any pieces, and notes what
//! can be seen: every request, its body if that is read, and what was written.
//!
//! A property test and a fuzz target share it. It must never know what the bytes mean.

use staunch_protocol::http1::{BodyOut, Event, Session};
use staunch_protocol::{BodyIn, Fields, Status, Timeouts, Version};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// A request and what became of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    path: Vec<u8>,
    content: BodyIn,
    body: Vec<u8>,
    /// Its answer is complete.
    is_answered: bool,
}

/// What was said, by both sides.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Transcript {
    pub(crate) requests: Vec<Heard>,
    output: Vec<u8>,
    closed: bool,
}

impl Transcript {
    /// Whether both say the same. How much was said before a body in chunks broke depends on what of it had
    /// come with the head: then everything before that request is compared.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let (short, long) = match self.requests.len() <= other.requests.len() {
            true => (self, other),
            false => (other, self),
        };
        let is_chunked = long.requests.last().is_some_and(|last| last.content == BodyIn::Open);
        let before = long.requests.len().saturating_sub(1);
        is_chunked
            && short.closed
            && long.closed
            && short.requests.len() >= before
            && short.requests[..before] == long.requests[..before]
    }
}

/// How the request last given is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    AtOnce,
    /// When its body is there.
    Collected,
    /// The head before its body, the rest behind it.
    Open(BodyOut),
}

struct Driver {
    session: Session,
    transcript: Transcript,
    ways: u64,
    way: Way,
}

/// Delivers the pieces, then the end of the peer. Two bits of `ways` for each request say how it is answered.
pub(crate) fn run<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, ways: u64) -> Transcript {
    let mut driver =
        Driver { session: Session::new(0), transcript: Transcript::default(), ways, way: Way::AtOnce };
    for piece in pieces {
        driver.deliver(piece);
    }
    driver.transcript.closed = driver.deliver(b"");
    driver.session.handle_end();
    assert!(driver.deliver(b""), "a peer that ended leaves nothing to wait for");
    driver.transcript
}

impl Driver {
    /// Gives the session one delivery, by its contract. Returns whether the session has closed.
    fn deliver(&mut self, bytes: &[u8]) -> bool {
        let joined = self.session.take_kept(bytes);
        let mut input = &joined[..];
        let closed = loop {
            let out = &mut self.transcript.output;
            match self.session.poll_event(&mut input, 0, DATE, out) {
                Event::Request(request) => {
                    let (path, content) = (request.path.to_vec(), request.content);
                    let heard = Heard { path, content, body: Vec::new(), is_answered: false };
                    self.transcript.requests.push(heard);
                    let way = self.ways & 3;
                    self.ways = self.ways.rotate_right(2);
                    match way {
                        0 => self.answer(),
                        1 => {
                            self.session.read_body(&request, out);
                            self.way = Way::Collected;
                        }
                        _ => {
                            self.session.read_body(&request, out);
                            let length = (way == 3).then_some(0);
                            let http10 = request.version == Version::Http10;
                            let (status, fields) = (Status::OK, Fields::NONE);
                            let body = self.session.begin_open(status, fields, length, http10, DATE, out);
                            self.way = Way::Open(body);
                        }
                    }
                }
                Event::Body(piece) => {
                    assert!(!piece.is_empty() && self.way != Way::AtOnce);
                    let last = self.transcript.requests.last_mut().expect("a request");
                    last.body.extend_from_slice(piece);
                }
                Event::BodyEnd => match self.way {
                    Way::Open(body) => {
                        assert!(body.end(out));
                        self.session.end_response();
                        self.note_answered();
                    }
                    _ => self.answer(),
                },
                Event::NeedInput => break false,
                Event::Preface => {
                    self.session.refuse_preface(DATE, out);
                    break true;
                }
                Event::Close { .. } => break true,
            }
        };
        self.session.keep(input);
        let _ = self.session.poll_timeout(&Timeouts::default());
        closed
    }

    fn answer(&mut self) {
        self.session.begin_response(Status::OK, DATE, &mut self.transcript.output);
        self.note_answered();
    }

    fn note_answered(&mut self) {
        self.way = Way::AtOnce;
        self.transcript.requests.last_mut().expect("a request").is_answered = true;
    }
}
