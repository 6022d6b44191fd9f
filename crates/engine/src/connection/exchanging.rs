//! The exchange of a connection that is not over at once: waiting, collecting, going on.
//!
//! It must never be on the way of a request that is answered at once.

use staunch_netio::Outgoing;
use staunch_protocol::http1::Event;
use staunch_protocol::{KeptRequest, Request, Status};

use super::turn::Turn;
use super::{Connection, Phase};
use crate::exchange::answer::Answer;
use crate::exchange::answered::{Answered, Course};
use crate::exchange::open::{Ended, Open, OpenState};
use crate::exchange::outlet::Outlet;
use crate::exchange::owner::Owner;
use crate::exchange::pen::{Http1Pen, Pen};
use crate::exchange::streams::Stream;
use crate::exchange::under_way::UnderWay;
use crate::exchange::{Exchange, Finished, Life};
use crate::handler::{Body, Departure, Handler};
use crate::limits::{OUTGOING_BYTES_MAX, WRITTEN_BYTES_MAX};

impl Connection {
    /// A request waits for mail.
    pub(crate) fn is_waiting(&self, stream: u32) -> bool {
        if self.phase == Phase::Http2 {
            return self.stream(stream).is_some_and(Stream::is_waiting);
        }
        self.under_way.is_waiting()
    }

    /// An answer goes on.
    pub(crate) fn is_open(&self, stream: u32) -> bool {
        if self.phase == Phase::Http2 {
            return self.stream(stream).is_some_and(Stream::is_open);
        }
        self.under_way.is_open()
    }

    /// The part of the handler to which an exchange under way belongs.
    pub(crate) fn owner(&self, stream: u32) -> Option<Owner> {
        if self.phase == Phase::Http2 {
            return self.stream(stream).and_then(Stream::owner);
        }
        self.under_way.owner()
    }

    /// A request that has just come is not over at once.
    #[cold]
    pub(super) fn begin_exchange<H: Handler>(
        &mut self,
        request: &Request<'_>,
        answered: &Answered,
        turn: &mut Turn<'_, H>,
    ) {
        if answered.is_later() {
            turn.context.stats.waits.add(1);
        }
        let exchange = Exchange {
            request: KeptRequest::of(request),
            life: Life::Waiting,
            // Since when it is waited for counts from when the request came.
            since_ms: turn.came_ms,
            status: answered.status(),
            owner: answered.owner(),
        };
        self.phase = Phase::Exchanging;
        self.follow(Box::new(exchange), answered, false, turn);
    }

    /// Goes where the handler has led an exchange, `late` if it had waited.
    fn follow<H: Handler>(
        &mut self,
        mut exchange: Box<Exchange>,
        answered: &Answered,
        late: bool,
        turn: &mut Turn<'_, H>,
    ) {
        exchange.status = answered.status();
        if matches!(answered.outcome(), Course::Complete | Course::Open(_)) {
            turn.context.stats.requests.add(1);
            turn.context.stats.answered_late.add(u64::from(late));
        }
        exchange.life = match answered.outcome() {
            Course::Complete => return self.end_exchange(turn),
            Course::Later => Life::Waiting,
            Course::Collect { limit_bytes } => Life::Collecting { limit_bytes, body: Vec::new() },
            Course::Open(body) => Life::Open(OpenState::new(body)),
        };
        self.session.begin_reading(turn.now_ms);
        self.under_way = UnderWay::Exchange(exchange);
    }

    /// The exchange is over: the next request may come, under another address.
    fn end_exchange<H>(&mut self, turn: &mut Turn<'_, H>) {
        if self.under_way.open().is_some_and(|state| state.is_tuned) {
            turn.context.outbox.tune(turn.context.address.slot, false);
        }
        self.under_way = UnderWay::Nothing;
        turn.context.outbox.upstreams().release(turn.context.address);
        self.generation = self.generation.wrapping_add(1);
        turn.context.address.generation = self.generation;
        self.phase = Phase::Open;
    }

    /// The handler is asked by `ask` about the request that waits.
    pub(crate) fn resume<H: Handler>(
        &mut self,
        ask: impl FnOnce(&mut H, &Request<'_>, Answer<'_>) -> Answered,
        turn: &mut Turn<'_, H>,
    ) {
        if self.phase == Phase::Http2 {
            return self.resume_http2(ask, turn);
        }
        let Some(exchange) = self.under_way.take_exchange() else { return };
        let mut outgoing = self.outgoing(turn.spare);
        let waited_ms = turn.now_ms - exchange.since_ms;
        if turn.draining && self.session.kept_bytes() == 0 {
            self.session.close_after_response();
        }
        let (request, owner) = (exchange.request.get(), exchange.owner);
        if self.is_strained(turn) && self.send_back(Some(owner), &request, turn, &mut outgoing) {
            self.end_exchange(turn);
        } else {
            let answer = Answer {
                pen: Pen::Http1(Http1Pen { session: &mut self.session, rendered: Some(&mut *turn.rendered) }),
                outgoing: &mut outgoing,
                context: &turn.context,
                waited_ms: waited_ms as u32,
                owner,
            };
            let answered = ask(turn.handler, &request, answer);
            if !answered.is_later() {
                turn.count_late(waited_ms);
            }
            self.follow(exchange, &answered, true, turn);
        }
        self.put_outgoing(outgoing, turn.spare);
        self.converse(&[], turn);
    }

    /// The peer sends no more: the handler of an answer that goes on is asked once more.
    pub(super) fn tell_end(&mut self) {
        if let Some(state) = self.under_way.open() {
            self.under_way.set_open(OpenState { wants_room: true, ..state });
        }
    }

    /// The handler wants to be asked again about the exchange under way.
    pub(crate) fn wake<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        if self.phase == Phase::Http2 {
            return self.wake_http2(turn);
        }
        if self.under_way.is_waiting() {
            self.resume(H::woken, turn);
        } else if let Some(state) = self.under_way.open() {
            self.under_way.set_open(OpenState { wants_room: true, ..state });
            self.converse(&[], turn);
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
            if self.under_way.is_open() {
                match self.move_on(outgoing, turn) {
                    Moved::Nothing => {}
                    Moved::Again => continue,
                    Moved::Over => return self.phase == Phase::Open,
                    Moved::Sending => return false,
                }
            }
            if self.ignore(input) {
                continue;
            }
            if !self.under_way.takes_body() || is_full(outgoing) || !self.session.is_reading() {
                return false;
            }
            let (date, out) = (turn.context.date, outgoing.bytes());
            match self.session.poll_event_with(turn.heads, input, turn.now_ms, date, out) {
                Event::Body(piece) => self.take_body(Body::Piece(piece), outgoing, turn),
                Event::BodyEnd => self.take_body(Body::End, outgoing, turn),
                Event::Close { linger, answered } => {
                    turn.context.stats.rejected.add(u64::from(answered.is_some()));
                    turn.tell_refused(answered, self.under_way.owner());
                    self.break_exchange(Ended::BadBody, turn);
                    self.begin_ending(linger, turn);
                    return false;
                }
                Event::NeedInput | Event::Request(_) | Event::Preface => return false,
            }
            if self.under_way.is_nothing() {
                return true;
            }
        }
    }

    /// Tells the handler of room, and carries out what it has said of the answer that goes on.
    fn move_on<H: Handler>(&mut self, outgoing: &mut Outgoing, turn: &mut Turn<'_, H>) -> Moved {
        let is_sent = outgoing.is_empty() && !self.sending;
        let Some(state) = self.under_way.open() else { return Moved::Nothing };
        match state.end {
            Some(_) if state.concluded && is_sent => {
                let has_ignored = state.ignored_bytes.is_some_and(|bytes| bytes > 0);
                self.finish(Ended::Complete, turn);
                self.end_exchange(turn);
                if has_ignored {
                    self.end_ignoring();
                }
                Moved::Over
            }
            Some(_) if state.concluded => Moved::Sending,
            Some(Ended::Complete) if state.body.end(outgoing.bytes()) => {
                self.under_way.set_open(OpenState { concluded: true, ..state });
                self.session.end_response();
                Moved::Again
            }
            Some(why) => {
                let why = if why == Ended::Complete { Ended::Aborted } else { why };
                self.session.break_off();
                self.break_exchange(why, turn);
                self.phase = Phase::Ending { linger: false };
                Moved::Over
            }
            None if state.wants_room && !is_full(outgoing) => self.tell_room(state, outgoing, turn),
            None => Moved::Nothing,
        }
    }

    /// Tells the handler that there is room for more of an answer that goes on.
    fn tell_room<H: Handler>(
        &mut self,
        mut state: OpenState,
        outgoing: &mut Outgoing,
        turn: &mut Turn<'_, H>,
    ) -> Moved {
        (state.wants_room, state.releases_request) = (false, false);
        let was_held = state.held;
        if !was_held {
            self.session.begin_reading(turn.now_ms);
        }
        let (sending, peer_ended, context) = (self.sending, self.has_ended(), &turn.context);
        let (outlet, owner) = (Outlet::Connection(outgoing), self.under_way.owner().unwrap_or_default());
        turn.handler.ready(&mut Open { state: &mut state, outlet, context, owner, sending, peer_ended });
        if was_held && !state.held {
            self.session.begin_reading(turn.now_ms);
        }
        self.under_way.set_open(state);
        if state.releases_request && !self.session.is_reading() {
            self.under_way.rest();
        }
        // What the handler has said of the end is carried out first: it may have asked for room before.
        let waits = state.end.is_none() && state.wants_room && !is_full(outgoing);
        if waits { Moved::Nothing } else { Moved::Again }
    }

    /// Some of the body has come that the exchange wants.
    fn take_body<H: Handler>(&mut self, body: Body<'_>, outgoing: &mut Outgoing, turn: &mut Turn<'_, H>) {
        let Some(mut exchange) = self.under_way.take_exchange() else { return };
        match (&mut exchange.life, body) {
            (Life::Open(state), _) => {
                let context = &turn.context;
                let (sending, peer_ended) = (self.sending, self.has_ended());
                let (outlet, owner) = (Outlet::Connection(outgoing), exchange.owner);
                let mut open = Open { state, outlet, context, owner, sending, peer_ended };
                turn.handler.body(body, &mut open);
            }
            (Life::Collecting { limit_bytes, body }, Body::Piece(piece)) => {
                if body.len() + piece.len() > *limit_bytes {
                    return self.refuse_body(&exchange, outgoing, turn);
                }
                body.extend_from_slice(piece);
            }
            (Life::Collecting { body, .. }, Body::End) => {
                let body = std::mem::take(body);
                let request = exchange.request.get();
                let rendered = Some(&mut *turn.rendered);
                let answer = Answer {
                    pen: Pen::Http1(Http1Pen { session: &mut self.session, rendered }),
                    outgoing,
                    context: &turn.context,
                    waited_ms: 0,
                    owner: exchange.owner,
                };
                let answered = turn.handler.collected(body, &request, answer);
                turn.context.stats.waits.add(u64::from(answered.is_later()));
                return self.follow(exchange, &answered, false, turn);
            }
            (Life::Waiting, _) => {}
        }
        self.under_way = UnderWay::Exchange(exchange);
    }

    /// The body is longer than is collected.
    fn refuse_body<H: Handler>(
        &mut self,
        exchange: &Exchange,
        outgoing: &mut Outgoing,
        turn: &mut Turn<'_, H>,
    ) {
        self.session.stop_reading();
        let answered = Answer::new(&mut self.session, outgoing, &turn.context).too_large();
        let body_bytes = answered.body_bytes() as usize;
        turn.context.stats.requests.add(1);
        let request = exchange.request.get();
        turn.tell(Some(exchange.owner), Status::CONTENT_TOO_LARGE, body_bytes, Some(&request));
        self.end_exchange(turn);
    }

    /// The exchange under way, if any, will not come to its end.
    pub(crate) fn break_exchange<H: Handler>(&mut self, why: Ended, turn: &mut Turn<'_, H>) {
        if self.phase == Phase::Http2 {
            return self.break_http2(turn);
        }
        if self.under_way.is_nothing() {
            return;
        }
        if self.under_way.is_waiting() {
            let owner = self.under_way.owner().unwrap_or_default();
            turn.context.stats.waits_lost.add(1);
            turn.handler.left(owner, turn.context.address, Departure::Gone);
        }
        self.finish(why, turn);
        self.end_exchange(turn);
    }

    /// Tells the handler, once, how an answer has ended, if it went on.
    fn finish<H: Handler>(&mut self, why: Ended, turn: &mut Turn<'_, H>) {
        let Some(state) = self.under_way.open() else { return };
        let Some((kept, status, owner)) = self.under_way.asked() else { return };
        let request = kept.map(KeptRequest::get);
        let slot = turn.context.address.slot;
        let peer = turn.context.clients.as_ref().and_then(|clients| match &request {
            Some(request) => clients.client(slot, request),
            None => clients.address(slot),
        });
        turn.handler.finished(&Finished {
            address: turn.context.address,
            owner,
            request: request.as_ref(),
            status,
            body_bytes: state.body_bytes,
            unix_ms: turn.context.unix_ms,
            peer,
            identity: turn.context.identity(),
            why,
        });
    }
}

/// What became of an answer that goes on.
enum Moved {
    /// Nothing: its handler has said nothing new.
    Nothing,
    /// Something, and more may follow.
    Again,
    /// The answer is over.
    Over,
    /// The answer is over once its last bytes are sent.
    Sending,
}

/// So much stands to be sent that no more of the request's body is taken: what it leads to has no place.
fn is_full(outgoing: &Outgoing) -> bool {
    outgoing.written_bytes() >= WRITTEN_BYTES_MAX || outgoing.length_bytes() >= OUTGOING_BYTES_MAX
}
