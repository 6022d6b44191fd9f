//! The one trait of an application: a request in, an answer out.
//!
//! A handler is one value a worker, so it may keep mutable state without a lock. It must never block: what
//! needs a disk or much time is given to another thread, and the answer comes by mail.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use staunch_netio::{FilePart, Outgoing, Slice};
use staunch_protocol::http1::{BodyRule, Request, Session};
use staunch_protocol::{Fields, Status};

use crate::clients::{Clients, TOO_SOON_BODY};
use crate::exchange::rendered::{Found, Rendered};
use crate::limits::{BEGINNING_BYTES, COPIED_BYTES_MAX, RENDERED_BYTES_MIN};
use crate::stats::Stats;

/// Ends the fields of a head in HTTP/1.1.
const BLANK_LINE: &[u8] = b"\r\n";

/// Where mail to a waiting connection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Index of the worker.
    pub worker: u16,
    /// Slot of the connection in its worker.
    pub slot: u32,
    /// Which use of the slot: mail to a connection that is gone is dropped.
    pub generation: u32,
}

/// How a peer leaves that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// It sends no more; the answer is sent all the same.
    SendsNoMore,
    /// Its connection is gone, and with it the answer.
    Gone,
}

/// Proof that a request was answered, or will be. Only an [`Answer`] makes one.
#[derive(Debug)]
#[must_use]
pub struct Answered {
    later: bool,
    status: Status,
    body_bytes: u64,
}

impl Answered {
    /// The status answered with. Of no meaning when the answer comes later.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Length of the body handed over for sending: 0 where there is none, as for HEAD.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Whether the answer comes later, by mail.
    pub fn is_later(&self) -> bool {
        self.later
    }
}

/// The application behind the connections of one worker.
pub trait Handler {
    /// What another thread sends to answer a request that was told to wait.
    type Mail: Send + 'static;

    /// Answers a request now, or says `answer.later()` and sees to it that mail is sent to
    /// `answer.address()`.
    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered;

    /// Mail came for a request that waits. It is answered now, or told to wait again.
    fn resume(&mut self, mail: Self::Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered;

    /// The peer of a request that waits for mail has left. For those who would do work for it.
    fn left(&mut self, _address: Address, _departure: Departure) {}

    /// The session or the engine itself has answered, and no handler is asked. For those who keep account.
    fn refused(&mut self, _refused: &Refused<'_>) {}
}

/// An answer that no handler gave.
#[derive(Debug)]
pub struct Refused<'a> {
    /// What was answered.
    pub status: Status,
    /// Length of the answer's body.
    pub body_bytes: u64,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// What was asked, if it ever became a request.
    pub request: Option<&'a Request<'a>>,
    /// Who asked, if peers are told apart.
    pub peer: Option<IpAddr>,
}

/// What is the same for all answers of a connection in one turn of its worker.
#[derive(Debug)]
pub struct Context<'a> {
    pub(crate) stats: &'a Stats,
    pub(crate) date: &'a [u8; 29],
    pub(crate) address: Address,
    pub(crate) unix_ms: u64,
    /// Changes with the date.
    pub(crate) second: u64,
    /// If clients mean anything.
    pub(crate) clients: Option<&'a mut Clients>,
    /// See [`Answer::guard`]. Here, and not in what every answer carries, for hardly any needs it.
    pub(crate) guarded: Cell<bool>,
}

impl<'a> Context<'a> {
    /// Of a worker that keeps no answers and knows no clients. `date` is the current one as in RFC 9110,
    /// section 5.6.7, and `unix_ms` the same in milliseconds since 1970.
    pub fn new(stats: &'a Stats, date: &'a [u8; 29], unix_ms: u64, address: Address) -> Self {
        Self { stats, date, address, unix_ms, second: 0, clients: None, guarded: Cell::new(false) }
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
            return Answered { later: false, status, body_bytes };
        }
        let rule = self.begin(status);
        if rule == BodyRule::Omit {
            self.outgoing.bytes().extend_from_slice(&block[..head_bytes]);
            return Answered { later: false, status, body_bytes: 0 };
        }
        if block.len() <= COPIED_BYTES_MAX {
            self.outgoing.bytes().extend_from_slice(block);
        } else {
            self.outgoing.push_shared(Slice { bytes: Arc::clone(block), start: 0, end: block.len() });
        }
        Answered { later: false, status, body_bytes }
    }

    /// Answers with fields made for this request and a body of bytes.
    pub fn bytes<'f>(mut self, status: Status, fields: impl Into<Fields<'f>>, body: &[u8]) -> Answered {
        let rule = self.begin_with(status, fields.into());
        let body = if rule == BodyRule::Send { body } else { &[] };
        self.outgoing.bytes().extend_from_slice(body);
        Answered { later: false, status, body_bytes: body.len() as u64 }
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
            for piece in pieces {
                match piece {
                    Piece::Bytes(bytes) => self.outgoing.bytes().extend_from_slice(&bytes),
                    Piece::Shared(slice) => self.outgoing.push_shared(slice),
                    Piece::File(part) => self.outgoing.push_file(part),
                }
            }
        }
        let body_bytes = self.outgoing.length_bytes() - begun_bytes;
        Answered { later: false, status, body_bytes }
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
        self.session.wait();
        Answered { later: true, status: Status::OK, body_bytes: 0 }
    }
}

/// One piece of a body.
#[derive(Debug)]
pub enum Piece {
    /// Bytes made for this response (the framing of a multipart body).
    Bytes(Vec<u8>),
    /// Shared bytes.
    Shared(Slice),
    /// Part of a file.
    File(FilePart),
}
