//! A round of events of an HTTP/2 connection.
//!
//! It owns their order. It must never look at further requests while enough stands to be sent.

use staunch_netio::Outgoing;
use staunch_protocol::http2::{ErrorCode, Event, WorkerMemory};
use staunch_protocol::{BodyIn, Method, Request, Status};

use crate::clients::TOO_SOON_BODY;
use crate::connection::turn::{COME_BACK, Turn};
use crate::exchange::answer::{Answer, MISDIRECTED};
use crate::exchange::http2_pen::Http2Pen;
use crate::exchange::open::Ended;
use crate::exchange::owner::Owner;
use crate::exchange::pen::Pen;
use crate::handler::Handler;
use crate::limits::{BEHIND_BYTES_MAX, OUTGOING_BYTES_MAX};

/// How long a request has waited that has just come, and whose exchange it is: nobody's yet.
const NEW: (u32, Owner) = (0, Owner(0));

/// What is lent to a round.
pub(super) struct Round<'r, 't, H> {
    pub(super) pen: &'r mut Http2Pen,
    pub(super) outgoing: &'r mut Outgoing,
    pub(super) turn: &'r mut Turn<'t, H>,
    /// A container is in flight.
    pub(super) is_sending: bool,
    pub(super) peer_ended: bool,
    pub(super) turned_away: bool,
}

impl<H: Handler> Round<'_, '_, H> {
    /// Deals with bytes that came, and with all that can go on. Whether some of the bytes wait for what
    /// stands to be sent; and if the connection reads no more, whether to linger.
    pub(super) fn go(&mut self, bytes: &[u8], memory: &mut WorkerMemory) -> (bool, Option<bool>) {
        if self.turn.draining {
            self.pen.http2.session.leave(self.outgoing.bytes());
        }
        let joined = self.pen.http2.session.take_kept(bytes);
        let mut input = &joined[..];
        let closed = loop {
            let closed = self.take_events(&mut input, memory);
            if closed.is_some() || !self.go_on() {
                break closed;
            }
        };
        if closed.is_some() {
            self.break_all();
        }
        self.pen.http2.session.keep(input, self.turn.now_ms);
        (!input.is_empty() && self.is_behind(), closed)
    }

    /// Deals with what the session has to say. Gives whether to linger when it reads no more.
    fn take_events(&mut self, input: &mut &[u8], memory: &mut WorkerMemory) -> Option<bool> {
        while !self.is_behind() {
            let (session, out) = (&mut self.pen.http2.session, self.outgoing.bytes());
            match session.poll_event(memory, input, self.turn.now_ms, &self.pen.opening, out) {
                Event::Request { stream, ref request } => self.answer(stream, request),
                Event::Body { stream, piece } => self.take_body(stream, piece),
                Event::BodyEnd { stream } => self.end_body(stream),
                Event::Reset { stream, .. } => {
                    self.turn.context.stats.http2_resets.add(1);
                    self.break_stream(stream, Ended::Gone);
                }
                Event::Refused { answered, .. } => {
                    self.turn.context.stats.http2_refused.add(1);
                    self.turn.tell_refused(answered, None);
                }
                Event::NeedInput => return None,
                Event::Close { linger, fault } => {
                    let is_calm = fault.is_some_and(|fault| fault.code == ErrorCode::ENHANCE_YOUR_CALM);
                    self.turn.context.stats.http2_calmed.add(u64::from(is_calm));
                    self.turn.context.stats.rejected.add(u64::from(fault.is_some()));
                    return Some(linger);
                }
            }
        }
        None
    }

    /// Answers a request that has just come.
    fn answer(&mut self, number: u32, request: &Request<'_>) {
        self.turn.context.stats.http2_requests.add(1);
        if self.is_strained() && self.send_back(number, None, request) {
            return;
        }
        if self.turn.is_too_soon(request) {
            self.ask(number, request, NEW, |_, _, answer| answer.too_soon());
            self.discard_body(number, request);
            return self.turn.tell(None, Status::TOO_MANY_REQUESTS, TOO_SOON_BODY.len(), Some(request));
        }
        if self.turn.context.is_misdirected(request.host) {
            self.ask(number, request, NEW, |_, _, answer| _ = answer.misdirected());
            self.discard_body(number, request);
            return self.turn.tell(None, Status::MISDIRECTED_REQUEST, MISDIRECTED.1.len(), Some(request));
        }
        let answered = self.ask(number, request, NEW, H::handle);
        if !answered.is_complete() {
            return self.begin_exchange(number, request, &answered);
        }
        self.discard_body(number, request);
        self.turn.context.stats.requests.add(1);
    }

    /// Throws away the body of a request that is answered: no handler wants it.
    fn discard_body(&mut self, number: u32, request: &Request<'_>) {
        if request.content != BodyIn::None {
            self.pen.http2.session.discard_body(number);
        }
    }

    /// Asks the handler about a request that waited for so long, in an exchange of this owner.
    pub(super) fn ask<R>(
        &mut self,
        number: u32,
        request: &Request<'_>,
        (waited_ms, owner): (u32, Owner),
        ask: impl FnOnce(&mut H, &Request<'_>, Answer<'_>) -> R,
    ) -> R {
        self.turn.context.address.stream = number;
        (self.pen.stream, self.pen.now_ms) = (number, self.turn.now_ms);
        let answer = Answer {
            pen: Pen::Http2(&mut *self.pen),
            outgoing: &mut *self.outgoing,
            context: &self.turn.context,
            waited_ms,
            owner,
        };
        ask(&mut *self.turn.handler, request, answer)
    }

    /// Whether a request may have to suffer for others, and is worth a look by `send_back`.
    pub(super) fn is_strained(&self) -> bool {
        self.turn.strain.late || self.turn.strain.full || self.turned_away
    }

    /// As with HTTP/1.1: answers the request by telling it to come back, if it has to be; one that may stay
    /// is among the last of its connection if others need the slot.
    #[cold]
    pub(super) fn send_back(&mut self, number: u32, waited: Option<Owner>, request: &Request<'_>) -> bool {
        if self.turn.strain.full || self.turned_away {
            self.pen.http2.session.leave(self.outgoing.bytes());
        }
        if !self.turn.has_to_come_back(self.turned_away, waited.is_some()) {
            return false;
        }
        let (status, (fields, body)) = (Status::SERVICE_UNAVAILABLE, COME_BACK);
        self.ask(number, request, NEW, |_, _, answer| answer.uncounted(status, fields, body));
        self.discard_body(number, request);
        let body_bytes = if request.method == Method::Head { 0 } else { body.len() };
        self.turn.tell(waited, status, body_bytes, Some(request));
        true
    }

    /// Enough stands to be sent: what has come waits. While a container is in flight that is little, so that
    /// a peer that asks and never reads costs little.
    pub(super) fn is_behind(&self) -> bool {
        let written_bytes_max = match self.is_sending {
            true => self.turn.written_bytes_max.min(BEHIND_BYTES_MAX),
            false => self.turn.written_bytes_max,
        };
        self.outgoing.written_bytes() >= written_bytes_max
            || self.outgoing.length_bytes() >= OUTGOING_BYTES_MAX
    }
}
