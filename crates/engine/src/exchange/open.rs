//! An answer whose body goes on, as its handler sees it.
//!
//! It owns the framing of the body and what the handler has said of it. It must never send: pieces go to the
//! connection's container, which the worker sends. What stands there has a bound, and the handler is told
//! when there is room again.

use staunch_netio::Slice;
use staunch_protocol::Fields;
use staunch_protocol::http1::BodyOut;

use super::address::Address;
use super::context::Context;
use super::outbox::Outbox;
use super::outlet::Outlet;
use super::owner::Owner;
use super::piece::Piece;
use crate::limits::{OPEN_BYTES_MAX, OPEN_ROOM_BYTES};

/// Why an exchange is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The last byte of the answer was sent.
    Complete,
    /// The connection is gone.
    Gone,
    /// The body of the request is broken, was cut off, or came too slowly.
    BadBody,
    /// The handler has given the answer up, or has ended it before its announced length.
    Aborted,
    /// The handler has pushed far more than there was room for.
    Overrun,
}

/// What is known of an answer that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenState {
    pub(crate) body: BodyOut,
    /// The handler wants to be told when there is room.
    pub(crate) wants_room: bool,
    /// The handler wants no more of the request's body at present.
    pub(crate) held: bool,
    /// The handler has said that it is over, and why.
    pub(crate) end: Option<Ended>,
    /// The end of the body was written; its last bytes are on their way.
    pub(crate) concluded: bool,
    /// Bytes of the body handed over for sending.
    pub(crate) body_bytes: u64,
    /// Bytes that the handler holds for the exchange.
    pub(crate) handler_bytes: usize,
    /// What the peer sends behind its request is thrown away: so many bytes of it so far.
    pub(crate) ignored_bytes: Option<u64>,
    /// The kernel keeps little of what is sent, see [`Open::keep_little_unsent`].
    pub(crate) is_tuned: bool,
    /// The handler needs the request no more, since it was asked last.
    pub(crate) releases_request: bool,
}

impl OpenState {
    /// An answer that has just begun.
    pub(crate) fn new(body: BodyOut) -> Self {
        let end = (body == BodyOut::Nothing).then_some(Ended::Complete);
        Self {
            body,
            wants_room: true,
            held: false,
            end,
            concluded: false,
            body_bytes: 0,
            handler_bytes: 0,
            ignored_bytes: None,
            is_tuned: false,
            releases_request: false,
        }
    }
}

/// An answer whose body goes on. Lent to the handler for one event.
#[derive(Debug)]
pub struct Open<'a> {
    pub(crate) state: &'a mut OpenState,
    pub(crate) outlet: Outlet<'a>,
    pub(crate) context: &'a Context<'a>,
    pub(crate) owner: Owner,
    /// Bytes handed over before are still being sent.
    pub(crate) sending: bool,
    /// The peer sends no more.
    pub(crate) peer_ended: bool,
}

impl Open<'_> {
    /// Names the exchange, for mail and for [`Outbox::wake`].
    pub fn address(&self) -> Address {
        self.context.address
    }

    /// The part of the handler to which the exchange belongs.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// When this turn of the worker began, in milliseconds since 1970.
    pub fn unix_ms(&self) -> u64 {
        self.context.unix_ms
    }

    /// What else may be asked of the worker.
    pub fn outbox(&self) -> &Outbox {
        self.context.outbox
    }

    /// Whether more of the body is worth pushing now. If not, [`crate::Handler::ready`] is called when it is.
    pub fn has_room(&mut self) -> bool {
        let has_room = self.outlet.length_bytes() < OPEN_ROOM_BYTES && self.state.end.is_none();
        self.state.wants_room |= !has_room;
        has_room
    }

    /// Sends a piece of the body. Whether there is room for more, see [`Open::has_room`]. An answer that
    /// holds far more than its room is given up: a peer that reads nothing must not cost without bound.
    pub fn push(&mut self, piece: Piece) -> bool {
        if self.state.end.is_some() {
            return false;
        }
        let wanted_bytes = piece.length_bytes();
        if wanted_bytes > 0 {
            self.state.body_bytes += self.outlet.push(piece, &mut self.state.body);
        }
        self.end_pushing(wanted_bytes)
    }

    /// As [`Open::push`], with bytes that are copied once, to where they are sent from.
    pub fn push_copied(&mut self, bytes: &[u8]) -> bool {
        if self.state.end.is_some() {
            return false;
        }
        if !bytes.is_empty() {
            self.state.body_bytes += self.outlet.push_copied(bytes, &mut self.state.body);
        }
        self.end_pushing(bytes.len() as u64)
    }

    /// Whether there is room for more, behind a piece of so many bytes. Far too many end the answer.
    fn end_pushing(&mut self, wanted_bytes: u64) -> bool {
        if self.outlet.length_bytes() > OPEN_BYTES_MAX.saturating_add(wanted_bytes) {
            self.state.end = Some(Ended::Overrun);
        }
        self.has_room()
    }

    /// Sends a piece that carries the framing of the chunked transfer coding already, so that the same bytes
    /// serve many exchanges: only to a request of HTTP/1.1. Otherwise as [`Open::push`].
    pub fn push_framed(&mut self, slice: Slice) -> bool {
        if self.state.end.is_none() && self.state.body != BodyOut::Nothing {
            let count = (slice.end - slice.start) as u64;
            self.state.body_bytes += count;
            self.outlet.push_as_it_is(Piece::Shared(slice));
            if self.outlet.length_bytes() > OPEN_BYTES_MAX.saturating_add(count) {
                self.state.end = Some(Ended::Overrun);
            }
        }
        self.has_room()
    }

    /// Whether anything pushed before, the head included, was not taken by the kernel yet.
    pub fn has_unsent(&self) -> bool {
        self.sending || !self.outlet.is_empty()
    }

    /// Asks for [`crate::Handler::ready`] when everything pushed so far was taken by the kernel. It may be
    /// called before, see [`Open::has_unsent`].
    pub fn call_when_sent(&mut self) {
        self.state.wants_room = true;
    }

    /// Tells how much the handler holds for this exchange, beside what it has pushed: it counts as held by
    /// the connection, for who holds most gives way first.
    pub fn note_held(&mut self, bytes: usize) {
        self.state.handler_bytes = bytes;
    }

    /// Whether the peer has said that it sends no more: nearly always it is gone.
    pub fn peer_has_ended(&self) -> bool {
        self.peer_ended
    }

    /// What the peer sends behind its request is read and thrown away from now on, so that its end is heard
    /// behind that: for an answer without an end of its own, behind which no other is awaited. More than 64
    /// KiB end the answer. The connection ends with it, if anything came. In HTTP/2 nothing comes so.
    pub fn ignore_input(&mut self) {
        self.state.ignored_bytes.get_or_insert(0);
    }

    /// The kernel is to keep little of what the peer does not take, until this answer ends: for one that goes
    /// on for long in small pieces, so that a peer that stands still costs little, and gets what is new when
    /// it takes bytes again. A peer that acknowledges nothing for a while is given up. Nothing happens in
    /// HTTP/2, whose connection is for other answers too.
    pub fn keep_little_unsent(&mut self) {
        if matches!(self.outlet, Outlet::Connection(_)) && !self.state.is_tuned {
            self.state.is_tuned = true;
            self.context.outbox.tune(self.context.address.slot, true);
        }
    }

    /// The request is needed no more: it is given back with all that is held for the exchange beside its
    /// slot, and its end is told without it. For an answer that goes on for long, whose body has no length,
    /// and of which nothing is noted as held at present. Nothing happens in HTTP/2.
    pub fn release_request(&mut self) {
        self.state.releases_request = true;
    }

    /// Keeps the request until the end of the answer, because a handler needs it there: what
    /// [`Open::release_request`] has said in this event does not count.
    pub fn keep_request(&mut self) {
        self.state.releases_request = false;
    }

    /// Whether the client showed a certificate that would not be verified now as it was then. What goes on
    /// without an end is to end then: on a new connection the client is verified anew.
    pub fn is_outdated(&self) -> bool {
        self.context.is_outdated()
    }

    /// The body is complete.
    pub fn end(&mut self) {
        self.state.end.get_or_insert(Ended::Complete);
    }

    /// As [`Open::end`], with trailer fields behind the body (RFC 9110, section 6.5): in HTTP/2, and where a
    /// body goes in chunks. Elsewhere they are left out. Nothing may follow, an abort neither.
    pub fn end_with<'f>(&mut self, trailers: impl Into<Fields<'f>>) {
        if self.state.end.is_none() {
            self.outlet.end_with(trailers.into(), &mut self.state.body);
        }
        self.end();
    }

    /// The body will never be complete: the connection is closed so that the peer knows.
    pub fn abort(&mut self) {
        self.state.end = Some(Ended::Aborted);
    }

    /// No more of the request's body for now: the peer feels it through its window.
    pub fn hold(&mut self) {
        self.state.held = true;
    }

    /// The request's body may come again.
    pub fn go_on(&mut self) {
        self.state.held = false;
    }
}
