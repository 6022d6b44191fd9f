//! The streams that are remembered, and how each of them ends.
//!
//! It owns the list. It must never forget a request whose end was not told.

use super::{BlockHead, Busy, CURRENT, CURRENT_BEGUN, CURRENT_HEAD, Event, Session};
use crate::http2::error::{ConnectionFault, ErrorCode};
use crate::http2::frame;
use crate::http2::ledger::Glitch;
use crate::http2::priority::Priority;
use crate::http2::stream::{Mark, Stream};
use crate::limits::ENDED_STREAMS_MAX;

impl Busy {
    /// Streams stand in the order of their numbers.
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.streams.binary_search_by_key(&number, |stream| stream.number)
    }
}

impl Session {
    #[inline]
    pub(super) fn find(&self, number: u32) -> Option<&Stream> {
        let busy = self.busy.as_ref()?;
        busy.streams.get(busy.place(number).ok()?)
    }

    #[inline]
    pub(super) fn find_mut(&mut self, number: u32) -> Option<&mut Stream> {
        let busy = self.busy.as_mut()?;
        let place = busy.place(number).ok()?;
        busy.streams.get_mut(place)
    }

    /// A stream whose request waits for its answer.
    pub(super) fn find_live(&mut self, number: u32) -> Option<&mut Stream> {
        self.find_mut(number).filter(|stream| stream.is_live())
    }

    /// Whether the request of a stream waits for its answer, or for the rest of it.
    pub fn awaits_answer(&self, stream: u32) -> bool {
        self.is_current(stream) || self.find(stream).is_some_and(Stream::is_live)
    }

    /// Requests that wait.
    pub fn live_streams_count(&self) -> usize {
        let remembered = self.busy.iter().flat_map(|busy| &busy.streams);
        remembered.filter(|stream| stream.is_live()).count() + usize::from(self.current & CURRENT != 0)
    }

    pub(super) fn has_live_streams(&self) -> bool {
        self.current & CURRENT != 0
            || self.busy.as_ref().is_some_and(|busy| busy.streams.iter().any(Stream::is_live))
    }

    /// Whether this is the request given last, of which nothing is remembered yet.
    #[inline]
    pub(super) fn is_current(&self, number: u32) -> bool {
        self.current & CURRENT != 0 && number == self.last_stream
    }

    /// The request given last was not answered at once: now it waits.
    #[inline]
    pub(super) fn remember_current(&mut self, now_ms: u64) {
        if self.current & CURRENT != 0 {
            self.remember(now_ms);
        }
    }

    #[cold]
    fn remember(&mut self, now_ms: u64) {
        let current = std::mem::take(&mut self.current);
        let priority = Priority::unpacked(current);
        let mut stream = Stream::new(self.last_stream, self.stream_window, priority, now_ms);
        stream.set(Mark::OmitBody, current & CURRENT_HEAD != 0);
        stream.set(Mark::Begun, current & CURRENT_BEGUN != 0);
        self.busy.get_or_insert_default().streams.push(stream);
    }

    /// What the caller has not heard yet.
    pub(super) fn next_news(&mut self) -> Option<Event<'static>> {
        let busy = self.busy.as_mut().filter(|busy| busy.has_news)?;
        let Some(place) = busy.streams.iter().position(Stream::has_news) else {
            busy.has_news = false;
            return None;
        };
        let stream = &mut busy.streams[place];
        let number = stream.number;
        if stream.is(Mark::ResetDue) {
            stream.set(Mark::ResetDue, false);
            stream.set(Mark::EndDue, false);
            if !stream.is(Mark::RequestOpen) {
                busy.streams.remove(place);
            }
            return Some(Event::Reset { stream: number, code: ErrorCode::CANCEL });
        }
        stream.set(Mark::EndDue, false);
        Some(Event::BodyEnd { stream: number })
    }

    /// Forgets a stream, and gives what was known.
    pub(super) fn remove(&mut self, number: u32, now_ms: u64) -> Option<Stream> {
        let busy = self.busy.as_mut()?;
        let place = busy.place(number).ok()?;
        let removed = busy.streams.remove(place);
        self.owed += removed.untaken;
        self.since_ms = now_ms;
        Some(removed)
    }

    /// The request is over for us, and its stream reset: what the peer may still send of it is ignored.
    pub(super) fn end_early(&mut self, number: u32, now_ms: u64) {
        let Some(stream) = self.find_mut(number) else { return };
        if !stream.is(Mark::RequestOpen) {
            self.remove(number, now_ms);
            return;
        }
        stream.set(Mark::Over, true);
        [Mark::Wants, Mark::EndDue].into_iter().for_each(|mark| stream.set(mark, false));
        self.owed += std::mem::take(&mut stream.untaken);
        self.since_ms = now_ms;
        self.forget_oldest();
    }

    /// Of those that are over some are remembered.
    fn forget_oldest(&mut self) {
        let Some(busy) = &mut self.busy else { return };
        let over = |stream: &Stream| !(stream.is_live() || stream.has_news() || stream.is(Mark::ResetOwed));
        if busy.streams.iter().filter(|stream| over(stream)).count() > ENDED_STREAMS_MAX
            && let Some(place) = busy.streams.iter().position(over)
        {
            busy.streams.remove(place);
        }
    }

    /// What the peer sent on a stream was wrong: the request is over (section 5.4.2).
    pub(super) fn stream_error(
        &mut self,
        number: u32,
        code: ErrorCode,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Event<'static>, ConnectionFault> {
        self.pay(Glitch::StreamError, now_ms)?;
        frame::push_reset(number, code, out);
        self.end_early(number, now_ms);
        Ok(Event::Reset { stream: number, code })
    }

    /// Resets a stream of which nothing is remembered.
    pub(super) fn reset_unknown(&mut self, head: BlockHead, code: ErrorCode, now_ms: u64, out: &mut Vec<u8>) {
        frame::push_reset(head.stream, code, out);
        if head.ends_stream {
            return;
        }
        let mut stream = Stream::new(head.stream, self.stream_window, Priority::default(), now_ms);
        stream.set(Mark::RequestOpen, true);
        stream.set(Mark::Over, true);
        self.busy.get_or_insert_default().streams.push(stream);
        self.forget_oldest();
    }

    /// The response is complete.
    #[inline]
    pub(super) fn finish_response(&mut self, number: u32, now_ms: u64) {
        self.ledger.answered();
        if self.is_current(number) {
            self.current = 0;
            self.since_ms = now_ms;
            return;
        }
        if let Some(stream) = self.find_mut(number)
            && stream.is(Mark::RequestOpen)
        {
            // Not at once: the caller has yet to append the end of the body.
            stream.set(Mark::ResetOwed, true);
            self.resets_owed(true);
        }
        self.end_early(number, now_ms);
    }

    fn resets_owed(&mut self, value: bool) -> bool {
        self.busy.as_mut().is_some_and(|busy| std::mem::replace(&mut busy.has_resets, value))
    }

    /// Responses were complete before their requests: the rest of these is not wanted (section 8.1).
    #[inline]
    pub(super) fn push_owed_resets(&mut self, out: &mut Vec<u8>) {
        if !self.resets_owed(false) {
            return;
        }
        for stream in self.busy.iter_mut().flat_map(|busy| &mut busy.streams) {
            if stream.is(Mark::ResetOwed) {
                stream.set(Mark::ResetOwed, false);
                frame::push_reset(stream.number, ErrorCode::NO_ERROR, out);
            }
        }
    }
}
