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
//!     let before = input;
//!     match session.poll_event(&mut input, now_ms, &date, out) {
//!         Event::Request(request) => {            // answer it before the next poll, either
//!             // now: and append fields, a blank line, and the body if the rule says so
//!             let rule = session.begin_response(status, &date, out);
//!             // or later: input = before; session.wait(); break;
//!             // then, when the answer is ready, session.resume() and begin again with no new bytes
//!         }
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
//! 1. A request is given when its head is complete. Its body is thrown away afterwards, before the next
//!    request.
//! 2. A body that will not be read (too long, or withheld until 100 is sent) makes its response the last one.
//! 3. What is not a request is answered here, once, and ends the connection: a faulty line as soon as it is
//!    complete, a broken body if it came before its request was given (or given again). Once the request is
//!    answered a broken body only ends the connection.
//! 4. Exactly one deadline runs, or none while others have the word (handler, or output that waits).

use std::borrow::Cow;

use super::body::{Discard, Progress, check_chunked};
use super::head::{Head, HeadSearch, RequestMemory, parse_at_once, parse_head};
use super::request::Request;
use super::response::{self, Persistence, Refusal};
use crate::message::{BodyIn, Fields, Method};
use crate::status::Status;
use crate::timer::{Deadline, Timeouts};

/// What a session has to say.
#[derive(Debug)]
pub enum Event<'i> {
    /// A request to answer.
    Request(Request<'i>),
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

/// What a session answered by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfAnswered {
    /// The status.
    pub status: Status,
    /// Length of the body: a sentence.
    pub body_bytes: usize,
}

/// What must follow the fields and the blank line of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRule {
    /// The body.
    Send,
    /// Nothing: the request was HEAD, or the status has no body. The fields are the same as with a body.
    Omit,
}

/// One HTTP/1.1 connection. At most 48 bytes, and no heap while idle.
#[derive(Debug)]
pub struct Session {
    /// Boxed twice to be one word while empty, which is nearly always.
    #[expect(clippy::box_collection, reason = "one word instead of three in every idle connection")]
    kept: Option<Box<Vec<u8>>>,
    /// When the phase's deadline began to run.
    since_ms: u64,
    discard: Discard,
    search: HeadSearch,
    /// Bytes before the head of the request last given, in the input of the poll that gave it.
    before_head_bytes: u32,
    /// How long before `since_ms` the body under way began.
    body_ms: u32,
    phase: Phase,
    /// The next poll sees the input of the request last given once more, from its beginning.
    rewound: bool,
    /// An empty line before this request was skipped.
    empty_line_skipped: bool,
    /// The request last given was HEAD.
    omit_body: bool,
    /// What the next response says about the connection.
    persistence: Persistence,
    /// The peer sends no more.
    peer_ended: bool,
}

const _: () = assert!(size_of::<Session>() <= 48);

/// Who has the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The peer, with the head of its first request or of one that has begun.
    Head,
    /// Nobody: the connection is idle between two requests.
    Idle,
    /// The handler, now.
    Answering,
    /// The handler, later.
    Waiting,
    /// The response was begun, and nothing was polled since.
    Answered,
    /// The peer, with the rest of a body.
    Discarding,
    /// Nobody ever more.
    Closed { linger: bool },
}

impl Session {
    /// A new connection: its header deadline runs from `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self {
            kept: None,
            since_ms: now_ms,
            discard: Discard::NOTHING,
            search: HeadSearch::default(),
            before_head_bytes: 0,
            body_ms: 0,
            phase: Phase::Head,
            rewound: false,
            empty_line_skipped: false,
            omit_body: false,
            persistence: Persistence::Implied,
            peer_ended: false,
        }
    }

    /// The kept bytes followed by `bytes`; nothing is kept any more.
    #[inline]
    pub fn take_kept<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match self.kept.take() {
            None => Cow::Borrowed(bytes),
            Some(mut kept) => {
                kept.reserve_exact(bytes.len());
                kept.extend_from_slice(bytes);
                Cow::Owned(*kept)
            }
        }
    }

    /// Keeps what was not used (a partial head, or requests behind an answer not ready). Nothing after
    /// `Close`.
    #[inline]
    pub fn keep(&mut self, input: &[u8]) {
        self.keep_last(Cow::Borrowed(input), input.len());
    }

    /// As `keep`, for the last `count` bytes of what `take_kept` gave: those that were kept before are not
    /// copied.
    #[inline]
    pub fn keep_last(&mut self, taken: Cow<'_, [u8]>, count: usize) {
        if count > 0 && !matches!(self.phase, Phase::Closed { .. }) {
            self.keep_some(taken, count);
        }
    }

    fn keep_some(&mut self, taken: Cow<'_, [u8]>, count: usize) {
        let used_bytes = taken.len() - count;
        self.kept = Some(Box::new(match taken {
            Cow::Borrowed(bytes) => bytes[used_bytes..].to_vec(),
            Cow::Owned(mut bytes) => {
                bytes.drain(..used_bytes);
                bytes.shrink_to_fit();
                bytes
            }
        }));
    }

    /// Bytes kept. Above [`crate::limits::SPILL_BYTES_MAX`] the caller stops receiving until it falls.
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.len())
    }

    /// Memory taken by what is kept, in bytes.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| size_of::<Vec<u8>>() + kept.capacity())
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
        let input_bytes = input.len();
        if self.rewound {
            self.rewound = false;
            *input = input.get(self.before_head_bytes as usize..).unwrap_or_default();
        }
        self.discard(input, now_ms);
        match self.phase {
            Phase::Head | Phase::Idle => {}
            Phase::Closed { linger } => return Event::Close { linger, answered: None },
            _ => return Event::NeedInput,
        }
        self.skip_empty_line(input);
        if self.phase == Phase::Idle && !input.is_empty() {
            self.phase = Phase::Head;
            self.since_ms = now_ms;
        }
        match self.poll_head(input, input_bytes, parse) {
            Ok(Some(request)) => Event::Request(request),
            Ok(None) if self.peer_ended => self.close(false, None),
            Ok(None) => Event::NeedInput,
            Err(refusal) => {
                let answered = refuse(refusal, input.starts_with(b"HEAD "), date, out);
                self.close(true, Some(answered))
            }
        }
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
    /// so.
    #[inline]
    pub fn begin_response(&mut self, status: Status, date: &[u8; 29], out: &mut Vec<u8>) -> BodyRule {
        assert!(self.phase == Phase::Answering, "a response without a request");
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

    /// The request last given will be answered later: polls give `NeedInput` until `resume`. No deadline
    /// runs.
    pub fn wait(&mut self) {
        assert!(self.phase == Phase::Answering, "no request to wait for");
        self.phase = Phase::Waiting;
    }

    /// The answer is ready: the same request will be given again from the kept input, unless what came of its
    /// body meanwhile is broken.
    pub fn resume(&mut self) {
        assert!(self.phase == Phase::Waiting, "nothing waits for an answer");
        self.phase = Phase::Head;
        self.rewound = true;
    }

    /// The response under way is the last one of this connection (the server wants to close it). Called
    /// before `begin_response`, the response says so.
    pub fn close_after_response(&mut self) {
        self.persistence = Persistence::Close;
    }

    /// The request last given waits since `now_ms`.
    pub fn set_waiting_since(&mut self, now_ms: u64) {
        self.since_ms = now_ms;
    }

    /// Since when the request last given waits, or has waited.
    pub fn waiting_since_ms(&self) -> u64 {
        self.since_ms
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
        self.kept = None;
        self.close(true, None);
    }

    /// The peer half-closed its side. Requests already received are still answered; after them comes `Close`.
    pub fn handle_end(&mut self) {
        self.peer_ended = true;
    }

    /// When and which deadline ends, in milliseconds on the clock of `now_ms`; `None` while waiting for an
    /// answer or after `Close` (sending and lingering are the caller's).
    #[inline]
    pub fn poll_timeout(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        let deadline = match self.phase {
            Phase::Head => Deadline::Header,
            Phase::Idle => Deadline::KeepAlive,
            Phase::Discarding => Deadline::Body,
            Phase::Answering | Phase::Waiting | Phase::Answered | Phase::Closed { .. } => return None,
        };
        let mut length_ms = u64::from(timeouts.length_ms(deadline));
        if deadline == Deadline::Body
            && let Some(allowance_ms) = timeouts.body_allowance_ms(self.discard.taken_bytes())
        {
            length_ms = length_ms.min(allowance_ms.saturating_sub(u64::from(self.body_ms)));
        }
        Some((self.since_ms + length_ms, deadline))
    }

    /// Since when nothing of a request has come and nothing is owed to the peer: between two requests, or
    /// before the first byte.
    pub fn idle_since_ms(&self) -> Option<u64> {
        let silent = self.phase == Phase::Head && self.search.is_new() && self.kept.is_none();
        (silent || self.phase == Phase::Idle).then_some(self.since_ms)
    }

    /// The deadline has passed. A partial head gets 408; a silent or idle connection nothing; a partial body
    /// nothing more than the response it already has. Then `Close`.
    pub fn handle_timeout(&mut self, date: &[u8; 29], out: &mut Vec<u8>) -> Option<SelfAnswered> {
        let (linger, answered) = match self.phase {
            Phase::Head if !self.search.is_new() => {
                let refusal = Refusal::new(Status::REQUEST_TIMEOUT, "the head of the request took too long");
                let omit_body = self.kept.as_ref().is_some_and(|kept| kept.starts_with(b"HEAD "));
                (true, Some(refuse(refusal, omit_body, date, out)))
            }
            Phase::Head | Phase::Idle => (false, None),
            Phase::Discarding => (true, None),
            Phase::Answering | Phase::Waiting | Phase::Answered | Phase::Closed { .. } => return None,
        };
        self.kept = None;
        self.close(linger, None);
        answered
    }

    /// Goes on discarding the body behind the head last given, and decides what comes after it.
    #[inline]
    fn poll_body(&mut self, input: &mut &[u8], now_ms: u64) {
        let input_bytes = input.len();
        let progress = self.discard.advance(input);
        let is_last = self.persistence == Persistence::Close;
        match progress {
            Progress::Done if is_last => _ = self.close(!input.is_empty(), None),
            Progress::Done => {
                self.phase = Phase::Idle;
                self.since_ms = now_ms;
                self.empty_line_skipped = false;
            }
            Progress::Lost | Progress::Broken => _ = self.close(true, None),
            Progress::NeedInput if is_last || self.peer_ended => _ = self.close(true, None),
            Progress::NeedInput if input_bytes > 0 => {
                let since_ms = std::mem::replace(&mut self.since_ms, now_ms);
                let passed_ms = u32::try_from(now_ms.saturating_sub(since_ms)).unwrap_or(u32::MAX);
                self.body_ms = self.body_ms.saturating_add(passed_ms);
            }
            Progress::NeedInput => {}
        }
    }

    /// One empty line before a request line is skipped, for old clients that send one too many (RFC 9112,
    /// section 2.2).
    #[inline]
    fn skip_empty_line(&mut self, input: &mut &[u8]) {
        if let [b'\r', b'\n', rest @ ..] = *input
            && !self.empty_line_skipped
        {
            self.empty_line_skipped = true;
            self.search = HeadSearch::default();
            *input = rest;
        }
    }

    #[inline]
    fn poll_head<'i>(
        &mut self,
        input: &mut &'i [u8],
        input_bytes: usize,
        parse: impl FnOnce(&'i [u8]) -> Option<Head<'i>>,
    ) -> Result<Option<Request<'i>>, Refusal> {
        if input.is_empty() {
            return Ok(None);
        }
        let at_once = if self.search.is_new() { parse(input) } else { None };
        let head = match at_once {
            Some(head) => head,
            None => match self.search.find_end(input)? {
                Some(head_bytes) => parse_head(&input[..head_bytes])?,
                None => return Ok(None),
            },
        };
        let behind = &input[head.request.head.len()..];
        if matches!(head.request.content, BodyIn::Open) && !head.expects_continue {
            check_chunked(behind)?;
        }
        self.before_head_bytes = (input_bytes - input.len()) as u32;
        *input = behind;
        self.begin_request(&head);
        Ok(Some(head.request))
    }

    #[inline]
    fn begin_request(&mut self, head: &Head<'_>) {
        self.phase = Phase::Answering;
        self.search = HeadSearch::default();
        self.omit_body = head.request.method == Method::Head;
        // A body withheld until 100 is sent never comes: the final status is sent at once (RFC 9110, section
        // 10.1.1).
        self.discard =
            if head.expects_continue { Discard::UNREAD } else { Discard::new(head.request.content) };
        if !head.keep_alive || head.wants_tunnel || self.discard.is_lost() {
            self.persistence = Persistence::Close;
        } else if self.persistence != Persistence::Close {
            self.persistence =
                if head.request.http10 { Persistence::KeepAlive } else { Persistence::Implied };
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
