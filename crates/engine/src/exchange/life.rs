//! The life of an exchange that is not over at once: waiting, collecting, read, going on, ended or broken.
//!
//! The life of an exchange is the same whatever protocol carries it; differences stand behind a port. This
//! module must never be on the way of a request that is answered at once, nor tell the end of an exchange
//! twice.

use staunch_protocol::http1::BodyOut;
use staunch_protocol::{KeptRequest, Method, Request, Status};

use super::answer::{Answer, MISDIRECTED};
use super::answered::{Answered, Course};
use super::open::{Ended, Open, OpenState};
use super::owner::Owner;
use super::port::Port;
use super::reading::Reading;
use super::reading_state::{ReadingState, Rest};
use super::turn::{COME_BACK, Turn};
use super::under_way::UnderWay;
use super::{Exchange, Finished, Life};
use crate::clients::TOO_SOON_BODY;
use crate::handler::{Body, Departure, Handler};
use crate::upstream::{Upstream, UpstreamEvent};

/// A request that has just come: it has waited for 0 ms, and its exchange has no owner yet.
pub(crate) const NEW: (u32, Owner) = (0, Owner(0));

/// The outcome of an attempt to move an answer that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Nothing: its handler has said nothing new.
    Nothing,
    /// Something, and more may follow.
    Again,
    /// The answer is over.
    Over,
    /// The answer is over once its last bytes are sent.
    Sending,
}

/// A request that has just come is not over at once.
#[cold]
pub(crate) fn begin<H: Handler>(
    port: &mut impl Port,
    request: &Request<'_>,
    answered: &Answered,
    turn: &mut Turn<'_, H>,
) {
    turn.context.stats.requests.waits.add(u64::from(answered.is_later()));
    let exchange = Exchange {
        request: KeptRequest::of(request),
        life: Life::Waiting { handler_bytes: 0 },
        // Since when it is waited for counts from when the request came.
        since_ms: turn.came_ms,
        status: answered.status(),
        owner: answered.owner(),
    };
    port.begin(request);
    follow(port, Box::new(exchange), answered, false, turn);
    // A peer that has ended behind several requests is told of to each that waits.
    if port.peer_ended() && (is_waiting(port) || is_reading(port)) {
        tell_left(port, Departure::SendsNoMore, turn);
    }
}

/// Goes where the handler has led an exchange, `late` if it had waited.
fn follow<H: Handler>(
    port: &mut impl Port,
    mut exchange: Box<Exchange>,
    answered: &Answered,
    late: bool,
    turn: &mut Turn<'_, H>,
) {
    exchange.status = answered.status();
    if answered.owner() != Owner::default() {
        exchange.owner = answered.owner();
    }
    if matches!(answered.outcome(), Course::Complete | Course::Open(_)) {
        turn.context.stats.requests.answered.add(1);
        turn.context.stats.requests.answered_late.add(u64::from(late));
    }
    exchange.life = match answered.outcome() {
        Course::Complete => return end(port, turn),
        Course::Later { handler_bytes } => Life::Waiting { handler_bytes },
        Course::Collect { limit_bytes } => Life::Collecting { limit_bytes, body: Vec::new() },
        Course::Read { is_held, .. } => Life::Reading(ReadingState { is_held, ..ReadingState::default() }),
        Course::Open(body) => Life::Open(OpenState::new(body)),
    };
    port.put(exchange);
}

/// Asks the handler about a request that waited for so long, in an exchange of this owner.
pub(crate) fn ask<H: Handler, R>(
    port: &mut impl Port,
    request: &Request<'_>,
    (waited_ms, owner): (u32, Owner),
    turn: &mut Turn<'_, H>,
    ask: impl FnOnce(&mut H, &Request<'_>, Answer<'_>) -> R,
) -> R {
    let (pen, outgoing) = port.pen(turn.rendered);
    ask(turn.handler, request, Answer { pen, outgoing, context: &turn.context, waited_ms, owner })
}

/// The handler is asked by `ask` about a request that waits.
pub(crate) fn resume<H: Handler>(
    port: &mut impl Port,
    turn: &mut Turn<'_, H>,
    ask_handler: impl FnOnce(&mut H, &Request<'_>, Answer<'_>) -> Answered,
) {
    // The session may know that the stream is over, and not have told it yet.
    if !is_waiting(port) || !port.awaits() {
        return;
    }
    let Some(exchange) = take_exchange(port) else { return };
    let waited_ms = turn.now_ms - exchange.since_ms;
    if turn.draining {
        port.note_draining();
    }
    let (request, owner) = (exchange.request.get(), exchange.owner);
    if turn.is_strained(port.turned_away()) && send_back(port, Some(owner), &request, turn) {
        return end(port, turn);
    }
    let answered = ask(port, &request, (waited_ms as u32, owner), turn, ask_handler);
    if !answered.is_later() {
        turn.count_late(waited_ms);
    }
    follow(port, exchange, &answered, true, turn);
}

/// The handler wants to be asked again about an exchange.
pub(crate) fn wake<H: Handler>(port: &mut impl Port, turn: &mut Turn<'_, H>) {
    want_room(port);
    if let Some(state) = port.under_way_mut().and_then(UnderWay::reading) {
        state.is_woken = true;
    }
    resume(port, turn, H::woken);
}

/// The peer sends no more: the handler of a request that waits or is read is told, that of an answer that
/// goes on is asked once more.
pub(crate) fn hear_end<H: Handler>(port: &mut impl Port, turn: &mut Turn<'_, H>) {
    if is_waiting(port) || is_reading(port) {
        tell_left(port, Departure::SendsNoMore, turn);
    }
    want_room(port);
}

/// The handler of a request that waits or is read is told how its peer leaves.
fn tell_left<H: Handler>(port: &impl Port, departure: Departure, turn: &mut Turn<'_, H>) {
    turn.handler.left(owner(port), turn.context.address, departure, turn.context.outbox);
}

/// The handler of an answer that goes on is asked once more.
fn want_room(port: &mut impl Port) {
    if let Some(state) = open(port) {
        set_open(port, OpenState { wants_room: true, ..state });
    }
}

/// Something has happened on the upstream of an exchange: the handler is told, together with the answer.
pub(crate) fn hear<H: Handler>(
    port: &mut impl Port,
    upstream: Upstream,
    event: UpstreamEvent<'_>,
    turn: &mut Turn<'_, H>,
) {
    let outbox = turn.context.outbox;
    if let Some(state) = open(port) {
        lend(port, state, turn, |handler, open| handler.upstream(upstream, event, Some(open), outbox));
    }
}

/// Lends the handler an answer that goes on. Gives what the handler has said of it.
fn lend<H: Handler>(
    port: &mut impl Port,
    mut state: OpenState,
    turn: &mut Turn<'_, H>,
    act: impl FnOnce(&mut H, &mut Open<'_>),
) -> OpenState {
    let was_held = state.held;
    let (owner, sending, peer_ended) = (owner(port), port.is_sending(), port.peer_ended());
    let Some(outlet) = port.outlet() else { return state };
    let context = &turn.context;
    act(turn.handler, &mut Open { state: &mut state, outlet, context, owner, sending, peer_ended });
    set_open(port, state);
    if was_held && !state.held {
        port.begin_reading();
    }
    state
}

/// Carries out what the handler has said of an answer that goes on, or tells it of room. Asks the handler of
/// a request that is read, if it was woken.
pub(crate) fn move_on<H: Handler>(port: &mut impl Port, turn: &mut Turn<'_, H>) -> Moved {
    let Some(state) = open(port) else { return read_on(port, turn) };
    match state.end {
        Some(_) if state.concluded && !has_unsent(port) => {
            finish(port, Ended::Complete, turn);
            end(port, turn);
            Moved::Over
        }
        Some(_) if state.concluded => Moved::Sending,
        Some(Ended::Complete) if matches!(state.body, BodyOut::Length(1..)) => {
            give_up(port, Ended::Aborted, turn)
        }
        Some(Ended::Complete) if port.conclude(state) => Moved::Again,
        Some(Ended::Complete) => Moved::Sending,
        Some(why) => give_up(port, why, turn),
        None => fill(port, state, turn),
    }
}

/// Tells the handler that there is room for more of an answer that goes on, if it wants to know, and hands
/// over what was pushed.
fn fill<H: Handler>(port: &mut impl Port, mut state: OpenState, turn: &mut Turn<'_, H>) -> Moved {
    let has_room = state.wants_room && port.has_room();
    if has_room {
        (state.wants_room, state.releases_request) = (false, false);
        if !state.held {
            port.begin_reading();
        }
        state = lend(port, state, turn, H::ready);
        if state.releases_request {
            port.rest();
        }
    }
    let handed_over = port.hand_over();
    if handed_over || state.end.is_some() { Moved::Again } else { Moved::Nothing }
}

/// An answer will never be complete: the peer is told so.
fn give_up<H: Handler>(port: &mut impl Port, why: Ended, turn: &mut Turn<'_, H>) -> Moved {
    break_off(port, why, turn);
    port.reset();
    Moved::Over
}

/// Gives some of the request's body to whoever wants it.
pub(crate) fn give<H: Handler>(port: &mut impl Port, body: Body<'_>, turn: &mut Turn<'_, H>) {
    if is_reading(port) {
        let left_bytes = read(port, Some(body), turn);
        if let Body::Piece(piece) = body {
            leave(port, Rest::of(piece, left_bytes));
        }
        return;
    }
    if let Some(state) = open(port) {
        lend(port, state, turn, |handler, open| handler.body(body, open));
    } else if let Some((limit_bytes, collected)) = port.under_way_mut().and_then(UnderWay::collecting) {
        match body {
            Body::Piece(piece) if collected.len() + piece.len() > limit_bytes => {
                return refuse_body(port, turn);
            }
            Body::Piece(piece) => collected.extend_from_slice(piece),
            Body::End => return end_collecting(port, turn),
        }
    }
    if let Body::Piece(piece) = body {
        port.taken(piece.len());
    }
}

/// Asks the handler of a request that is read, with what it has left of the body, if it was woken.
fn read_on<H: Handler>(port: &mut impl Port, turn: &mut Turn<'_, H>) -> Moved {
    let reading = port.under_way_mut().and_then(UnderWay::reading);
    let Some(state) = reading.filter(|state| state.is_woken) else { return Moved::Nothing };
    let ReadingState { rest, is_held, .. } = std::mem::take(state);
    if is_held {
        port.begin_reading();
    }
    let body = (!rest.is_empty()).then_some(Body::Piece(rest.bytes()));
    let left_bytes = read(port, body, turn);
    leave(port, rest.keep_last(left_bytes));
    if port.under_way().is_none_or(UnderWay::is_nothing) { Moved::Over } else { Moved::Again }
}

/// Asks the handler of a request that is read: with some of its body, or because it was woken. Gives how many
/// bytes of the piece the handler has left.
#[cold]
fn read<H: Handler>(port: &mut impl Port, body: Option<Body<'_>>, turn: &mut Turn<'_, H>) -> usize {
    if !port.awaits() {
        return 0;
    }
    let Some(mut exchange) = take_exchange(port) else { return 0 };
    if turn.draining {
        port.note_draining();
    }
    let piece_bytes = if let Some(Body::Piece(piece)) = body { piece.len() } else { 0 };
    let (request, owner) = (exchange.request.get(), exchange.owner);
    let answered = ask(port, &request, (0, owner), turn, |handler, request, answer| {
        handler.reading(body, request, Reading::new(answer, piece_bytes))
    });
    let Course::Read { left_bytes, is_held } = answered.outcome() else {
        port.taken(piece_bytes);
        turn.context.stats.requests.waits.add(u64::from(answered.is_later()));
        // A wait for mail begins now: the peer may have taken long over the body.
        exchange.since_ms = turn.now_ms;
        follow(port, exchange, &answered, false, turn);
        return 0;
    };
    let left_bytes = left_bytes.min(piece_bytes);
    exchange.life = Life::Reading(ReadingState { is_held, ..ReadingState::default() });
    if let Some(under_way) = port.under_way_mut() {
        *under_way = UnderWay::Exchange(exchange);
    }
    port.taken(piece_bytes - left_bytes);
    left_bytes
}

/// Keeps what the handler of a request that is read has left of a piece.
fn leave(port: &mut impl Port, rest: Rest) {
    if let Some(state) = port.under_way_mut().and_then(UnderWay::reading) {
        state.rest = rest;
    }
}

/// A body that was to be collected is there.
fn end_collecting<H: Handler>(port: &mut impl Port, turn: &mut Turn<'_, H>) {
    if !port.awaits() {
        return;
    }
    let Some(mut exchange) = take_exchange(port) else { return };
    let Life::Collecting { body, .. } = &mut exchange.life else { return };
    let body = std::mem::take(body);
    let request = exchange.request.get();
    let collected =
        |handler: &mut H, request: &Request<'_>, answer: Answer<'_>| handler.collected(body, request, answer);
    let answered = ask(port, &request, (0, exchange.owner), turn, collected);
    turn.context.stats.requests.waits.add(u64::from(answered.is_later()));
    follow(port, exchange, &answered, false, turn);
}

/// The body is longer than is collected.
fn refuse_body<H: Handler>(port: &mut impl Port, turn: &mut Turn<'_, H>) {
    if !port.awaits() {
        return;
    }
    let Some(exchange) = take_exchange(port) else { return };
    let request = exchange.request.get();
    let answered = ask(port, &request, (0, exchange.owner), turn, |_, _, answer| answer.too_large());
    turn.context.stats.requests.answered.add(1);
    let body_bytes = answered.body_bytes() as usize;
    turn.tell(Some(exchange.owner), Status::CONTENT_TOO_LARGE, body_bytes, Some(&request));
    end(port, turn);
}

/// Answers a request by telling it to come back, if it has to be; one that may stay is among the last of its
/// connection if others need the slot. One that has `waited` for mail has an owner.
#[cold]
pub(crate) fn send_back<H: Handler>(
    port: &mut impl Port,
    waited: Option<Owner>,
    request: &Request<'_>,
    turn: &mut Turn<'_, H>,
) -> bool {
    let turned_away = port.turned_away();
    if turn.strain.full || turned_away {
        let (mut pen, outgoing) = port.pen(turn.rendered);
        pen.close_after_response(outgoing);
    }
    if !turn.has_to_come_back(turned_away, waited.is_some(), request) {
        return false;
    }
    let (status, (fields, body)) = (Status::SERVICE_UNAVAILABLE, COME_BACK);
    ask(port, request, NEW, turn, |_, _, answer| answer.uncounted(status, fields, body));
    throw_body_away(port, request, turn);
    let body_bytes = if request.method == Method::Head { 0 } else { body.len() };
    turn.tell(waited, status, body_bytes, Some(request));
    true
}

/// Answers a request that no handler is asked about: its client asks `too_soon`, or it is for another name
/// than its connection.
#[cold]
pub(crate) fn turn_down<H: Handler>(
    port: &mut impl Port,
    too_soon: bool,
    request: &Request<'_>,
    turn: &mut Turn<'_, H>,
) {
    let (status, body_bytes) = match too_soon {
        true => (Status::TOO_MANY_REQUESTS, TOO_SOON_BODY.len()),
        false => (Status::MISDIRECTED_REQUEST, MISDIRECTED.1.len()),
    };
    ask(port, request, NEW, turn, |_, _, answer| match too_soon {
        true => answer.too_soon(),
        false => _ = answer.misdirected(),
    });
    throw_body_away(port, request, turn);
    let body_bytes = if request.method == Method::Head { 0 } else { body_bytes };
    turn.tell(None, status, body_bytes, Some(request));
}

/// Throws away the body of a request that is answered: no handler wants it.
pub(crate) fn throw_body_away<H>(port: &mut impl Port, request: &Request<'_>, turn: &mut Turn<'_, H>) {
    port.pen(turn.rendered).0.throw_body_away(request);
}

/// An exchange will not come to its end: its handler is told, and all is given back.
pub(crate) fn break_off<H: Handler>(port: &mut impl Port, why: Ended, turn: &mut Turn<'_, H>) {
    if is_waiting(port) {
        turn.context.stats.requests.waits_lost.add(1);
    }
    if is_waiting(port) || is_reading(port) {
        tell_left(port, Departure::Gone, turn);
    }
    finish(port, why, turn);
    release(port, turn);
    port.discard(&mut turn.context.address);
}

/// An exchange is over, but perhaps for bytes that have to be sent.
fn end<H>(port: &mut impl Port, turn: &mut Turn<'_, H>) {
    release(port, turn);
    port.end(&mut turn.context.address);
}

/// Gives back what an exchange has of its worker.
fn release<H>(port: &impl Port, turn: &Turn<'_, H>) {
    let address = turn.context.address;
    if open(port).is_some_and(|state| state.is_tuned) {
        turn.context.outbox.tune(address.slot, false);
    }
    turn.context.outbox.upstreams().release(address);
}

/// Tells the handler, once, how an answer has ended, if it went on.
fn finish<H: Handler>(port: &impl Port, why: Ended, turn: &mut Turn<'_, H>) {
    let Some(state) = open(port) else { return };
    let Some((kept, status, owner)) = port.under_way().and_then(UnderWay::asked) else { return };
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

fn is_waiting(port: &impl Port) -> bool {
    port.under_way().is_some_and(UnderWay::is_waiting)
}

fn is_reading(port: &impl Port) -> bool {
    port.under_way().is_some_and(UnderWay::is_reading)
}

/// The part of the handler to which the exchange belongs.
fn owner(port: &impl Port) -> Owner {
    port.under_way().and_then(UnderWay::owner).unwrap_or_default()
}

fn take_exchange(port: &mut impl Port) -> Option<Box<Exchange>> {
    port.under_way_mut()?.take_exchange()
}

fn open(port: &impl Port) -> Option<OpenState> {
    port.under_way()?.open()
}

fn set_open(port: &mut impl Port, state: OpenState) {
    if let Some(under_way) = port.under_way_mut() {
        under_way.set_open(state);
    }
}

/// Whether something of the answer was not taken by the kernel yet.
fn has_unsent(port: &mut impl Port) -> bool {
    port.is_sending() || port.outlet().is_some_and(|outlet| !outlet.is_empty())
}

#[cfg(test)]
mod tests;
