//! How a request is answered: at once, later, when its body is there or is read, or bit by bit.
//!
//! It owns the one way to write an answer. It must never decide what is answered.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use staunch_netio::Outgoing;
use staunch_protocol::http1::Session;
use staunch_protocol::{BodyIn, Fields, Request, Status, Version};
use staunch_tls::ClientIdentity;

use super::address::Address;
use super::answered::Answered;
use super::context::Context;
use super::outbox::Outbox;
use super::owner::Owner;
use super::pen::{Http1Pen, Pen};
use super::piece::Piece;
use crate::clients::{Clients, TOO_SOON_BODY};

/// Fields and body of the answer to a request whose body is too long.
const TOO_LARGE: (&[u8; 61], &[u8]) = (
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 64\r\n",
    b"413 Content Too Large: the body is longer than may be sent here\n",
);

/// Fields and body of the answer to a request on a connection that was made for another name.
pub(super) const MISDIRECTED: (&[u8; 61], &[u8]) = (
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 71\r\n",
    b"421 Misdirected Request: this connection is for another name than this\n",
);

/// The pen with which one request is answered. Each method uses it up. It is handed on often, so it is small:
/// what many answers share stands in the context.
#[derive(Debug)]
pub struct Answer<'a> {
    pub(crate) pen: Pen<'a>,
    pub(crate) outgoing: &'a mut Outgoing,
    pub(crate) context: &'a Context<'a>,
    pub(crate) waited_ms: u32,
    pub(crate) owner: Owner,
}

impl<'a> Answer<'a> {
    /// A pen for the request a session has just given.
    pub fn new(session: &'a mut Session, outgoing: &'a mut Outgoing, context: &'a Context<'a>) -> Self {
        let pen = Pen::Http1(Http1Pen { session, rendered: None });
        Self { pen, outgoing, context, waited_ms: 0, owner: Owner(0) }
    }

    /// A pen for a request that was put off: its exchange belongs to this part of the handler.
    pub fn of_owner(self, owner: Owner) -> Self {
        Self { owner, ..self }
    }

    /// The part of the handler to which the exchange belongs, if it has begun.
    pub fn owner(&self) -> Owner {
        self.owner
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

    /// Whether the peer is a proxy whose word about its clients is believed.
    pub fn is_from_trusted(&self) -> bool {
        self.context.clients.as_deref().is_some_and(|clients| clients.is_trusted(self.context.address.slot))
    }

    /// What else may be asked of the worker.
    pub fn outbox(&self) -> &Outbox {
        self.context.outbox
    }

    /// Counts that the client's network may not have what is asked for. A connection made before addresses
    /// were asked for ends with the answer: on a new one its client is known.
    pub fn note_denied(&mut self) {
        self.context.stats.clients.denied.add(1);
        if self.peer().is_none() {
            self.pen.close_after_response(self.outgoing);
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

    /// Notes that the client has to show credentials here, for those who keep account of it.
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
    pub fn block(self, status: Status, block: &Arc<[u8]>, fields_bytes: usize) -> Answered {
        let Self { pen, outgoing, context, .. } = self;
        match pen {
            Pen::Http1(pen) => pen.block(status, block, fields_bytes, outgoing, context),
            Pen::Http2(pen) => pen.block(status, block, fields_bytes, outgoing, context),
        }
    }

    /// Answers with fields made for this request and a body of bytes.
    pub fn bytes<'f>(self, status: Status, fields: impl Into<Fields<'f>>, body: &[u8]) -> Answered {
        let Self { pen, outgoing, context, .. } = self;
        match pen {
            Pen::Http1(pen) => pen.bytes(status, fields.into(), body, outgoing, context),
            Pen::Http2(pen) => pen.bytes(status, fields.into(), body, outgoing, context),
        }
    }

    /// Answers with fields and pieces of shared bytes and files in order.
    pub fn pieces<'f>(
        self,
        status: Status,
        fields: impl Into<Fields<'f>>,
        pieces: impl IntoIterator<Item = Piece>,
    ) -> Answered {
        let Self { pen, outgoing, context, .. } = self;
        let pieces = pieces.into_iter();
        match pen {
            Pen::Http1(pen) => pen.pieces(status, fields.into(), pieces, outgoing, context),
            Pen::Http2(pen) => pen.pieces(status, fields.into(), pieces, outgoing, context),
        }
    }

    /// As `bytes`, for an answer that is counted otherwise.
    #[cold]
    pub(crate) fn uncounted(self, status: Status, fields: &[u8], body: &[u8]) {
        let Self { pen, outgoing, context, .. } = self;
        match pen {
            Pen::Http1(pen) => pen.uncounted(status, fields.into(), body, outgoing, context),
            Pen::Http2(pen) => _ = pen.uncounted(status, fields.into(), body, outgoing),
        }
    }

    /// The client asks more often than it may.
    #[cold]
    pub(crate) fn too_soon(self) {
        let fields = self.context.clients.as_deref().map_or(&b""[..], Clients::too_soon_fields);
        let _ = self.bytes(Status::TOO_MANY_REQUESTS, fields, TOO_SOON_BODY);
    }

    /// Whether the request came over TLS.
    #[inline]
    pub fn is_secured(&self) -> bool {
        self.context.is_secured()
    }

    /// Whether the connection's session of TLS was resumed by a ticket of this server, which its peer has
    /// from an earlier connection.
    pub fn is_resumed(&self) -> bool {
        self.context.is_resumed()
    }

    /// The client's identity by the certificate that it showed when the connection was made. It counts only
    /// where [`ClientIdentity::policy`] is that of the site: the request may be for another site.
    pub fn identity(&self) -> Option<&'a ClientIdentity> {
        self.context.identity()
    }

    /// If the client showed a certificate, and files of authorities have changed since or something has
    /// ended, the connection ends with this answer: on a new one the client is verified anew.
    pub fn end_if_outdated(&mut self) {
        if self.context.is_outdated() {
            self.pen.close_at_once(self.outgoing);
        }
    }

    /// The request is not for whom the connection was made: 421 (RFC 9110, section 15.5.20).
    #[cold]
    pub fn misdirected(self) -> Answered {
        let (fields, body) = MISDIRECTED;
        self.bytes(Status::MISDIRECTED_REQUEST, fields, body)
    }

    /// The answer comes later, by mail to [`Answer::address`].
    pub fn later(self) -> Answered {
        Answered::later(0)
    }

    /// As [`Answer::later`]; the handler holds so many bytes for it until then, which count as held by the
    /// connection.
    pub fn later_holding(self, bytes: usize) -> Answered {
        Answered::later(bytes)
    }

    /// The answer is given when the whole body of the request is there: then
    /// [`crate::Handler::collected`] is asked. A body above `limit_bytes` is answered 413, without being read
    /// if its length is told. A peer that waits for 100 gets it. Not for a request whose body was read.
    pub fn collect(mut self, request: &Request<'_>, limit_bytes: usize) -> Answered {
        if matches!(request.content, BodyIn::Length(length_bytes) if length_bytes > limit_bytes as u64) {
            return self.too_large();
        }
        self.pen.read_body(request, self.outgoing);
        Answered::collect(limit_bytes)
    }

    /// The body of the request goes to the handler as it comes, before there is an answer: from now on
    /// [`crate::Handler::reading`] is asked with each piece of it. A peer that waits for 100 gets it. A
    /// request whose body was asked for before goes on with what is left of that.
    pub fn read(mut self, request: &Request<'_>) -> Answered {
        self.pen.read_body(request, self.outgoing);
        Answered::reading(0, false)
    }

    /// Sends an interim answer, as 103 with fields that the final one will have. Nothing is sent, and
    /// `false` given, to a peer of HTTP/1.0, which knows none, and with a status that is not interim.
    pub fn interim<'f>(
        &mut self,
        request: &Request<'_>,
        status: Status,
        fields: impl Into<Fields<'f>>,
    ) -> bool {
        let is_understood = status.is_interim() && request.version != Version::Http10;
        if is_understood {
            self.pen.interim(status, fields.into(), self.outgoing);
        }
        is_understood
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
        mut self,
        request: &Request<'_>,
        status: Status,
        fields: impl Into<Fields<'f>>,
        length_bytes: Option<u64>,
        reads: bool,
    ) -> Answered {
        if reads {
            self.pen.read_body(request, self.outgoing);
        } else {
            self.pen.stop_reading();
        }
        let Self { pen, outgoing, context, .. } = self;
        let head = (status, fields.into());
        match pen {
            Pen::Http1(pen) => pen.open(request, head, length_bytes, outgoing, context),
            Pen::Http2(pen) => pen.open(head, length_bytes, outgoing, context),
        }
    }

    /// Answers 101: the connection speaks another protocol from now on, which `fields` name (`Upgrade`; the
    /// session adds `Connection`). It is an answer that goes on, as with [`Answer::open`]: what the peer
    /// sends comes to [`crate::Handler::body`], what is pushed goes out as it is, and the connection ends
    /// with it. In HTTP/2 that is a stream whose request [asks for a WebSocket](Request::asks_websocket): its
    /// answer is 200, without the fields of a connection (RFC 8441); any other request is answered 501.
    pub fn upgrade<'f>(self, fields: impl Into<Fields<'f>>) -> Answered {
        let Self { pen, outgoing, context, .. } = self;
        match pen {
            Pen::Http1(pen) => pen.upgrade(fields.into(), outgoing, context),
            Pen::Http2(pen) => pen.upgrade(fields.into(), outgoing, context),
        }
    }
}
