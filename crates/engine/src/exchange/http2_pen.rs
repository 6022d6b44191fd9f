//! An answer as HTTP/2 sends it: a head, and as much of the body as windows grant.
//!
//! What is not granted is held at its stream, and goes out when the peer has room. It must never be made but
//! for a request whose response has not begun.

use std::sync::Arc;

use staunch_netio::{Outgoing, Slice};
use staunch_protocol::http1::BodyOut;
use staunch_protocol::http2::{HeadFields, Opening, ResponseHead};
use staunch_protocol::{BodyRule, Fields, Status};

use super::answered::Answered;
use super::context::Context;
use super::http2::Http2;
use super::piece::Piece;
use super::pieces::Pieces;
use super::spelled::Spelled;
use crate::limits::RENDERED_BYTES_MIN;

/// A prepared block has a blank line between its fields and its body, as HTTP/1.1 wants it.
const BLANK_LINE_BYTES: usize = 2;

/// Fields and body of the answer to a request for an upgrade, which HTTP/2 does by other means.
const NO_UPGRADE: (&[u8; 61], &[u8]) = (
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 54\r\n",
    b"501 Not Implemented: HTTP/2 upgrades no connection so\n",
);

/// Writes HTTP/2. One a worker: connections are lent to it.
#[derive(Debug)]
pub(crate) struct Http2Pen {
    /// The connection in hand. Between two rounds one that nobody has.
    pub(crate) http2: Box<Http2>,
    pub(crate) opening: Opening,
    spelled: Spelled,
    pub(crate) now_ms: u64,
    pub(crate) stream: u32,
}

impl Http2Pen {
    pub(crate) fn new() -> Self {
        let (opening, spelled) = (Opening::new(&[b' '; 29]), Spelled::default());
        Self { http2: Box::new(Http2::new(0, &mut Vec::new())), opening, spelled, now_ms: 0, stream: 0 }
    }

    /// See [`crate::Answer::block`].
    pub(super) fn block(
        &mut self,
        status: Status,
        block: &Arc<[u8]>,
        fields_bytes: usize,
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        let head_bytes = fields_bytes + BLANK_LINE_BYTES;
        let body_bytes = (block.len() - head_bytes) as u64;
        let Self { http2, opening, spelled, now_ms, stream } = self;
        let fields = match spelled.find(block, fields_bytes) {
            Some(fields) => HeadFields::Prepared(fields),
            None => HeadFields::Lines(Fields::new(&block[..fields_bytes])),
        };
        context.stats.requests.count_response(status);
        let head = ResponseHead { status, fields, has_body: body_bytes > 0 };
        let rule = http2.session.begin_response(*stream, head, *now_ms, opening, outgoing.bytes());
        if rule == BodyRule::Omit {
            return Answered::complete(status, 0);
        }
        let granted = self.begin_data(body_bytes, outgoing);
        let middle = head_bytes + granted as usize;
        if block.len() < RENDERED_BYTES_MIN {
            outgoing.bytes().extend_from_slice(&block[head_bytes..middle]);
        } else {
            outgoing.push_shared(Slice { bytes: Arc::clone(block), start: head_bytes, end: middle });
        }
        if granted < body_bytes {
            let rest = Slice { bytes: Arc::clone(block), start: middle, end: block.len() };
            self.hold_rest(Piece::Shared(rest));
        }
        Answered::complete(status, body_bytes)
    }

    /// See [`crate::Answer::bytes`].
    pub(super) fn bytes(
        &mut self,
        status: Status,
        fields: Fields<'_>,
        body: &[u8],
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        context.stats.requests.count_response(status);
        Answered::complete(status, self.uncounted(status, fields, body, outgoing))
    }

    /// See [`crate::Answer::uncounted`]. Gives the length of the body, 0 where there is none.
    pub(super) fn uncounted(
        &mut self,
        status: Status,
        fields: Fields<'_>,
        body: &[u8],
        outgoing: &mut Outgoing,
    ) -> u64 {
        let body_bytes = body.len() as u64;
        if self.begin(status, fields, body_bytes > 0, outgoing) == BodyRule::Omit {
            return 0;
        }
        let (first, rest) = body.split_at(self.begin_data(body_bytes, outgoing) as usize);
        outgoing.bytes().extend_from_slice(first);
        if !rest.is_empty() {
            self.hold_rest(Piece::Bytes(rest.to_vec()));
        }
        body_bytes
    }

    /// See [`crate::Answer::pieces`].
    pub(super) fn pieces(
        &mut self,
        status: Status,
        fields: Fields<'_>,
        pieces: impl Iterator<Item = Piece>,
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        context.stats.requests.count_response(status);
        let mut body = Pieces::default();
        pieces.for_each(|piece| body.push(piece));
        let body_bytes = body.length_bytes();
        if self.begin(status, fields, body_bytes > 0, outgoing) == BodyRule::Omit {
            return Answered::complete(status, 0);
        }
        let granted = self.begin_data(body_bytes, outgoing);
        body.take(granted, outgoing);
        if !body.is_empty() {
            let held = self.http2.streams.hold(self.stream);
            (held.rest, held.is_blocked) = (body, true);
        }
        Answered::complete(status, body_bytes)
    }

    /// See [`crate::Answer::open`].
    pub(super) fn open(
        &mut self,
        (status, fields): (Status, Fields<'_>),
        length_bytes: Option<u64>,
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        context.stats.requests.count_response(status);
        let lines = match length_bytes {
            Some(length_bytes) => {
                [format!("Content-Length: {length_bytes}\r\n").as_bytes(), fields.lines()].concat()
            }
            None => fields.lines().to_vec(),
        };
        let rule = self.begin(status, Fields::new(&lines), true, outgoing);
        let body = match (rule, length_bytes) {
            (BodyRule::Omit, _) => BodyOut::Nothing,
            (BodyRule::Send, Some(length_bytes)) => BodyOut::Length(length_bytes),
            // Frames tell where it ends.
            (BodyRule::Send, None) => BodyOut::UntilClose,
        };
        Answered::open(status, body)
    }

    /// See [`crate::Answer::upgrade`].
    pub(super) fn upgrade(
        &mut self,
        fields: Fields<'_>,
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        let Self { http2, opening, stream, .. } = self;
        if !http2.session.is_tunnel(*stream) {
            let (fields, body) = NO_UPGRADE;
            return self.bytes(Status::NOT_IMPLEMENTED, Fields::new(fields), body, outgoing, context);
        }
        context.stats.requests.count_response(Status::OK);
        context.stats.http2.websockets.add(1);
        http2.session.begin_tunnel(*stream, fields, opening, outgoing.bytes());
        http2.streams.hold(*stream).reads = true;
        Answered::open(Status::OK, BodyOut::UntilClose)
    }

    /// The body of the request is wanted.
    pub(super) fn read_body(&mut self, outgoing: &mut Outgoing) {
        self.http2.session.read_body(self.stream, self.now_ms, outgoing.bytes());
        self.http2.streams.hold(self.stream).reads = true;
    }

    /// The body of the request is not wanted, or not any more.
    pub(super) fn stop_reading(&mut self) {
        self.http2.session.discard_body(self.stream);
        if let Some(stream) = self.http2.streams.find_mut(self.stream) {
            stream.reads = false;
        }
    }

    fn begin(
        &mut self,
        status: Status,
        fields: Fields<'_>,
        has_body: bool,
        outgoing: &mut Outgoing,
    ) -> BodyRule {
        let head = ResponseHead { status, fields: HeadFields::Lines(fields), has_body };
        self.http2.session.begin_response(self.stream, head, self.now_ms, &self.opening, outgoing.bytes())
    }

    fn begin_data(&mut self, body_bytes: u64, outgoing: &mut Outgoing) -> u64 {
        self.http2.session.begin_data(self.stream, body_bytes, true, self.now_ms, outgoing.bytes())
    }

    fn hold_rest(&mut self, rest: Piece) {
        let held = self.http2.streams.hold(self.stream);
        held.rest.push(rest);
        held.is_blocked = true;
    }
}
