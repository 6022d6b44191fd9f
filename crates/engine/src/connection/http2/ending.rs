//! How exchanges end, and what their handlers are told.
//!
//! It must never tell the end of an exchange twice.

use staunch_protocol::http2::ErrorCode;

use super::round::Round;
use crate::exchange::address::Address;
use crate::exchange::open::Ended;
use crate::exchange::{Finished, Life};
use crate::handler::{Departure, Handler};

impl<H: Handler> Round<'_, '_, H> {
    fn address(&self, number: u32) -> Address {
        Address { stream: number, ..self.turn.context.address }
    }

    /// An exchange is over, but perhaps for bytes that wait for a window.
    pub(super) fn end_exchange(&mut self, number: u32) {
        self.turn.context.outbox.upstreams().release(self.address(number));
        let Some(stream) = self.pen.http2.streams.find_mut(number) else { return };
        if stream.rest.is_empty() {
            self.pen.http2.streams.remove(number);
            return;
        }
        (stream.exchange, stream.body) = (None, Vec::new());
        self.pen.http2.session.discard_body(number);
    }

    /// Whatever is held of a stream will not come to its end.
    pub(super) fn break_stream(&mut self, number: u32, why: Ended) {
        let address = self.address(number);
        let exchange = self.pen.http2.streams.find(number).and_then(|stream| stream.exchange.as_ref());
        match exchange.map(|exchange| (&exchange.life, exchange.owner)) {
            Some((Life::Waiting, owner)) => {
                self.turn.context.stats.waits_lost.add(1);
                self.turn.handler.left(owner, address, Departure::Gone);
            }
            Some((Life::Open(_), _)) => self.finish(number, why),
            Some((Life::Collecting { .. }, _)) | None => {}
        }
        if self.pen.http2.streams.remove(number).is_some() {
            self.turn.context.outbox.upstreams().release(address);
        }
    }

    /// The connection is gone, and all exchanges with it.
    pub(super) fn break_all(&mut self) {
        let numbers: Vec<u32> = self.pen.http2.streams.iter().map(|stream| stream.number).collect();
        numbers.into_iter().for_each(|number| self.break_stream(number, Ended::Gone));
    }

    /// The peer sends no more: those who wait for their answers are told, and those whose answers go on.
    pub(super) fn hear_end(&mut self) {
        self.pen.http2.session.handle_end();
        for number in self.pen.http2.streams.under_way() {
            let address = self.address(number);
            let stream = self.pen.http2.streams.find_mut(number);
            let exchange = stream.and_then(|stream| stream.exchange.as_mut());
            match exchange.map(|exchange| (&mut exchange.life, exchange.owner)) {
                Some((Life::Waiting, owner)) => {
                    self.turn.handler.left(owner, address, Departure::SendsNoMore);
                }
                Some((Life::Open(state), _)) => state.wants_room = true,
                Some((Life::Collecting { .. }, _)) | None => {}
            }
        }
    }

    /// The peer is told that an answer will never be complete.
    pub(super) fn reset(&mut self, number: u32) {
        if self.pen.http2.session.awaits_answer(number) {
            let (now_ms, out) = (self.turn.now_ms, self.outgoing.bytes());
            self.pen.http2.session.reset(number, ErrorCode::INTERNAL_ERROR, now_ms, out);
        }
    }

    /// Tells the handler, once, how an answer that went on has ended.
    pub(super) fn finish(&mut self, number: u32, why: Ended) {
        let address = self.address(number);
        let Some(stream) = self.pen.http2.streams.find(number) else { return };
        let Some(exchange) = &stream.exchange else { return };
        let Life::Open(state) = &exchange.life else { return };
        let request = exchange.request.get();
        let clients = self.turn.context.clients.as_ref();
        let peer = clients.and_then(|clients| clients.client(address.slot, &request));
        self.turn.handler.finished(&Finished {
            address,
            owner: exchange.owner,
            request: Some(&request),
            status: exchange.status,
            body_bytes: state.body_bytes,
            unix_ms: self.turn.context.unix_ms,
            peer,
            identity: self.turn.context.identity(),
            why,
        });
    }
}
