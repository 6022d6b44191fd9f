//! The exchanges of a connection that are not over at once, one a stream: waiting, collecting, going on.
//!
//! It must never be on the way of a request that is answered at once.

use staunch_protocol::http1::BodyOut;
use staunch_protocol::{BodyIn, KeptRequest, Request};

use super::round::Round;
use crate::exchange::answer::Answer;
use crate::exchange::answered::{Answered, Course};
use crate::exchange::open::{Ended, Open, OpenState};
use crate::exchange::outlet::Outlet;
use crate::exchange::streams::BodyEnd;
use crate::exchange::{Exchange, Life};
use crate::handler::Handler;
use crate::limits::OPEN_ROOM_BYTES;
use crate::upstream::{Upstream, UpstreamEvent};

impl<H: Handler> Round<'_, '_, H> {
    /// A request that has just come is not over at once.
    #[cold]
    pub(super) fn begin_exchange(&mut self, number: u32, request: &Request<'_>, answered: &Answered) {
        self.turn.context.stats.waits.add(u64::from(answered.is_later()));
        let exchange = Exchange {
            request: KeptRequest::of(request),
            life: Life::Waiting,
            // Since when it is waited for counts from when the request came.
            since_ms: self.turn.came_ms,
            status: answered.status(),
            owner: answered.owner(),
        };
        if request.content == BodyIn::None {
            self.pen.http2.streams.hold(number).body_end = BodyEnd::Came;
        }
        self.follow(number, Box::new(exchange), answered, false);
    }

    /// Goes where the handler has led an exchange, `late` if it had waited.
    pub(super) fn follow(
        &mut self,
        number: u32,
        mut exchange: Box<Exchange>,
        answered: &Answered,
        late: bool,
    ) {
        exchange.status = answered.status();
        if matches!(answered.outcome(), Course::Complete | Course::Open(_)) {
            self.turn.context.stats.requests.add(1);
            self.turn.context.stats.answered_late.add(u64::from(late));
        }
        exchange.life = match answered.outcome() {
            Course::Complete => return self.end_exchange(number),
            Course::Later => Life::Waiting,
            Course::Collect { limit_bytes } => Life::Collecting { limit_bytes, body: Vec::new() },
            Course::Open(body) => Life::Open(OpenState::new(body)),
        };
        let container = self.pen.http2.container;
        let stream = self.pen.http2.streams.hold(number);
        stream.container = container;
        if matches!(exchange.life, Life::Open(_)) && !stream.reads {
            (stream.body, stream.body_end) = (Vec::new(), BodyEnd::Told);
        }
        stream.exchange = Some(exchange);
    }

    /// The handler is asked by `ask` about a request that waits.
    pub(super) fn resume(
        &mut self,
        number: u32,
        ask: impl FnOnce(&mut H, &Request<'_>, Answer<'_>) -> Answered,
    ) {
        let stream = self.pen.http2.streams.find_mut(number);
        let Some(stream) = stream.filter(|stream| stream.is_waiting()) else { return };
        // That it is over may not have been told yet.
        if !self.pen.http2.session.awaits_answer(number) {
            return;
        }
        let Some(exchange) = stream.exchange.take() else { return };
        let waited_ms = self.turn.now_ms - exchange.since_ms;
        let (request, owner) = (exchange.request.get(), exchange.owner);
        if self.is_strained() && self.send_back(number, Some(owner), &request) {
            return self.end_exchange(number);
        }
        let answered = self.ask(number, &request, (waited_ms as u32, owner), ask);
        if !answered.is_later() {
            self.turn.count_late(waited_ms);
        }
        self.follow(number, exchange, &answered, true);
    }

    /// The handler wants to be asked again about an exchange.
    pub(super) fn wake(&mut self, number: u32) {
        let Some(stream) = self.pen.http2.streams.find_mut(number) else { return };
        match stream.exchange.as_mut().map(|exchange| &mut exchange.life) {
            Some(Life::Open(state)) => state.wants_room = true,
            Some(Life::Waiting) => self.resume(number, H::woken),
            Some(Life::Collecting { .. }) | None => {}
        }
    }

    /// Something has happened on the upstream of an exchange.
    pub(super) fn hear(&mut self, number: u32, upstream: Upstream, event: UpstreamEvent<'_>) {
        let outbox = self.turn.context.outbox;
        self.lend_open(number, |handler, open| handler.upstream(upstream, event, Some(open), outbox));
    }

    /// Lends the handler an answer that goes on.
    pub(super) fn lend_open(&mut self, number: u32, act: impl FnOnce(&mut H, &mut Open<'_>)) {
        let sent_before = self.pen.http2.container - u64::from(self.is_sending);
        let Some(stream) = self.pen.http2.streams.find_mut(number) else { return };
        let Some(exchange) = stream.exchange.as_deref_mut() else { return };
        let Life::Open(state) = &mut exchange.life else { return };
        self.turn.context.address.stream = number;
        let mut open = Open {
            state,
            outlet: Outlet::Stream(&mut stream.rest),
            context: &self.turn.context,
            owner: exchange.owner,
            sending: stream.container >= sent_before,
            peer_ended: self.peer_ended,
        };
        act(&mut *self.turn.handler, &mut open);
    }

    /// All exchanges go on as far as they can, and then answers that waited. Whether anything moved.
    pub(super) fn go_on(&mut self) -> bool {
        let mut moved = false;
        for number in self.pen.http2.streams.under_way() {
            moved |= self.feed(number);
            moved |= self.move_on(number);
        }
        moved | self.send_waiting()
    }

    /// Tells the handler of room, and carries out what it has said of an answer that goes on.
    fn move_on(&mut self, number: u32) -> bool {
        let sent_before = self.pen.http2.container - u64::from(self.is_sending);
        let Some(stream) = self.pen.http2.streams.find_mut(number) else { return false };
        let Some(exchange) = stream.exchange.as_deref_mut() else { return false };
        let Life::Open(state) = &mut exchange.life else { return false };
        match (state.end, state.body) {
            (Some(_), _) if state.concluded && stream.container < sent_before => {
                self.finish(number, Ended::Complete);
                self.end_exchange(number);
                true
            }
            (Some(_), _) if state.concluded => false,
            // An answer without a body has ended with its head.
            (Some(Ended::Complete), BodyOut::Nothing) => {
                state.concluded = true;
                true
            }
            (Some(Ended::Complete), BodyOut::Length(1..)) => self.give_up(number, Ended::Aborted),
            (Some(Ended::Complete), _) if stream.is_blocked => false,
            (Some(Ended::Complete), _) => !self.is_behind() && self.send(number),
            (Some(why), _) => self.give_up(number, why),
            (None, _) => self.fill(number),
        }
    }

    /// The handler of an answer that goes on is told of room, and what it has pushed is sent.
    fn fill(&mut self, number: u32) -> bool {
        let moved = self.tell_room(number);
        let Some(stream) = self.pen.http2.streams.find(number) else { return moved };
        let has_more = !stream.rest.is_empty() && !stream.is_blocked;
        let sent = has_more && !self.is_behind() && self.send(number);
        moved | sent
    }

    /// Whether the handler had something to say.
    fn tell_room(&mut self, number: u32) -> bool {
        let Some(stream) = self.pen.http2.streams.find_mut(number) else { return false };
        let before_bytes = stream.rest.length_bytes();
        let Some(Life::Open(state)) = stream.exchange.as_mut().map(|exchange| &mut exchange.life) else {
            return false;
        };
        if !state.wants_room || before_bytes >= OPEN_ROOM_BYTES {
            return false;
        }
        state.wants_room = false;
        let was_held = state.held;
        self.lend_open(number, H::ready);
        let Some(stream) = self.pen.http2.streams.find(number) else { return true };
        let after_bytes = stream.rest.length_bytes();
        let Some(Life::Open(state)) = stream.exchange.as_ref().map(|exchange| &exchange.life) else {
            return true;
        };
        after_bytes > before_bytes || state.end.is_some() || (was_held && !state.held)
    }

    /// An answer will never be complete: the peer is told so.
    fn give_up(&mut self, number: u32, why: Ended) -> bool {
        self.reset(number);
        self.break_stream(number, why);
        true
    }
}
