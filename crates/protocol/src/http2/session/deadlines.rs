//! Deadlines: how long each silence of the peer may last.
//!
//! It owns which of them run. It must never end a connection for one stream, nor a stream that makes
//! progress.

use super::{Event, Phase, Session};
use crate::http2::error::{ConnectionFault, ErrorCode};
use crate::http2::frame::{self, kind};
use crate::http2::stream::{Mark, Stream};
use crate::timer::{Deadline, Timeouts};

impl Session {
    /// When and which deadline ends next, in milliseconds on the clock of `now_ms`; `None` while all that
    /// waits waits for the caller, or after `Close`.
    pub fn poll_timeout(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        let after = |since_ms: u64, deadline| (since_ms + u64::from(timeouts.length_ms(deadline)), deadline);
        let of_connection = self.connection_deadline().map(|(since_ms, deadline)| after(since_ms, deadline));
        let streams = self.busy.iter().flat_map(|busy| &busy.streams);
        let of_streams = streams.flat_map(|stream| self.stream_deadlines(stream));
        let of_streams = of_streams.map(|(since_ms, deadline)| after(since_ms, deadline));
        of_streams.chain(of_connection).min_by_key(|(at_ms, _)| *at_ms)
    }

    /// Since when the connection as a whole waits for the peer, and for what.
    fn connection_deadline(&self) -> Option<(u64, Deadline)> {
        let partial = self.busy.as_ref().and_then(|busy| Some((busy.partial_ms?, busy.partial_is_body)));
        match (self.phase, partial) {
            (Phase::Closed, _) => None,
            (Phase::Preface | Phase::Settings, _) => Some((self.since_ms, Deadline::Header)),
            (_, Some((since_ms, true))) => Some((since_ms, Deadline::Body)),
            (_, Some((since_ms, false))) => Some((since_ms, Deadline::Header)),
            _ if self.has_live_streams() => None,
            _ => Some((self.since_ms, Deadline::KeepAlive)),
        }
    }

    /// The same of a stream: its answer waits for a window, its body for the peer.
    fn stream_deadlines(&self, stream: &Stream) -> impl Iterator<Item = (u64, Deadline)> + use<> {
        let shut = self.send_window == 0 || stream.send_window <= 0;
        let blocked = stream.is(Mark::Wants) && shut;
        let send = blocked.then_some((stream.blocked_ms, Deadline::Send));
        let body = stream.awaits_body().then_some((stream.body_ms, Deadline::Body));
        send.into_iter().chain(body)
    }

    /// A deadline has passed. Streams that were waited for too long are reset, which the next `poll_event`
    /// tells; a connection that was ends.
    pub fn handle_timeout(&mut self, timeouts: &Timeouts, now_ms: u64, out: &mut Vec<u8>) {
        let passed = |(since_ms, deadline): (u64, Deadline)| {
            since_ms + u64::from(timeouts.length_ms(deadline)) <= now_ms
        };
        let streams = self.busy.iter().flat_map(|busy| &busy.streams);
        let late = streams.filter(|stream| self.stream_deadlines(stream).any(passed));
        let late: Vec<u32> = late.map(|stream| stream.number).collect();
        for number in late {
            frame::push_reset(number, ErrorCode::CANCEL, out);
            self.cancel(number, now_ms);
        }
        if let Some(waiting) = self.connection_deadline().filter(|waiting| passed(*waiting)) {
            let fault = match waiting.1 {
                Deadline::KeepAlive => None,
                _ => Some(ConnectionFault::protocol("what began took too long")),
            };
            self.time_out(fault, out);
        }
    }

    /// The request is over, which is told later.
    pub(super) fn cancel(&mut self, number: u32, now_ms: u64) {
        self.since_ms = now_ms;
        let Some(busy) = &mut self.busy else { return };
        busy.has_news = true;
        let Some(stream) = self.find_mut(number) else { return };
        stream.set(Mark::Over, true);
        stream.set(Mark::ResetDue, true);
        stream.set(Mark::Wants, false);
        let untaken = std::mem::take(&mut stream.untaken);
        self.owed += untaken;
    }

    /// The input was used but for the beginning of a frame.
    pub(super) fn note_partial(&mut self, input: &[u8], now_ms: u64) {
        if input.is_empty() || self.phase == Phase::Preface {
            return;
        }
        let busy = self.busy.get_or_insert_default();
        busy.partial_is_body = input.get(3) == Some(&kind::DATA) && busy.block_head.is_none();
        if busy.partial_is_body {
            busy.partial_ms = Some(now_ms);
        } else {
            busy.partial_ms.get_or_insert(now_ms);
        }
    }

    /// The peer sends no more: what it has not sent of its bodies never comes.
    pub(super) fn cancel_open_requests(&mut self, now_ms: u64) -> Option<Event<'static>> {
        let streams = self.busy.iter().flat_map(|busy| &busy.streams);
        let open = streams.filter(|stream| stream.is_live() && stream.is(Mark::RequestOpen));
        let open: Vec<u32> = open.map(|stream| stream.number).collect();
        for number in open {
            self.cancel(number, now_ms);
        }
        self.next_news()
    }
}
