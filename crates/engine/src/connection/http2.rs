//! A connection that speaks HTTP/2.
//!
//! It owns the session and the streams that wait. A round goes: events of the session, until the input is
//! used up or enough stands to be sent; exchanges that can go on; answers that waited for a window. It must
//! never be on the way of HTTP/1.1.

mod bodies;
mod ending;
mod exchanging;
mod round;
mod sending;
pub(crate) mod shared;

use staunch_protocol::http1;
use staunch_protocol::http2::{ErrorCode, WorkerMemory};
use staunch_protocol::{Request, Timeouts};

use self::round::Round;
use self::shared::Http2Shared;
use super::turn::Turn;
use super::{Connection, Phase};
use crate::exchange::answer::Answer;
use crate::exchange::answered::Answered;
use crate::exchange::http2::Http2;
use crate::exchange::under_way::UnderWay;
use crate::handler::Handler;
use crate::upstream::{Upstream, UpstreamEvent};

impl Connection {
    /// Speaks HTTP/2 from the connection's first byte on: its peer has chosen that, or begins so.
    pub(crate) fn open_http2<H>(&mut self, turn: &mut Turn<'_, H>) {
        let mut outgoing = self.outgoing(turn.spare);
        self.under_way = UnderWay::Http2(Box::new(Http2::new(turn.now_ms, outgoing.bytes())));
        self.session = http1::Session::new(turn.now_ms);
        self.phase = Phase::Http2;
        turn.context.stats.http2_connections.add(1);
        self.put_outgoing(outgoing, turn.spare);
    }

    /// The first bytes are those of HTTP/2 (RFC 9113, section 3.3).
    #[cold]
    pub(super) fn meet_preface<H: Handler>(&mut self, input: &[u8], turn: &mut Turn<'_, H>) {
        if turn.http2.as_ref().is_some_and(|shared| shared.is_on) {
            self.open_http2(turn);
            return self.converse_http2(input, turn);
        }
        let mut outgoing = self.outgoing(turn.spare);
        let answered = self.session.refuse_preface(turn.context.date, outgoing.bytes());
        self.put_outgoing(outgoing, turn.spare);
        turn.context.stats.rejected.add(1);
        turn.tell_refused(Some(answered), None);
        self.begin_ending(true, turn);
    }

    /// Takes `bytes` in one round of events.
    #[inline(never)]
    pub(super) fn converse_http2<H: Handler>(&mut self, bytes: &[u8], turn: &mut Turn<'_, H>) {
        let went = self.with_round(turn, |round, memory| round.go(bytes, memory));
        let Some((behind, closed)) = went else { return };
        self.behind = behind;
        if let Some(linger) = closed {
            self.begin_ending(linger, turn);
        }
    }

    /// All that was written before is sent.
    pub(super) fn catch_up_http2<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        if !self.sending
            && self.outgoing.is_none()
            && let Some(http2) = self.under_way.http2_mut()
        {
            http2.session.note_sent(turn.now_ms);
        }
        self.converse_http2(&[], turn);
    }

    /// The peer will send no more.
    pub(super) fn end_http2<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        self.with_round(turn, |round, _| round.hear_end());
        self.converse_http2(&[], turn);
    }

    /// A deadline of the session has passed.
    pub(super) fn time_out_http2<H: Handler>(&mut self, timeouts: &Timeouts, turn: &mut Turn<'_, H>) {
        self.with_round(turn, |round, _| {
            let (session, out) = (&mut round.pen.http2.session, round.outgoing.bytes());
            session.handle_timeout(timeouts, round.turn.now_ms, out);
        });
        self.converse_http2(&[], turn);
    }

    /// The worker is coming to its end: the peer is asked to send no more requests.
    pub(crate) fn leave_http2<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        if self.phase == Phase::Http2 {
            self.converse_http2(&[], turn);
        }
    }

    /// Whether it is idle, and its share in the fields that the worker's connections hold, in bytes; nothing
    /// if it speaks another protocol or is about to end.
    pub(crate) fn fields_share(&self, memory: &WorkerMemory) -> Option<(bool, usize)> {
        let http2 = self.under_way.http2().filter(|_| self.phase == Phase::Http2)?;
        Some((self.idle_since_ms().is_some(), http2.share_bytes(memory)))
    }

    /// Ends the connection before its time. The peer is told, and may send its last requests elsewhere.
    #[cold]
    pub(crate) fn dismiss_http2<H: Handler>(&mut self, why: &'static str, turn: &mut Turn<'_, H>) {
        self.with_round(turn, |round, memory| {
            let (session, out) = (&mut round.pen.http2.session, round.outgoing.bytes());
            session.turn_away(ErrorCode::NO_ERROR, why, out);
            session.release(memory);
        });
        self.converse_http2(&[], turn);
    }

    /// The handler is asked by `ask` about the request that waits.
    pub(super) fn resume_http2<H: Handler>(
        &mut self,
        ask: impl FnOnce(&mut H, &Request<'_>, Answer<'_>) -> Answered,
        turn: &mut Turn<'_, H>,
    ) {
        let number = turn.context.address.stream;
        self.with_round(turn, |round, _| round.resume(number, ask));
        self.converse_http2(&[], turn);
    }

    /// The handler wants to be asked again about an exchange.
    pub(super) fn wake_http2<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        let number = turn.context.address.stream;
        self.with_round(turn, |round, _| round.wake(number));
        self.converse_http2(&[], turn);
    }

    /// Something has happened on the upstream of an exchange.
    pub(super) fn hear_http2<H: Handler>(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        turn: &mut Turn<'_, H>,
    ) {
        let number = turn.context.address.stream;
        self.with_round(turn, |round, _| round.hear(number, upstream, event));
        self.converse_http2(&[], turn);
    }

    /// No exchange will come to its end.
    pub(super) fn break_http2<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        self.with_round(turn, |round, _| round.break_all());
    }

    /// Lends everything that a round needs.
    fn with_round<H, R>(
        &mut self,
        turn: &mut Turn<'_, H>,
        act: impl FnOnce(&mut Round<'_, '_, H>, &mut WorkerMemory) -> R,
    ) -> Option<R> {
        let shared = turn.http2.take()?;
        let result = self.under_way.take_http2().map(|mut http2| {
            let mut outgoing = self.outgoing(turn.spare);
            let Http2Shared { memory, pen, .. } = &mut *shared;
            pen.opening.set_date(turn.context.date);
            std::mem::swap(&mut http2, &mut pen.http2);
            let mut round = Round {
                pen: &mut *pen,
                outgoing: &mut outgoing,
                turn: &mut *turn,
                is_sending: self.sending,
                peer_ended: self.has_ended(),
                turned_away: self.is_turned_away(),
            };
            let result = act(&mut round, memory);
            std::mem::swap(&mut http2, &mut pen.http2);
            self.put_outgoing(outgoing, turn.spare);
            self.under_way = UnderWay::Http2(http2);
            result
        });
        turn.http2 = Some(shared);
        result
    }
}
