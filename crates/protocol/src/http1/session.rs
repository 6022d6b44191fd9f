//! The session: one connection's HTTP/1.1, from the server's side.
//!
//! It owns the order of things on a connection: which bytes are a head, which a body, when a response may
//! begin, when the connection ends. It must never ask the time, and never answer one request twice.
//!
//! # Contract
//! One delivery of bytes is handled so, by engine and tests alike:
//! ```text
//! let joined = session.take_kept(bytes);          // what was kept before, followed by the new bytes
//! let mut input = &joined[..];                    // (borrowed when nothing was kept: the usual case)
//! loop {
//!     match session.poll_event(&mut input, now_ms, &date, out) {
//!         Event::Request(request) => {            // one exchange at a time; answer it
//!             // now: and append fields, a blank line, and the body if the rule says so
//!             let rule = session.begin_response(status, &date, out);
//!             // or later: keep the request (KeptRequest), break, and do the same when the answer is ready;
//!             // or bit by bit: begin_open, pieces by its BodyOut, end_response
//!             // before any of these: read_body, if its body is wanted; then it comes as events, and the
//!             // response may begin before, amid or after it
//!         }
//!         Event::Body(piece) => {}                // of the request last given
//!         Event::BodyEnd => {}
//!         Event::Preface => {}                    // go on with a session of HTTP/2
//!         Event::NeedInput | Event::Close => break,
//!     }
//! }
//! session.keep(input);
//! ```
//! `poll_timeout` is asked after every round; `handle_timeout` is called when it has passed. A session may be
//! left unpolled while output waits (back pressure): keep the input and come back. `poll_event` after
//! `Event::Close` gives `Event::Close` again.
//!
//! # Rules
//! 1. A request is given once, when its head is complete. Its body is given by events if it is asked for, and
//!    else thrown away after the response, before the next request.
//! 2. A body that will not be read (too long, or withheld until 100 is sent) makes its response the last one.
//! 3. What is not a request is answered here, once, and ends the connection: a faulty line as soon as it is
//!    complete, a broken body if it came before its request was given, or is read and no response has begun.
//!    Once the response has begun a broken body only ends the connection.
//! 4. Exactly one deadline runs, or none while others have the word (handler, or output that waits).

mod content;
mod deadlines;
mod heads;
mod keeping;

use super::body::{Discard, Progress};
use super::head::{Head, HeadSearch, OTHER_VERSION, RequestMemory, parse_at_once};
use super::reading::BodyReader;
use super::response::{self, Persistence, Refusal};
use crate::message::{BodyRule, Fields, Request, SelfAnswered};
use crate::preface::is_preface;
use crate::status::Status;

/// What a session has to say.
#[derive(Debug)]
pub enum Event<'i> {
    /// A request to answer.
    Request(Request<'i>),
    /// A piece of the body of the request last given, which was asked for.
    Body(&'i [u8]),
    /// That body has ended.
    BodyEnd,
    /// The connection begins as one of HTTP/2 does (RFC 9113, section 3.3): what is left of the input is for
    /// a session of that, or [`Session::refuse_preface`] is called.
    Preface,
    /// The input is used up, or the session waits for its answer.
    NeedInput,
    /// The session reads no more. Send what it wrote and close; linger (half-close, then read and discard
    /// until the peer closes or the deadline passes) when `linger` is set, because unread bytes of the peer
    /// would otherwise turn the close into a reset that destroys the response.
    Close {
        /// See above.
        linger: bool,
        /// What the session has answered by itself just now.
        answered: Option<SelfAnswered>,
    },
}

/// The protocol state of an HTTP/1.1 connection: 40 bytes, and no heap while idle.
#[derive(Debug)]
pub struct Session {
    /// Nearly always nothing.
    held: Option<Box<Held>>,
    /// When the phase's deadline began to run.
    since_ms: u64,
    discard: Discard,
    search: HeadSearch,
    /// How long before `since_ms` the body under way began.
    body_ms: u32,
    phase: Phase,
    /// The request last given was HEAD.
    omit_body: bool,
    /// What the next response says about the connection.
    persistence: Persistence,
    /// The peer sends no more.
    peer_ended: bool,
}

/// What a session holds on the heap.
#[derive(Debug, Default)]
struct Held {
    /// Input that was not used.
    input: Vec<u8>,
    /// The body of the request last given, if it is asked for and has not ended.
    reader: Option<BodyReader>,
}

const _: () = assert!(size_of::<Session>() <= 40);

/// Which side acts next: the peer, the handler, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The peer, with the head of its first request.
    First,
    /// The peer, with the head of another request that has begun.
    Head,
    /// Neither: the connection is idle between two requests.
    Idle,
    /// The handler, with a response that has not begun.
    Answering,
    /// As `Answering`, of a request whose body was asked for: the peer too, until the body has ended.
    Reading,
    /// The handler, with the rest of a response. The peer too, if the body is asked for.
    Streaming,
    /// The response is complete, and nothing was polled since.
    Answered,
    /// The peer, with the rest of a body.
    Discarding,
    /// Neither: the connection has ended.
    Closed { linger: bool },
}

impl Session {
    /// A new connection: its header deadline runs from `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self {
            held: None,
            since_ms: now_ms,
            discard: Discard::NOTHING,
            search: HeadSearch::default(),
            body_ms: 0,
            phase: Phase::First,
            omit_body: false,
            persistence: Persistence::Implied,
            peer_ended: false,
        }
    }

    /// The next event. Consumes from `input` what it used. May append to `out` complete responses of its own
    /// (errors: 400, 408, 413, 414, 417, 431, 501, 505) followed by `Close`. `date` is the 29 bytes of an
    /// IMF-fixdate (RFC 9110, section 5.6.7).
    pub fn poll_event<'i>(
        &mut self,
        input: &mut &'i [u8],
        now_ms: u64,
        date: &[u8; 29],
        out: &mut Vec<u8>,
    ) -> Event<'i> {
        self.poll_event_by(input, now_ms, date, out, parse_at_once)
    }

    /// As `poll_event`, and cheaper when the head is the one that `memory` holds.
    #[inline]
    pub fn poll_event_with<'i>(
        &mut self,
        memory: &mut RequestMemory,
        input: &mut &'i [u8],
        now_ms: u64,
        date: &[u8; 29],
        out: &mut Vec<u8>,
    ) -> Event<'i> {
        self.poll_event_by(input, now_ms, date, out, |input| memory.parse_at_once(input))
    }

    #[inline]
    fn poll_event_by<'i>(
        &mut self,
        input: &mut &'i [u8],
        now_ms: u64,
        date: &[u8; 29],
        out: &mut Vec<u8>,
        parse: impl FnOnce(&'i [u8]) -> Option<Head<'i>>,
    ) -> Event<'i> {
        self.discard(input, now_ms);
        match self.phase {
            Phase::First | Phase::Head | Phase::Idle => {}
            Phase::Closed { linger } => return Event::Close { linger, answered: None },
            _ => return self.poll_content(input, now_ms, date, out),
        }
        self.skip_empty_line(input);
        if self.phase == Phase::Idle && !input.is_empty() {
            self.phase = Phase::Head;
            self.since_ms = now_ms;
        }
        match self.poll_head(input, parse) {
            Ok(Some(request)) => Event::Request(request),
            Ok(None) if self.peer_ended => self.close(false, None),
            Ok(None) => Event::NeedInput,
            Err(refusal) => self.refuse_head(refusal, input, date, out),
        }
    }

    /// What came is no head of HTTP/1.1: perhaps it is the beginning of a connection of HTTP/2.
    #[cold]
    fn refuse_head<'i>(
        &mut self,
        refusal: Refusal,
        input: &[u8],
        date: &[u8; 29],
        out: &mut Vec<u8>,
    ) -> Event<'i> {
        if self.phase == Phase::First {
            match is_preface(input) {
                Some(true) => return Event::Preface,
                None if !self.peer_ended => return Event::NeedInput,
                None | Some(false) => {}
            }
        }
        let answered = refuse(refusal, input.starts_with(b"HEAD "), date, out);
        self.close(true, Some(answered))
    }

    /// HTTP/2 is not spoken here: answers what gave [`Event::Preface`], and reads no more.
    #[cold]
    pub fn refuse_preface(&mut self, date: &[u8; 29], out: &mut Vec<u8>) -> SelfAnswered {
        let answered = refuse(OTHER_VERSION, false, date, out);
        self.close(true, None);
        answered
    }

    /// Reads on in the body behind the request last given, and no further: for a caller that has no room for
    /// the answer to another one. Else a part of `poll_event`.
    #[inline]
    pub fn discard(&mut self, input: &mut &[u8], now_ms: u64) {
        if self.phase == Phase::Answered {
            self.phase = Phase::Discarding;
            self.since_ms = now_ms;
            self.body_ms = 0;
        }
        if self.phase == Phase::Discarding {
            self.poll_body(input, now_ms);
        }
    }

    /// Begins the final response to the request last given: appends status line, Date, Server and, where
    /// needed, Connection. The caller appends the other fields, the blank line, and the body if the rule says
    /// so. A body that was asked for and has not ended is wanted no more.
    #[inline]
    pub fn begin_response(&mut self, status: Status, date: &[u8; 29], out: &mut Vec<u8>) -> BodyRule {
        if self.phase != Phase::Answering {
            self.answer_early();
        }
        self.phase = Phase::Answered;
        response::begin(status, self.persistence, date, out);
        if self.omit_body || status.has_no_content() { BodyRule::Omit } else { BodyRule::Send }
    }

    /// Whether the response to the request last given begins with status line, Server and Date alone and
    /// carries its body, so that it equals every other such response of the same status and date.
    #[inline]
    pub fn begins_plainly(&self) -> bool {
        self.phase == Phase::Answering && self.persistence == Persistence::Implied && !self.omit_body
    }

    /// As `begin_response`, but the caller already has the bytes, from another response that began plainly
    /// with the same status and date.
    #[inline]
    pub fn begin_elsewhere(&mut self) {
        assert!(self.begins_plainly(), "this response begins differently");
        self.phase = Phase::Answered;
    }

    /// The response under way is the last one of this connection (the server wants to close it). Called
    /// before `begin_response`, the response says so.
    pub fn close_after_response(&mut self) {
        self.persistence = Persistence::Close;
    }

    /// Answers the connection as such, whatever the peer has sent or will, and reads no more.
    #[cold]
    pub fn turn_away(
        &mut self,
        status: Status,
        fields: Fields<'_>,
        body: &[u8],
        date: &[u8; 29],
        out: &mut Vec<u8>,
    ) {
        response::begin(status, Persistence::Close, date, out);
        [fields.lines(), b"\r\n", body].iter().for_each(|part| out.extend_from_slice(part));
        self.held = None;
        self.close(true, None);
    }

    /// The peer half-closed its side. Requests already received are still answered; after them comes `Close`.
    pub fn handle_end(&mut self) {
        self.peer_ended = true;
    }

    /// Goes on discarding the body behind the head last given, and decides what comes after it.
    #[inline]
    fn poll_body(&mut self, input: &mut &[u8], now_ms: u64) {
        let input_bytes = input.len();
        let progress = self.discard.advance(input);
        let is_last = self.persistence.is_last();
        match progress {
            Progress::Done if is_last => _ = self.close(!input.is_empty(), None),
            Progress::Done => {
                self.phase = Phase::Idle;
                self.since_ms = now_ms;
            }
            Progress::Lost | Progress::Broken => _ = self.close(true, None),
            Progress::NeedInput if is_last || self.peer_ended => _ = self.close(true, None),
            Progress::NeedInput if input_bytes > 0 => self.note_progress(now_ms),
            Progress::NeedInput => {}
        }
    }

    /// Reads no more. Lingering is for bytes not read yet, and a peer that ended has none.
    fn close<'i>(&mut self, linger: bool, answered: Option<SelfAnswered>) -> Event<'i> {
        let linger = linger && !self.peer_ended;
        self.phase = Phase::Closed { linger };
        Event::Close { linger, answered }
    }
}

fn refuse(refusal: Refusal, omit_body: bool, date: &[u8; 29], out: &mut Vec<u8>) -> SelfAnswered {
    let body_bytes = response::refuse(refusal, omit_body, date, out);
    SelfAnswered { status: refusal.status, body_bytes }
}

#[cfg(test)]
mod tests;
