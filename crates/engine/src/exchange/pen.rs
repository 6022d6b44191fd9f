//! How an answer is written in the version of HTTP that its connection speaks.
//!
//! It owns what differs between them. It must never decide what is answered.

use std::sync::Arc;

use staunch_netio::{Outgoing, Slice};
use staunch_protocol::http1::{self, BodyOut};
use staunch_protocol::{BodyIn, BodyRule, Fields, Request, Status, Version};

use super::answered::Answered;
use super::context::Context;
use super::http2_pen::Http2Pen;
use super::piece::Piece;
use super::rendered::{Found, Rendered};
use crate::limits::{BEGINNING_BYTES, COPIED_BYTES_MAX, RENDERED_BYTES_MIN};

/// Ends the fields of a head in HTTP/1.1.
const BLANK_LINE: &[u8] = b"\r\n";

/// Writes one answer.
#[derive(Debug)]
pub(crate) enum Pen<'a> {
    Http1(Http1Pen<'a>),
    Http2(&'a mut Http2Pen),
}

// A pen is handed on often, so it is small.
const _: () = assert!(size_of::<Pen<'_>>() == 16);

/// Writes HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Http1Pen<'a> {
    pub(crate) session: &'a mut http1::Session,
    /// The worker's kept answers.
    pub(crate) rendered: Option<&'a mut Rendered>,
}

impl<'a> Http1Pen<'a> {
    /// See [`crate::Answer::block`].
    #[inline]
    pub(super) fn block(
        mut self,
        status: Status,
        block: &Arc<[u8]>,
        fields_bytes: usize,
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        let head_bytes = fields_bytes + BLANK_LINE.len();
        let body_bytes = (block.len() - head_bytes) as u64;
        let may_be_kept = (RENDERED_BYTES_MIN..=COPIED_BYTES_MAX).contains(&block.len());
        if status == Status::OK && may_be_kept && self.rendered_block(block, outgoing, context) {
            return Answered::complete(status, body_bytes);
        }
        let rule = self.begin(status, outgoing, context);
        if rule == BodyRule::Omit {
            outgoing.bytes().extend_from_slice(&block[..head_bytes]);
            return Answered::complete(status, 0);
        }
        if block.len() <= COPIED_BYTES_MAX {
            outgoing.bytes().extend_from_slice(block);
        } else {
            outgoing.push_shared(Slice { bytes: Arc::clone(block), start: 0, end: block.len() });
        }
        Answered::complete(status, body_bytes)
    }

    /// Answers with a block and its beginning from where both stand, if they are kept or worth keeping.
    /// Whether it did.
    #[inline]
    fn rendered_block(&mut self, block: &Arc<[u8]>, outgoing: &mut Outgoing, context: &Context<'_>) -> bool {
        let Some(rendered) = &mut self.rendered else { return false };
        if !self.session.begins_plainly() {
            return false;
        }
        let answer = match rendered.find(block, context.second) {
            Found::Nothing => return false,
            Found::Answer(answer) => {
                self.session.begin_elsewhere();
                answer
            }
            Found::Wanted => {
                let mut bytes = Vec::with_capacity(block.len() + BEGINNING_BYTES);
                self.session.begin_response(Status::OK, context.date, &mut bytes);
                bytes.extend_from_slice(block);
                let answer: Arc<[u8]> = bytes.into();
                rendered.keep(block, &answer);
                answer
            }
        };
        context.stats.requests.count_response(Status::OK);
        outgoing.push_shared(Slice { start: 0, end: answer.len(), bytes: answer });
        true
    }

    /// See [`crate::Answer::bytes`].
    pub(super) fn bytes(
        self,
        status: Status,
        fields: Fields<'_>,
        body: &[u8],
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        let rule = self.begin_with(status, fields, outgoing, context);
        let body = if rule == BodyRule::Send { body } else { &[] };
        outgoing.bytes().extend_from_slice(body);
        Answered::complete(status, body.len() as u64)
    }

    /// See [`crate::Answer::uncounted`].
    pub(super) fn uncounted(
        self,
        status: Status,
        fields: Fields<'_>,
        body: &[u8],
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) {
        let rule = self.session.begin_response(status, context.date, outgoing.bytes());
        let body = if rule == BodyRule::Send { body } else { &[] };
        [fields.lines(), BLANK_LINE, body].iter().for_each(|part| outgoing.bytes().extend_from_slice(part));
    }

    /// See [`crate::Answer::pieces`].
    pub(super) fn pieces(
        self,
        status: Status,
        fields: Fields<'_>,
        pieces: impl Iterator<Item = Piece>,
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        let rule = self.begin_with(status, fields, outgoing, context);
        let begun_bytes = outgoing.length_bytes();
        if rule == BodyRule::Send {
            pieces.for_each(|piece| piece.put(outgoing));
        }
        let body_bytes = outgoing.length_bytes() - begun_bytes;
        Answered::complete(status, body_bytes)
    }

    /// See [`crate::Answer::open`].
    pub(super) fn open(
        self,
        request: &Request<'_>,
        (status, fields): (Status, Fields<'_>),
        length_bytes: Option<u64>,
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        context.stats.requests.count_response(status);
        let (date, out) = (context.date, outgoing.bytes());
        let http10 = request.version == Version::Http10;
        Answered::open(status, self.session.begin_open(status, fields, length_bytes, http10, date, out))
    }

    /// See [`crate::Answer::upgrade`].
    pub(super) fn upgrade(
        self,
        fields: Fields<'_>,
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> Answered {
        let status = Status::SWITCHING_PROTOCOLS;
        context.stats.requests.count_response(status);
        let _ = self.session.begin_upgrade(fields, context.date, outgoing.bytes());
        Answered::open(status, BodyOut::UntilClose)
    }

    #[inline]
    fn begin(&mut self, status: Status, outgoing: &mut Outgoing, context: &Context<'_>) -> BodyRule {
        context.stats.requests.count_response(status);
        self.session.begin_response(status, context.date, outgoing.bytes())
    }

    fn begin_with(
        mut self,
        status: Status,
        fields: Fields<'_>,
        outgoing: &mut Outgoing,
        context: &Context<'_>,
    ) -> BodyRule {
        let rule = self.begin(status, outgoing, context);
        outgoing.bytes().extend_from_slice(fields.lines());
        outgoing.bytes().extend_from_slice(BLANK_LINE);
        rule
    }
}

impl Pen<'_> {
    /// The answer is the last of its connection.
    pub(super) fn close_after_response(&mut self, outgoing: &mut Outgoing) {
        match self {
            Self::Http1(pen) => pen.session.close_after_response(),
            Self::Http2(pen) => pen.http2.session.leave(outgoing.bytes()),
        }
    }

    /// As [`Self::close_after_response`], and nothing that is on its way is answered.
    pub(super) fn close_at_once(&mut self, outgoing: &mut Outgoing) {
        match self {
            Self::Http1(pen) => pen.session.close_after_response(),
            Self::Http2(pen) => pen.http2.session.leave_now(outgoing.bytes()),
        }
    }

    /// See [`crate::Answer::interim`].
    pub(super) fn interim(&mut self, status: Status, fields: Fields<'_>, outgoing: &mut Outgoing) {
        let out = outgoing.bytes();
        match self {
            Self::Http1(pen) => pen.session.push_interim(status, fields, out),
            Self::Http2(pen) => pen.http2.session.push_interim(pen.stream, status, fields, out),
        }
    }

    /// The body of the request is wanted.
    pub(super) fn read_body(&mut self, request: &Request<'_>, outgoing: &mut Outgoing) {
        match self {
            Self::Http1(pen) => pen.session.read_body(request, outgoing.bytes()),
            Self::Http2(pen) => pen.read_body(outgoing),
        }
    }

    /// The body of the request is not wanted, or not any more, and no answer has begun.
    pub(super) fn stop_reading(&mut self) {
        match self {
            Self::Http1(pen) => pen.session.stop_reading(),
            Self::Http2(pen) => pen.stop_reading(),
        }
    }

    /// The body of the request that is answered is not wanted.
    pub(super) fn throw_body_away(&mut self, request: &Request<'_>) {
        match self {
            Self::Http2(pen) if request.content != BodyIn::None || request.asks_websocket() => {
                pen.http2.session.discard_body(pen.stream);
            }
            // The session of HTTP/1.1 throws the body away behind the answer.
            Self::Http1(_) | Self::Http2(_) => {}
        }
    }
}
