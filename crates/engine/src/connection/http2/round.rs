//! A round of events of an HTTP/2 connection.
//!
//! A round owns the order of its events, and knows which stream is in hand. A round must never look at
//! further requests while enough stands to be sent, nor give a byte of a body before those that came earlier.

use staunch_protocol::Request;
use staunch_protocol::http2::{ErrorCode, Event, WorkerMemory};

use super::port::StreamPort;
use crate::exchange::address::StreamRef;
use crate::exchange::life::{self, Moved};
use crate::exchange::open::Ended;
use crate::exchange::port::Port;
use crate::exchange::streams::BodyEnd;
use crate::exchange::turn::Turn;
use crate::handler::{Body, Handler};

/// What is lent to a round.
pub(in crate::connection) struct Round<'r, 't, H> {
    pub(super) port: StreamPort<'r>,
    pub(super) turn: &'r mut Turn<'t, H>,
}

impl<'r, 't, H: Handler> Round<'r, 't, H> {
    /// Takes a stream in hand.
    pub(super) fn at(&mut self, number: u32) -> (&mut StreamPort<'r>, &mut Turn<'t, H>) {
        self.port.pen.stream = number;
        self.turn.context.address.stream = StreamRef::of(number);
        (&mut self.port, self.turn)
    }

    /// Deals with bytes that came, and with all that can go on. Whether some of the bytes wait for what
    /// stands to be sent; and if the connection reads no more, whether to linger.
    pub(super) fn go(&mut self, bytes: &[u8], memory: &mut WorkerMemory) -> (bool, Option<bool>) {
        if self.turn.draining {
            self.port.pen.http2.session.leave(self.port.outgoing.bytes());
        }
        let joined = self.port.pen.http2.session.take_kept(bytes);
        let mut input = &joined[..];
        let closed = loop {
            let closed = self.take_events(&mut input, memory);
            if closed.is_some() || !self.go_on() {
                break closed;
            }
        };
        if closed.is_some() {
            self.break_all(Ended::Gone);
        }
        self.port.pen.http2.session.keep(input, self.turn.now_ms);
        (!input.is_empty() && self.port.is_behind(), closed)
    }

    /// Deals with what the session has to say. Gives whether to linger when it reads no more.
    fn take_events(&mut self, input: &mut &[u8], memory: &mut WorkerMemory) -> Option<bool> {
        while !self.port.is_behind() {
            let (session, out) = (&mut self.port.pen.http2.session, self.port.outgoing.bytes());
            match session.poll_event(memory, input, self.turn.now_ms, &self.port.pen.opening, out) {
                Event::Request { stream, ref request } => self.answer(stream, request),
                Event::Body { stream, piece } => self.take_body(stream, piece),
                Event::BodyEnd { stream } => self.end_body(stream),
                Event::Reset { stream, .. } => {
                    self.turn.context.stats.http2.resets.add(1);
                    let (port, turn) = self.at(stream);
                    life::break_off(port, Ended::Gone, turn);
                }
                Event::Refused { stream, answered, .. } => {
                    let (_, turn) = self.at(stream);
                    turn.context.stats.http2.refused.add(1);
                    turn.tell_refused(answered, None);
                }
                Event::NeedInput => return None,
                Event::Close { linger, fault } => {
                    let is_calm = fault.is_some_and(|fault| fault.code == ErrorCode::ENHANCE_YOUR_CALM);
                    self.turn.context.stats.http2.calmed.add(u64::from(is_calm));
                    self.turn.context.stats.connections.rejected.add(u64::from(fault.is_some()));
                    return Some(linger);
                }
            }
        }
        None
    }

    /// Answers a request that has just come.
    fn answer(&mut self, number: u32, request: &Request<'_>) {
        let (port, turn) = self.at(number);
        turn.context.stats.http2.requests.add(1);
        if turn.is_strained(port.turned_away) && life::send_back(port, None, request, turn) {
            return;
        }
        let too_soon = turn.is_too_soon(request);
        if too_soon || turn.context.is_misdirected(request.host) {
            return life::turn_down(port, too_soon, request, turn);
        }
        let answered = life::ask(port, request, life::NEW, turn, H::handle);
        if !answered.is_complete() {
            return life::begin(port, request, &answered, turn);
        }
        life::throw_body_away(port, request, turn);
        turn.context.stats.requests.answered.add(1);
    }

    /// A piece of a body has come. While nobody can take it, it is held: its peer may send no more of a body
    /// than its window, which grows only by what was given.
    fn take_body(&mut self, number: u32, piece: &[u8]) {
        let (port, turn) = self.at(number);
        match port.stream_mut() {
            Some(stream) if stream.takes_body() && stream.body.is_empty() => {
                life::give(port, Body::Piece(piece), turn);
            }
            Some(stream) => stream.body.extend_from_slice(piece),
            None => port.taken(piece.len()),
        }
    }

    /// All of a body has come.
    fn end_body(&mut self, number: u32) {
        if let Some(stream) = self.port.pen.http2.streams.find_mut(number)
            && stream.body_end == BodyEnd::Awaited
        {
            stream.body_end = BodyEnd::Came;
        }
        self.feed(number);
    }

    /// Gives what is held of a body, if it is wanted now. Whether it was.
    fn feed(&mut self, number: u32) -> bool {
        let (port, turn) = self.at(number);
        let Some(stream) = port.stream_mut().filter(|stream| stream.takes_body()) else { return false };
        if !stream.body.is_empty() {
            let held = std::mem::take(&mut stream.body);
            life::give(port, Body::Piece(&held), turn);
            return true;
        }
        if stream.body_end != BodyEnd::Came {
            return false;
        }
        stream.body_end = BodyEnd::Told;
        life::give(port, Body::End, turn);
        true
    }

    /// All exchanges go on as far as they can, and then answers that waited. Whether anything moved.
    fn go_on(&mut self) -> bool {
        let mut moved = false;
        for number in self.port.pen.http2.streams.under_way() {
            let (port, turn) = self.at(number);
            moved |= matches!(life::move_on(port, turn), Moved::Again | Moved::Over);
            moved |= self.feed(number);
        }
        moved | self.port.send_waiting()
    }

    /// No exchange will come to its end.
    pub(in crate::connection) fn break_all(&mut self, why: Ended) {
        for number in self.port.pen.http2.streams.numbers() {
            let (port, turn) = self.at(number);
            life::break_off(port, why, turn);
        }
    }

    /// The peer sends no more: those who wait for their answers are told, and those whose answers go on.
    pub(super) fn hear_end(&mut self) {
        self.port.pen.http2.session.handle_end();
        for number in self.port.pen.http2.streams.under_way() {
            let (port, turn) = self.at(number);
            life::hear_end(port, turn);
        }
    }
}
