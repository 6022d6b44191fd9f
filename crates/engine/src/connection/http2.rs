//! A connection that speaks HTTP/2.
//!
//! It owns the session and the streams that wait. A round goes: events of the session, until the input is
//! used up or enough stands to be sent; exchanges that can go on; answers that waited for a window. It must
//! never be on the way of HTTP/1.1.

mod port;
mod round;
mod sending;

use staunch_protocol::Timeouts;
use staunch_protocol::http1;
use staunch_protocol::http2::{ErrorCode, WorkerMemory};

use self::port::StreamPort;
use self::round::Round;
use super::{Connection, Phase};
use crate::exchange::exchanges::Exchanges;
use crate::exchange::http2::Http2;
use crate::exchange::http2_shared::Http2Shared;
use crate::exchange::turn::Turn;
use crate::handler::Handler;

impl Connection {
    /// Speaks HTTP/2 from the connection's first byte on: its peer has chosen that, or begins so.
    pub(crate) fn open_http2<H>(&mut self, turn: &mut Turn<'_, H>) {
        let mut outgoing = self.outgoing(turn.spare);
        self.exchanges = Exchanges::Streams(Box::new(Http2::new(turn.now_ms, outgoing.bytes())));
        self.session = http1::Session::new(turn.now_ms);
        self.phase = Phase::Open;
        turn.context.stats.http2.connections.add(1);
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
        turn.context.stats.connections.rejected.add(1);
        turn.tell_refused(Some(answered), None);
        self.begin_ending(true, turn);
    }

    /// Takes `bytes` in one round of events.
    #[inline(never)]
    pub(crate) fn converse_http2<H: Handler>(&mut self, bytes: &[u8], turn: &mut Turn<'_, H>) {
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
            && let Some(http2) = self.exchanges.http2_mut()
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
            let StreamPort { pen, outgoing, .. } = &mut round.port;
            let (session, out) = (&mut pen.http2.session, outgoing.bytes());
            session.handle_timeout(timeouts, round.turn.now_ms, out);
        });
        self.converse_http2(&[], turn);
    }

    /// Whether it is idle, and its share in the fields that the worker's connections hold, in bytes; nothing
    /// if it speaks another protocol or is about to end.
    pub(crate) fn fields_share(&self, memory: &WorkerMemory) -> Option<(bool, usize)> {
        let http2 = self.exchanges.http2().filter(|_| self.phase == Phase::Open)?;
        Some((self.idle_since_ms().is_some(), http2.share_bytes(memory)))
    }

    /// Ends the connection before its time. The peer is told, and may send its last requests elsewhere.
    #[cold]
    pub(crate) fn dismiss_http2<H: Handler>(&mut self, why: &'static str, turn: &mut Turn<'_, H>) {
        self.with_round(turn, |round, memory| {
            let StreamPort { pen, outgoing, .. } = &mut round.port;
            let (session, out) = (&mut pen.http2.session, outgoing.bytes());
            session.turn_away(ErrorCode::NO_ERROR, why, out);
            session.release(memory);
        });
        self.converse_http2(&[], turn);
    }

    /// Lends the life of the exchange that the turn is for.
    pub(super) fn with_stream<H: Handler>(
        &mut self,
        turn: &mut Turn<'_, H>,
        act: impl FnOnce(&mut StreamPort<'_>, &mut Turn<'_, H>),
    ) {
        let Some(number) = turn.context.address.stream.number() else { return };
        self.with_round(turn, |round, _| {
            let (port, turn) = round.at(number);
            act(port, turn);
        });
        self.converse_http2(&[], turn);
    }

    /// Lends everything that a round needs.
    pub(super) fn with_round<H, R>(
        &mut self,
        turn: &mut Turn<'_, H>,
        act: impl FnOnce(&mut Round<'_, '_, H>, &mut WorkerMemory) -> R,
    ) -> Option<R> {
        let shared = turn.http2.take()?;
        let result = self.exchanges.take_http2().map(|mut http2| {
            let mut outgoing = self.outgoing(turn.spare);
            let Http2Shared { memory, pen, .. } = &mut *shared;
            pen.opening.set_date(turn.context.date);
            pen.now_ms = turn.now_ms;
            std::mem::swap(&mut http2, &mut pen.http2);
            let port = StreamPort {
                pen: &mut *pen,
                outgoing: &mut outgoing,
                is_sending: self.sending,
                peer_ended: self.marks.has_ended(),
                turned_away: self.marks.is_turned_away(),
                written_bytes_max: turn.written_bytes_max,
            };
            let result = act(&mut Round { port, turn: &mut *turn }, memory);
            std::mem::swap(&mut http2, &mut pen.http2);
            self.put_outgoing(outgoing, turn.spare);
            self.exchanges = Exchanges::Streams(http2);
            result
        });
        turn.http2 = Some(shared);
        result
    }
}
