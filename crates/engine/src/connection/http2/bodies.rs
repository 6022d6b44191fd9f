//! Bodies of requests: given to whoever wants them, held while nobody can take them.
//!
//! What is held has a bound: a peer may send no more of a body than its window, which grows only by what was
//! given. It must never give a byte twice, nor before those that came earlier.

use staunch_protocol::Status;

use super::round::Round;
use crate::exchange::streams::BodyEnd;
use crate::exchange::{Exchange, Life};
use crate::handler::{Body, Handler};

impl<H: Handler> Round<'_, '_, H> {
    /// Some of a body has come.
    pub(super) fn take_body(&mut self, number: u32, piece: &[u8]) {
        match self.pen.http2.streams.find_mut(number) {
            Some(stream) if stream.takes_body() && stream.body.is_empty() => {
                self.give(number, Body::Piece(piece));
            }
            Some(stream) => stream.body.extend_from_slice(piece),
            None => self.taken(number, piece),
        }
    }

    /// All of a body has come.
    pub(super) fn end_body(&mut self, number: u32) {
        if let Some(stream) = self.pen.http2.streams.find_mut(number)
            && stream.body_end == BodyEnd::Awaited
        {
            stream.body_end = BodyEnd::Came;
        }
        self.feed(number);
    }

    /// Gives what is held of a body, if it is wanted now. Whether it was.
    pub(super) fn feed(&mut self, number: u32) -> bool {
        let Some(stream) = self.pen.http2.streams.find_mut(number) else { return false };
        if !stream.takes_body() {
            return false;
        }
        if !stream.body.is_empty() {
            let held = std::mem::take(&mut stream.body);
            self.give(number, Body::Piece(&held));
            return true;
        }
        if stream.body_end != BodyEnd::Came {
            return false;
        }
        stream.body_end = BodyEnd::Told;
        self.give(number, Body::End);
        true
    }

    fn give(&mut self, number: u32, body: Body<'_>) {
        let Some(stream) = self.pen.http2.streams.find_mut(number) else { return };
        match stream.exchange.as_mut().map(|exchange| &mut exchange.life) {
            Some(Life::Open(_)) => self.lend_open(number, |handler, open| handler.body(body, open)),
            Some(Life::Collecting { limit_bytes, body: collected }) => match body {
                Body::Piece(piece) if collected.len() + piece.len() > *limit_bytes => {
                    return self.refuse_body(number);
                }
                Body::Piece(piece) => collected.extend_from_slice(piece),
                Body::End => return self.end_collecting(number),
            },
            Some(Life::Waiting) | None => {}
        }
        if let Body::Piece(piece) = body {
            self.taken(number, piece);
        }
    }

    /// A piece is held no more: its peer may send as much again.
    fn taken(&mut self, number: u32, piece: &[u8]) {
        let (now_ms, out) = (self.turn.now_ms, self.outgoing.bytes());
        self.pen.http2.session.taken(number, piece.len(), now_ms, out);
    }

    /// A body that was to be collected is there.
    fn end_collecting(&mut self, number: u32) {
        let Some(mut exchange) = self.take_exchange(number) else { return };
        let Life::Collecting { body, .. } = &mut exchange.life else { return };
        let body = std::mem::take(body);
        let request = exchange.request.get();
        let answered = self.ask(number, &request, (0, exchange.owner), |handler, request, answer| {
            handler.collected(body, request, answer)
        });
        self.turn.context.stats.waits.add(u64::from(answered.is_later()));
        self.follow(number, exchange, &answered, false);
    }

    /// The body is longer than is collected.
    fn refuse_body(&mut self, number: u32) {
        let Some(exchange) = self.take_exchange(number) else { return };
        let request = exchange.request.get();
        let answered = self.ask(number, &request, (0, exchange.owner), |_, _, answer| answer.too_large());
        let body_bytes = answered.body_bytes() as usize;
        self.turn.context.stats.requests.add(1);
        self.turn.tell(Some(exchange.owner), Status::CONTENT_TOO_LARGE, body_bytes, Some(&request));
        self.end_exchange(number);
    }

    fn take_exchange(&mut self, number: u32) -> Option<Box<Exchange>> {
        self.pen.http2.streams.find_mut(number)?.exchange.take()
    }
}
