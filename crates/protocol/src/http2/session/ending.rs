//! The end of a connection: by a fault, by time, or because the server leaves.
//!
//! It owns GOAWAY (RFC 9113, section 6.8). It must never end a connection while a request of it is answered,
//! unless the peer is at fault.

use super::frames::push_leaving_ping;
use super::{Event, LINGER, PEER_ENDED, Phase, Session};
use crate::http2::error::{ConnectionFault, ErrorCode};
use crate::http2::frame::{self, NUMBER_MAX};

impl Session {
    /// The peer broke a rule: says so, and reads no more.
    #[cold]
    pub(super) fn fail(&mut self, fault: ConnectionFault, out: &mut Vec<u8>) -> Event<'static> {
        frame::push_goaway(self.last_stream, fault.code, fault.reason, out);
        self.close();
        self.closed(Some(fault))
    }

    /// Ends the connection as such, whatever the peer has sent or will.
    #[cold]
    pub fn turn_away(&mut self, code: ErrorCode, reason: &'static str, out: &mut Vec<u8>) {
        frame::push_goaway(self.last_stream, code, reason, out);
        self.close();
    }

    /// A deadline of the connection has passed.
    pub(super) fn time_out(&mut self, fault: Option<ConnectionFault>, out: &mut Vec<u8>) {
        let (code, reason) = fault.map_or((ErrorCode::NO_ERROR, "idle"), |fault| (fault.code, fault.reason));
        self.turn_away(code, reason, out);
    }

    /// The server wants to close the connection: the peer is asked to send no more requests. Those that are
    /// on their way are answered still; `Close` comes when all are over.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        match self.phase {
            Phase::Leaving | Phase::Left | Phase::Closed => {}
            Phase::Preface | Phase::Settings => self.turn_away(ErrorCode::NO_ERROR, "leaving", out),
            Phase::Open => {
                frame::push_goaway(NUMBER_MAX, ErrorCode::NO_ERROR, "leaving", out);
                push_leaving_ping(out);
                self.phase = Phase::Leaving;
            }
        }
    }

    /// As [`Self::leave`], but what is on its way is not answered: the peer is told the last stream that is,
    /// and may send the others anew on another connection.
    pub fn leave_now(&mut self, out: &mut Vec<u8>) {
        match self.phase {
            Phase::Open | Phase::Leaving => self.tell_last_stream(out),
            Phase::Preface | Phase::Settings | Phase::Left | Phase::Closed => self.leave(out),
        }
    }

    /// The peer knows that we leave: what it sends from now on is not looked at.
    pub(super) fn tell_last_stream(&mut self, out: &mut Vec<u8>) {
        frame::push_goaway(self.last_stream, ErrorCode::NO_ERROR, "", out);
        self.phase = Phase::Left;
    }

    /// Every request is over and none will come.
    pub(super) fn leave_for_good(&mut self, out: &mut Vec<u8>) -> Event<'static> {
        frame::push_goaway(self.last_stream, ErrorCode::NO_ERROR, "", out);
        self.close();
        self.closed(None)
    }

    /// The peer half-closed its side. Requests already received are still answered; after them comes `Close`.
    pub fn handle_end(&mut self) {
        self.flags |= PEER_ENDED;
        self.flags &= !LINGER;
    }

    fn close(&mut self) {
        self.phase = Phase::Closed;
        self.busy = None;
        self.current = 0;
    }

    pub(super) fn closed(&self, fault: Option<ConnectionFault>) -> Event<'static> {
        Event::Close { linger: self.flags & LINGER != 0, fault }
    }
}
