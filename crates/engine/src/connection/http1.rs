//! The one exchange of HTTP/1.1 that is not over at once, as its life sees it, and the body of its request.
//!
//! This module must never be on the way of a request that is answered at once, nor take bytes of a body that
//! is wanted for bytes that are to be ignored.

use staunch_netio::Outgoing;
use staunch_protocol::http1::{Event, Session};

use super::{Connection, Phase};
use crate::exchange::Exchange;
use crate::exchange::address::Address;
use crate::exchange::exchanges::Exchanges;
use crate::exchange::life::{self, Moved};
use crate::exchange::open::{Ended, OpenState};
use crate::exchange::outlet::Outlet;
use crate::exchange::pen::{Http1Pen, Pen};
use crate::exchange::port::Port;
use crate::exchange::rendered::Rendered;
use crate::exchange::turn::Turn;
use crate::exchange::under_way::UnderWay;
use crate::handler::{Body, Handler};
use crate::limits::{IGNORED_BYTES_MAX, OUTGOING_BYTES_MAX, WRITTEN_BYTES_MAX};

/// The parts of a connection of HTTP/1.1 that its exchange needs, borrowed for one event.
pub(super) struct OnlyPort<'c> {
    session: &'c mut Session,
    exchanges: &'c mut Exchanges,
    phase: &'c mut Phase,
    generation: &'c mut u32,
    outgoing: &'c mut Outgoing,
    now_ms: u64,
    is_sending: bool,
    peer_ended: bool,
    turned_away: bool,
}

impl Port for OnlyPort<'_> {
    fn under_way(&self) -> Option<&UnderWay> {
        self.exchanges.one()
    }

    fn under_way_mut(&mut self) -> Option<&mut UnderWay> {
        self.exchanges.one_mut()
    }

    fn put(&mut self, exchange: Box<Exchange>) {
        self.begin_reading();
        *self.exchanges = Exchanges::One(UnderWay::Exchange(exchange));
    }

    /// The next request may come, under another address; or nothing does, if bytes behind this one were
    /// thrown away: where the next begins is not known.
    fn end(&mut self, address: &mut Address) {
        let state = self.exchanges.one().and_then(UnderWay::open);
        let has_ignored = state.and_then(|state| state.ignored_bytes).is_some_and(|bytes| bytes > 0);
        self.discard(address);
        if has_ignored {
            self.session.break_off();
            *self.phase = Phase::Ending { linger: !self.peer_ended };
        }
    }

    fn discard(&mut self, address: &mut Address) {
        *self.exchanges = Exchanges::default();
        *self.generation = self.generation.wrapping_add(1);
        address.generation = *self.generation;
    }

    fn note_draining(&mut self) {
        if self.session.kept_bytes() == 0 {
            self.session.close_after_response();
        }
    }

    fn pen<'a>(&'a mut self, rendered: &'a mut Rendered) -> (Pen<'a>, &'a mut Outgoing) {
        (Pen::Http1(Http1Pen { session: self.session, rendered: Some(rendered) }), self.outgoing)
    }

    fn outlet(&mut self) -> Option<Outlet<'_>> {
        Some(Outlet::Connection(self.outgoing))
    }

    fn has_room(&self) -> bool {
        !is_full(self.outgoing)
    }

    fn is_sending(&self) -> bool {
        self.is_sending
    }

    fn peer_ended(&self) -> bool {
        self.peer_ended
    }

    fn turned_away(&self) -> bool {
        self.turned_away
    }

    fn conclude(&mut self, state: OpenState) -> bool {
        let is_whole = state.body.end(self.outgoing.bytes());
        if let Some(under_way) = self.exchanges.one_mut().filter(|_| is_whole) {
            under_way.set_open(OpenState { concluded: true, ..state });
            self.session.end_response();
        }
        is_whole
    }

    fn reset(&mut self) {
        self.session.break_off();
        *self.phase = Phase::Ending { linger: false };
    }

    fn begin_reading(&mut self) {
        self.session.begin_reading(self.now_ms);
    }

    fn rest(&mut self) {
        if let Some(under_way) = self.exchanges.one_mut() {
            under_way.rest();
        }
    }
}

impl Connection {
    /// Lends what the life of the only exchange needs.
    pub(super) fn port<'c>(&'c mut self, outgoing: &'c mut Outgoing, now_ms: u64) -> OnlyPort<'c> {
        let (peer_ended, turned_away) = (self.marks.has_ended(), self.marks.is_turned_away());
        let Self { session, exchanges, phase, generation, sending, .. } = self;
        let is_sending = *sending;
        OnlyPort {
            session,
            exchanges,
            phase,
            generation,
            outgoing,
            now_ms,
            is_sending,
            peer_ended,
            turned_away,
        }
    }

    /// Goes on with the exchange as far as its body, its room and its handler allow. Whether it is over, so
    /// that another request may be read.
    #[cold]
    pub(super) fn go_on<H: Handler>(
        &mut self,
        input: &mut &[u8],
        outgoing: &mut Outgoing,
        turn: &mut Turn<'_, H>,
    ) -> bool {
        loop {
            match life::move_on(&mut self.port(outgoing, turn.now_ms), turn) {
                Moved::Nothing => {}
                Moved::Again => continue,
                Moved::Over => return self.phase == Phase::Open,
                Moved::Sending => return false,
            }
            if self.ignore(input) {
                continue;
            }
            if !self.read_body(input, outgoing, turn) {
                return false;
            }
            if self.exchanges.are_none() {
                return true;
            }
        }
    }

    /// Gives the next of the request's body to the exchange, if that takes it now. Whether there was any.
    fn read_body<H: Handler>(
        &mut self,
        input: &mut &[u8],
        outgoing: &mut Outgoing,
        turn: &mut Turn<'_, H>,
    ) -> bool {
        let takes_body = self.exchanges.one().is_some_and(UnderWay::takes_body);
        if !takes_body || is_full(outgoing) || !self.session.is_reading() {
            return false;
        }
        let (date, out) = (turn.context.date, outgoing.bytes());
        let body = match self.session.poll_event_with(turn.heads, input, turn.now_ms, date, out) {
            Event::Body(piece) => Body::Piece(piece),
            Event::BodyEnd => Body::End,
            Event::Close { linger, answered } => {
                turn.context.stats.connections.rejected.add(u64::from(answered.is_some()));
                turn.tell_refused(answered, self.exchanges.owner_of_refused());
                life::break_off(&mut self.port(outgoing, turn.now_ms), Ended::BadBody, turn);
                self.begin_ending(linger, turn);
                return false;
            }
            Event::NeedInput | Event::Request(_) | Event::Preface => return false,
        };
        life::give(&mut self.port(outgoing, turn.now_ms), body, turn);
        true
    }

    /// Throws away what came behind a request, so that the peer's end is heard, if its answer goes on and
    /// nothing else is listened to. Whether that was too much, so that the answer ends.
    fn ignore(&mut self, input: &mut &[u8]) -> bool {
        if input.is_empty() || self.session.is_reading() {
            return false;
        }
        let Some(under_way) = self.exchanges.one_mut() else { return false };
        let Some(mut state) = under_way.open() else { return false };
        let Some(ignored_bytes) = &mut state.ignored_bytes else { return false };
        *ignored_bytes += input.len() as u64;
        *input = &[];
        let is_too_much = *ignored_bytes > IGNORED_BYTES_MAX && state.end.is_none();
        if is_too_much {
            state.end = Some(Ended::Complete);
        }
        under_way.set_open(state);
        is_too_much
    }
}

/// Whether so much stands to be sent that no more of the request's body is taken, for its echo had no place.
fn is_full(outgoing: &Outgoing) -> bool {
    outgoing.written_bytes() >= WRITTEN_BYTES_MAX || outgoing.length_bytes() >= OUTGOING_BYTES_MAX
}
