//! Deadlines: how long each silence of the peer may last.
//!
//! It owns which of them run. It must never end a connection for one stream, nor a stream that makes
//! progress.

use super::{Busy, Event, Phase, Session};
use crate::http2::error::{ConnectionFault, ErrorCode};
use crate::http2::frame::{self, FrameHead, kind};
use crate::http2::stream::{Mark, Stream};
use crate::limits::{LATE_BODY_MS, TAKEN_BYTES_MIN};
use crate::timer::{Deadline, Timeouts};

impl Session {
    /// When and which deadline ends next, in milliseconds on the clock of `now_ms`; `None` while all that
    /// waits waits for the caller, or after `Close`.
    pub fn poll_timeout(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        let of_connection = self.connection_deadline(timeouts);
        let streams = self.busy.iter().flat_map(|busy| &busy.streams);
        let of_streams = streams.flat_map(|stream| self.stream_deadlines(stream, timeouts));
        of_streams.chain(of_connection).min_by_key(|(at_ms, _)| *at_ms)
    }

    /// Since when nothing is asked for and nothing of a request has come, if that is so.
    pub fn idle_since_ms(&self) -> Option<u64> {
        let has_begun = |busy: &Busy| !busy.input.is_empty() || busy.block_head.is_some();
        let is_idle = !self.busy.as_deref().is_some_and(has_begun) && !self.has_live_streams();
        (is_idle && self.phase != Phase::Closed).then_some(self.since_ms)
    }

    /// All that was written is sent: the time of a connection that nothing is asked for begins now.
    pub fn note_sent(&mut self, now_ms: u64) {
        let is_open = matches!(self.phase, Phase::Open | Phase::Leaving | Phase::Left);
        if is_open && !self.has_live_streams() {
            self.since_ms = now_ms;
        }
    }

    /// The peer has acknowledged so many bytes of the connection: each wait for a window begins anew, or
    /// moves by a second for every `rate_min` bytes, if a minimum is asked for.
    pub fn note_acknowledged(&mut self, bytes: u32, rate_min: u64, now_ms: u64) {
        let earned_ms = (u64::from(bytes) * 1000).checked_div(rate_min).unwrap_or(u64::MAX);
        let streams = self.busy.iter_mut().flat_map(|busy| &mut busy.streams);
        streams
            .for_each(|stream| stream.blocked_ms = now_ms.min(stream.blocked_ms.saturating_add(earned_ms)));
    }

    /// Until when the connection as a whole waits for the peer, and for what.
    fn connection_deadline(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        let partial = self.busy.as_ref().and_then(|busy| Some((busy.partial_ms?, busy.partial_is_body)));
        let (since_ms, deadline) = match (self.phase, partial) {
            (Phase::Closed, _) => return None,
            (Phase::Preface | Phase::Settings, _) => (self.since_ms, Deadline::Header),
            (_, Some((since_ms, true))) => (since_ms, Deadline::Body),
            (_, Some((since_ms, false))) => (since_ms, Deadline::Header),
            _ if self.has_live_streams() => return None,
            _ => (self.since_ms, Deadline::KeepAlive),
        };
        Some((since_ms + u64::from(timeouts.length_ms(deadline)), deadline))
    }

    /// Until when a stream waits for the peer, and for what: its answer for a window, its body for bytes.
    fn stream_deadlines(
        &self,
        stream: &Stream,
        timeouts: &Timeouts,
    ) -> impl Iterator<Item = (u64, Deadline)> + use<> {
        let shut = self.send_window == 0 || stream.send_window <= 0;
        let blocked = stream.is(Mark::Wants) && shut;
        let send_due_ms = stream.blocked_ms + u64::from(timeouts.length_ms(Deadline::Send));
        let send = blocked.then_some((send_due_ms, Deadline::Send));
        let body = stream.awaits_body().then(|| (stream.body_due_ms(timeouts), Deadline::Body));
        let late = stream.is(Mark::Late).then_some((stream.body_ms + LATE_BODY_MS, Deadline::Linger));
        send.into_iter().chain(body).chain(late)
    }

    /// A deadline has passed. Streams that were waited for too long are reset, which the next `poll_event`
    /// tells; a connection that was ends.
    pub fn handle_timeout(&mut self, timeouts: &Timeouts, now_ms: u64, out: &mut Vec<u8>) {
        let passed = |(at_ms, _): (u64, Deadline)| at_ms <= now_ms;
        let streams = self.busy.iter().flat_map(|busy| &busy.streams);
        let late = streams.filter(|stream| self.stream_deadlines(stream, timeouts).any(passed));
        let late: Vec<u32> = late.map(|stream| stream.number).collect();
        for number in late {
            if self.find(number).is_some_and(|stream| stream.is(Mark::Late)) {
                self.owe_reset(number);
                continue;
            }
            frame::push_reset(number, ErrorCode::CANCEL, out);
            self.cancel(number, now_ms);
        }
        self.push_owed_resets(out);
        if let Some(waiting) = self.connection_deadline(timeouts).filter(|waiting| passed(*waiting)) {
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

    /// The input was used but for the beginning of a frame. DATA that somebody waits for may trickle, for
    /// their stream has a deadline of its own; other DATA have to go on by so much at a time.
    pub(super) fn note_partial(&mut self, input: &[u8], now_ms: u64) {
        if input.is_empty() || self.phase == Phase::Preface {
            return;
        }
        let head = FrameHead::at_start_of(input).filter(|head| head.kind == kind::DATA);
        let is_awaited = head.is_some_and(|head| self.find(head.stream).is_some_and(Stream::awaits_body));
        let busy = self.busy.get_or_insert_default();
        busy.partial_is_body = head.is_some() && busy.block_head.is_none();
        let came_bytes = input.len().saturating_sub(busy.partial_bytes);
        let goes_on = busy.partial_is_body && (is_awaited || came_bytes >= TAKEN_BYTES_MIN as usize);
        if busy.partial_ms.is_none() || goes_on {
            (busy.partial_ms, busy.partial_bytes) = (Some(now_ms), input.len());
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
