//! Streams of HTTP/2 as the life of an exchange sees them, one at a time.
//!
//! This module owns the parts of a connection that are borrowed for one round. A port must never hand over
//! more than the windows of HTTP/2 grant.

use staunch_netio::Outgoing;
use staunch_protocol::http1::BodyOut;
use staunch_protocol::http2::ErrorCode;
use staunch_protocol::{BodyIn, Request};

use crate::exchange::address::Address;
use crate::exchange::http2_pen::Http2Pen;
use crate::exchange::open::OpenState;
use crate::exchange::outlet::Outlet;
use crate::exchange::pen::Pen;
use crate::exchange::port::Port;
use crate::exchange::rendered::Rendered;
use crate::exchange::streams::{BodyEnd, Stream};
use crate::exchange::under_way::UnderWay;
use crate::exchange::{Exchange, Life};
use crate::limits::{BEHIND_BYTES_MAX, OUTGOING_BYTES_MAX};

/// The parts of a connection of HTTP/2 that its exchanges need, borrowed for one round. The session, the
/// streams and the number of the stream in hand stand in the pen.
pub(in crate::connection) struct StreamPort<'r> {
    pub(super) pen: &'r mut Http2Pen,
    pub(super) outgoing: &'r mut Outgoing,
    /// A container is in flight.
    pub(super) is_sending: bool,
    pub(super) peer_ended: bool,
    pub(super) turned_away: bool,
    /// The bytes of answers that are written before they are sent.
    pub(super) written_bytes_max: usize,
}

impl StreamPort<'_> {
    fn stream(&self) -> Option<&Stream> {
        self.pen.http2.streams.find(self.pen.stream)
    }

    pub(super) fn stream_mut(&mut self) -> Option<&mut Stream> {
        self.pen.http2.streams.find_mut(self.pen.stream)
    }

    /// Enough stands to be sent: what has come waits. While a container is in flight that is little, so that
    /// a peer that asks and never reads costs little.
    pub(super) fn is_behind(&self) -> bool {
        let written_bytes_max = match self.is_sending {
            true => self.written_bytes_max.min(BEHIND_BYTES_MAX),
            false => self.written_bytes_max,
        };
        self.outgoing.written_bytes() >= written_bytes_max
            || self.outgoing.length_bytes() >= OUTGOING_BYTES_MAX
    }
}

impl Port for StreamPort<'_> {
    fn under_way(&self) -> Option<&UnderWay> {
        Some(&self.stream()?.under_way)
    }

    fn under_way_mut(&mut self) -> Option<&mut UnderWay> {
        Some(&mut self.stream_mut()?.under_way)
    }

    fn begin(&mut self, request: &Request<'_>) {
        if request.content == BodyIn::None && !request.asks_websocket() {
            self.pen.http2.streams.hold(self.pen.stream).body_end = BodyEnd::Came;
        }
    }

    fn put(&mut self, exchange: Box<Exchange>) {
        let container = self.pen.http2.container;
        let stream = self.pen.http2.streams.hold(self.pen.stream);
        stream.container = container;
        if matches!(exchange.life, Life::Open(_)) && !stream.reads {
            (stream.body, stream.body_end) = (Vec::new(), BodyEnd::Told);
        }
        stream.under_way = UnderWay::Exchange(exchange);
    }

    fn end(&mut self, address: &mut Address) {
        let Some(stream) = self.stream_mut() else { return };
        if stream.rest.is_empty() {
            return self.discard(address);
        }
        (stream.under_way, stream.body) = (UnderWay::Nothing, Vec::new());
        self.pen.http2.session.discard_body(self.pen.stream);
    }

    fn discard(&mut self, _address: &mut Address) {
        self.pen.http2.streams.remove(self.pen.stream);
    }

    fn awaits(&self) -> bool {
        self.pen.http2.session.awaits_answer(self.pen.stream)
    }

    fn pen<'a>(&'a mut self, _rendered: &'a mut Rendered) -> (Pen<'a>, &'a mut Outgoing) {
        (Pen::Http2(self.pen), self.outgoing)
    }

    fn outlet(&mut self) -> Option<Outlet<'_>> {
        let Stream { rest: pieces, trailers, .. } = self.stream_mut()?;
        Some(Outlet::Stream { pieces, trailers })
    }

    fn has_room(&self) -> bool {
        self.stream().is_some_and(Stream::has_room)
    }

    fn is_sending(&self) -> bool {
        let sent_before = self.pen.http2.container - u64::from(self.is_sending);
        self.stream().is_some_and(|stream| stream.container >= sent_before)
    }

    fn peer_ended(&self) -> bool {
        self.peer_ended
    }

    fn turned_away(&self) -> bool {
        self.turned_away
    }

    fn hand_over(&mut self) -> bool {
        let Some(stream) = self.stream() else { return false };
        let has_more = !stream.rest.is_empty() && !stream.is_blocked;
        has_more && !self.is_behind() && self.send(self.pen.stream)
    }

    fn conclude(&mut self, state: OpenState) -> bool {
        let Some(stream) = self.stream_mut() else { return false };
        // An answer without a body has ended with its head.
        if state.body == BodyOut::Nothing {
            stream.under_way.set_open(OpenState { concluded: true, ..state });
            return true;
        }
        !stream.is_blocked && !self.is_behind() && self.send(self.pen.stream)
    }

    fn reset(&mut self) {
        if self.awaits() {
            let Http2Pen { http2, now_ms, stream, .. } = &mut *self.pen;
            // In a tunnel that is a connection broken off (RFC 8441, section 5).
            let is_tunnel = http2.session.is_tunnel(*stream);
            let code = if is_tunnel { ErrorCode::CANCEL } else { ErrorCode::INTERNAL_ERROR };
            http2.session.reset(*stream, code, *now_ms, self.outgoing.bytes());
        }
    }

    fn taken(&mut self, bytes: usize) {
        let Http2Pen { http2, now_ms, stream, .. } = &mut *self.pen;
        http2.session.taken(*stream, bytes, *now_ms, self.outgoing.bytes());
    }
}
