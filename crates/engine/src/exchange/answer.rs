//! How a request is answered: at once, later, when its body is there, or bit by bit.
//!
//! It owns the one way to write an answer. It must never decide what is answered.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use staunch_netio::{Outgoing, Slice};
use staunch_protocol::http1::{BodyOut, BodyRule, Request, Session};
use staunch_protocol::{BodyIn, Fields, Status};

use super::address::Address;
use super::context::Context;
use super::outbox::Outbox;
use super::piece::Piece;
use super::rendered::{Found, Rendered};
use crate::clients::{Clients, TOO_SOON_BODY};
use crate::limits::{BEGINNING_BYTES, COPIED_BYTES_MAX, RENDERED_BYTES_MIN};

/// Ends the fields of a head in HTTP/1.1.
const BLANK_LINE: &[u8] = b"\r\n";

/// Fields and body of the answer to a request whose body is too long.
const TOO_LARGE: (&[u8; 61], &[u8]) = (
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 64\r\n",
    b"413 Content Too Large: the body is longer than may be sent here\n",
);

/// Proof that a request was answered, or will be. Only an [`Answer`] makes one.
#[derive(Debug)]
#[must_use]
pub struct Answered {
    next: Next,
    status: Status,
    /// Length of a complete answer's body, of a body that goes on, or the most to be collected.
    detail: u64,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing: the answer is complete.
    Complete,
    Later,
    Collect,
    OpenWithoutBody,
    OpenOfLength,
    OpenInChunks,
    OpenUntilClose,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    /// It is answered.
    Complete,
    /// The answer comes by mail.
    Later,
    /// So much of its body is collected first.
    Collect { limit_bytes: usize },
    /// The answer goes on.
    Open(BodyOut),
}

impl Answered {
    #[inline]
    fn complete(status: Status, body_bytes: u64) -> Self {
        Self { next: Next::Complete, status, detail: body_bytes }
    }

    /// The status answered with. Of no meaning when the answer comes later.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Length of the body handed over for sending: 0 where there is none, as for HEAD, or where it follows.
    pub fn body_bytes(&self) -> u64 {
        if self.is_complete() { self.detail } else { 0 }
    }

    /// Whether the answer is complete. Else it comes later by mail, or when the request's body is there, or
    /// it goes on and [`crate::Handler::finished`] is told of its end.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.next == Next::Complete
    }

    /// Whether the answer comes later, by mail.
    #[inline]
    pub fn is_later(&self) -> bool {
        self.next == Next::Later
    }

    pub(crate) fn outcome(&self) -> Course {
        match self.next {
            Next::Complete => Course::Complete,
            Next::Later => Course::Later,
            Next::Collect => Course::Collect { limit_bytes: self.detail as usize },
            Next::OpenWithoutBody => Course::Open(BodyOut::Nothing),
            Next::OpenOfLength => Course::Open(BodyOut::Length(self.detail)),
            Next::OpenInChunks => Course::Open(BodyOut::Chunked),
            Next::OpenUntilClose => Course::Open(BodyOut::UntilClose),
        }
    }
}

/// The pen with which one request is answered. Each method uses it up. It is handed on often, so it is small:
/// what many answers share stands in the context.
#[derive(Debug)]
pub struct Answer<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) outgoing: &'a mut Outgoing,
    pub(crate) context: &'a Context<'a>,
    /// The worker's kept answers.
    pub(crate) rendered: Option<&'a mut Rendered>,
    pub(crate) waited_ms: u32,
}

impl<'a> Answer<'a> {
    /// A pen for the request a session has just given.
    pub fn new(session: &'a mut Session, outgoing: &'a mut Outgoing, context: &'a Context<'a>) -> Self {
        Self { session, outgoing, context, rendered: None, waited_ms: 0 }
    }

    /// Where mail to this connection goes.
    pub fn address(&self) -> Address {
        self.context.address
    }

    /// Where the connection comes from: the peer, or whoever a proxy told by the PROXY protocol. `None` if
    /// nobody asked for it (see [`crate::ClientPolicy`]), or it is not known.
    pub fn peer(&self) -> Option<IpAddr> {
        self.context.clients.as_deref()?.address(self.context.address.slot)
    }

    /// Where the request comes from: as `peer`, or if that is a trusted proxy, whom it names by
    /// X-Forwarded-For (see [`crate::client_of`]).
    pub fn client(&self, request: &Request<'_>) -> Option<IpAddr> {
        self.context.clients.as_deref()?.client(self.context.address.slot, request)
    }

    /// What else may be asked of the worker.
    pub fn outbox(&self) -> &Outbox {
        self.context.outbox
    }

    /// Counts that the client's network may not have what is asked for. A connection made before addresses
    /// were asked for ends with the answer: on a new one its client is known.
    pub fn note_denied(&mut self) {
        self.context.stats.client_denied.add(1);
        if self.peer().is_none() {
            self.session.close_after_response();
        }
    }

    /// The current date as 29 bytes (RFC 9110, section 5.6.7), for further fields that need one.
    pub fn date(&self) -> &[u8; 29] {
        self.context.date
    }

    /// When this turn of the worker began, in milliseconds since 1970.
    #[inline]
    pub fn unix_ms(&self) -> u64 {
        self.context.unix_ms
    }

    /// How long the request has waited since it was told to, in milliseconds. 0 if it was not.
    #[inline]
    pub fn waited_ms(&self) -> u32 {
        self.waited_ms
    }

    /// Whoever asks has to show credentials here. For those who keep account: elsewhere nobody looks at them.
    pub fn guard(&self) {
        self.context.guarded.set(true);
    }

    /// Tells, when the request is answered, whether `guard` was called from now on.
    pub fn guarded(&self) -> &'a Cell<bool> {
        self.context.guarded.set(false);
        &self.context.guarded
    }

    /// Answers from one prepared block: field lines, a blank line and the body in one piece, so that HTTP/1.1
    /// sends it as it stands. `fields_bytes` is the length of the field lines without the blank one.
    #[inline]
    pub fn block(mut self, status: Status, block: &Arc<[u8]>, fields_bytes: usize) -> Answered {
        let head_bytes = fields_bytes + BLANK_LINE.len();
        let body_bytes = (block.len() - head_bytes) as u64;
        let may_be_kept = (RENDERED_BYTES_MIN..=COPIED_BYTES_MAX).contains(&block.len());
        if status == Status::OK && may_be_kept && self.rendered_block(block) {
            return Answered::complete(status, body_bytes);
        }
        let rule = self.begin(status);
        if rule == BodyRule::Omit {
            self.outgoing.bytes().extend_from_slice(&block[..head_bytes]);
            return Answered::complete(status, 0);
        }
        if block.len() <= COPIED_BYTES_MAX {
            self.outgoing.bytes().extend_from_slice(block);
        } else {
            self.outgoing.push_shared(Slice { bytes: Arc::clone(block), start: 0, end: block.len() });
        }
        Answered::complete(status, body_bytes)
    }

    /// Answers with fields made for this request and a body of bytes.
    pub fn bytes<'f>(mut self, status: Status, fields: impl Into<Fields<'f>>, body: &[u8]) -> Answered {
        let rule = self.begin_with(status, fields.into());
        let body = if rule == BodyRule::Send { body } else { &[] };
        self.outgoing.bytes().extend_from_slice(body);
        Answered::complete(status, body.len() as u64)
    }

    /// Answers with fields and pieces of shared bytes and files in order.
    pub fn pieces<'f>(
        mut self,
        status: Status,
        fields: impl Into<Fields<'f>>,
        pieces: impl IntoIterator<Item = Piece>,
    ) -> Answered {
        let rule = self.begin_with(status, fields.into());
        let begun_bytes = self.outgoing.length_bytes();
        if rule == BodyRule::Send {
            pieces.into_iter().for_each(|piece| piece.put(self.outgoing));
        }
        let body_bytes = self.outgoing.length_bytes() - begun_bytes;
        Answered::complete(status, body_bytes)
    }

    /// Answers with a block and its beginning from where both stand, if they are kept or worth keeping.
    /// Whether it did.
    #[inline]
    fn rendered_block(&mut self, block: &Arc<[u8]>) -> bool {
        let Some(rendered) = &mut self.rendered else { return false };
        if !self.session.begins_plainly() {
            return false;
        }
        let answer = match rendered.find(block, self.context.second) {
            Found::Nothing => return false,
            Found::Answer(answer) => {
                self.session.begin_elsewhere();
                answer
            }
            Found::Wanted => {
                let mut bytes = Vec::with_capacity(block.len() + BEGINNING_BYTES);
                self.session.begin_response(Status::OK, self.context.date, &mut bytes);
                bytes.extend_from_slice(block);
                let answer: Arc<[u8]> = bytes.into();
                rendered.keep(block, &answer);
                answer
            }
        };
        self.context.stats.count_response(Status::OK);
        self.outgoing.push_shared(Slice { start: 0, end: answer.len(), bytes: answer });
        true
    }

    #[inline]
    fn begin(&mut self, status: Status) -> BodyRule {
        self.context.stats.count_response(status);
        self.session.begin_response(status, self.context.date, self.outgoing.bytes())
    }

    fn begin_with(&mut self, status: Status, fields: Fields<'_>) -> BodyRule {
        let rule = self.begin(status);
        self.outgoing.bytes().extend_from_slice(fields.lines());
        self.outgoing.bytes().extend_from_slice(BLANK_LINE);
        rule
    }

    /// The client asks more often than it may.
    #[cold]
    pub(crate) fn too_soon(self) {
        let fields = self.context.clients.as_deref().map_or(&b""[..], Clients::too_soon_fields);
        let _ = self.bytes(Status::TOO_MANY_REQUESTS, fields, TOO_SOON_BODY);
    }

    /// The answer comes later, by mail to [`Answer::address`].
    pub fn later(self) -> Answered {
        Answered { next: Next::Later, status: Status::OK, detail: 0 }
    }

    /// The answer is given when the whole body of the request is there: then
    /// [`crate::Handler::collected`] is asked. A body above `limit_bytes` is answered 413, without being read
    /// if its length is told. A peer that waits for 100 gets it.
    pub fn collect(self, request: &Request<'_>, limit_bytes: usize) -> Answered {
        if matches!(request.content, BodyIn::Length(length_bytes) if length_bytes > limit_bytes as u64) {
            return self.too_large();
        }
        self.session.read_body(request, self.outgoing.bytes());
        Answered { next: Next::Collect, status: Status::OK, detail: limit_bytes as u64 }
    }

    /// The body of the request is longer than it may be.
    pub(crate) fn too_large(self) -> Answered {
        let (fields, body) = TOO_LARGE;
        self.bytes(Status::CONTENT_TOO_LARGE, fields, body)
    }

    /// Begins an answer whose body goes on: [`crate::Handler::ready`] is called right away and whenever there
    /// is room, until the handler ends it. `length_bytes` is the body's length, if it is known; `fields` say
    /// nothing of it. With `reads` the body of the request comes meanwhile, to [`crate::Handler::body`]; a
    /// peer that waits for 100 gets it. Without, it is thrown away afterwards.
    pub fn open<'f>(
        self,
        request: &Request<'_>,
        status: Status,
        fields: impl Into<Fields<'f>>,
        length_bytes: Option<u64>,
        reads: bool,
    ) -> Answered {
        if reads {
            self.session.read_body(request, self.outgoing.bytes());
        }
        self.context.stats.count_response(status);
        let (date, out) = (self.context.date, self.outgoing.bytes());
        let body = self.session.begin_open(status, fields.into(), length_bytes, request.http10, date, out);
        let (next, detail) = match body {
            BodyOut::Nothing => (Next::OpenWithoutBody, 0),
            BodyOut::Length(length_bytes) => (Next::OpenOfLength, length_bytes),
            BodyOut::Chunked => (Next::OpenInChunks, 0),
            BodyOut::UntilClose => (Next::OpenUntilClose, 0),
        };
        Answered { next, status, detail }
    }

    /// Answers 101: the connection speaks another protocol from now on, which `fields` name (`Upgrade`; the
    /// session adds `Connection`). It is an answer that goes on, as with [`Answer::open`]: what the peer
    /// sends comes to [`crate::Handler::body`], what is pushed goes out as it is, and the connection ends
    /// with it.
    pub fn upgrade<'f>(self, fields: impl Into<Fields<'f>>) -> Answered {
        let status = Status::SWITCHING_PROTOCOLS;
        self.context.stats.count_response(status);
        let _ = self.session.begin_upgrade(fields.into(), self.context.date, self.outgoing.bytes());
        Answered { next: Next::OpenUntilClose, status, detail: 0 }
    }
}
