//! The streams that are remembered, and how each of them ends.
//!
//! It owns the list. It must never forget a request whose end was not told.

use super::{BlockHead, Busy, CURRENT, CURRENT_BEGUN, CURRENT_HEAD, Event, Session};
use crate::http2::error::{ConnectionFault, ErrorCode};
use crate::http2::frame;
use crate::http2::ledger::Glitch;
use crate::http2::priority::Priority;
use crate::http2::stream::{Mark, Stream};
use crate::limits::{ENDED_STREAMS_MAX, STREAMS_MAX};

impl Busy {
    /// Streams stand in the order of their numbers.
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.streams.binary_search_by_key(&number, |stream| stream.number)
    }

    /// Of those that we have ended before the peer, as many are remembered as it may hold to be open.
    fn note_ended(&mut self, number: u32) {
        if self.ended.len() >= ENDED_STREAMS_MAX {
            self.ended.remove(0);
        }
        self.ended.push(number);
    }

    /// Resets each stream that is owed one.
    #[cold]
    fn push_resets(&mut self, out: &mut Vec<u8>) {
        self.has_resets = false;
        let owed: Vec<Stream> = self.streams.extract_if(.., |stream| stream.is(Mark::ResetOwed)).collect();
        for stream in owed {
            frame::push_reset(stream.number, ErrorCode::NO_ERROR, out);
            self.note_ended(stream.number);
        }
    }

    /// The oldest stream's news, which are forgotten with this.
    #[cold]
    fn take_news(&mut self) -> Option<Event<'static>> {
        let Some(place) = self.streams.iter().position(Stream::has_news) else {
            self.has_news = false;
            return None;
        };
        let stream = &mut self.streams[place];
        let number = stream.number;
        if stream.is(Mark::ResetDue) {
            let is_open = stream.is(Mark::RequestOpen);
            self.streams.remove(place);
            if is_open {
                self.note_ended(number);
            }
            return Some(Event::Reset { stream: number, code: ErrorCode::CANCEL });
        }
        stream.set(Mark::EndDue, false);
        Some(Event::BodyEnd { stream: number })
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
    #[inline]
    pub(super) fn next_news(&mut self) -> Option<Event<'static>> {
        self.busy.as_mut().filter(|busy| busy.has_news)?.take_news()
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

    /// The stream was reset here: what the peer may still send of it is thrown away.
    pub(super) fn end_early(&mut self, number: u32, now_ms: u64) {
        let removed = self.remove(number, now_ms);
        if removed.is_some_and(|removed| removed.is(Mark::RequestOpen)) {
            self.note_ended(number);
        }
    }

    fn note_ended(&mut self, number: u32) {
        self.busy.get_or_insert_default().note_ended(number);
    }

    /// Whether we have ended this stream before the peer. With `forgets` nothing more of it can come.
    pub(super) fn has_ended(&mut self, number: u32, forgets: bool) -> bool {
        let Some(busy) = &mut self.busy else { return false };
        let Some(place) = busy.ended.iter().position(|ended| *ended == number) else { return false };
        if forgets {
            busy.ended.remove(place);
        }
        true
    }

    /// The response is complete and the request is not. Of more streams than a peer may have open, the first
    /// is reset at once.
    #[cold]
    pub(super) fn begin_late(&mut self, number: u32, now_ms: u64) {
        let Some(stream) = self.find_mut(number) else { return };
        stream.begin_late(now_ms);
        let untaken = std::mem::take(&mut stream.untaken);
        self.owed += untaken;
        self.since_ms = now_ms;
        let late = |stream: &&Stream| stream.is(Mark::Late);
        let late = self.busy.iter().flat_map(|busy| busy.streams.iter().filter(late));
        let (count, first) =
            late.fold((0, None), |(count, first), stream| (count + 1, first.or(Some(stream.number))));
        if count > STREAMS_MAX
            && let Some(first) = first
        {
            self.owe_reset(first);
        }
    }

    /// No more is taken of a late body: the peer is told so before anything else is said.
    pub(super) fn owe_reset(&mut self, number: u32) {
        if let Some(stream) = self.find_mut(number) {
            stream.set(Mark::Late, false);
            stream.set(Mark::ResetOwed, true);
            self.busy.get_or_insert_default().has_resets = true;
        }
    }

    /// What came of a late body was wrong.
    pub(super) fn fault_of_late(
        &mut self,
        number: u32,
        code: ErrorCode,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionFault> {
        self.pay(Glitch::StreamError, now_ms)?;
        frame::push_reset(number, code, out);
        self.end_early(number, now_ms);
        Ok(())
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
    pub(super) fn reset_unknown(&mut self, head: BlockHead, code: ErrorCode, out: &mut Vec<u8>) {
        frame::push_reset(head.stream, code, out);
        if !head.ends_stream {
            self.note_ended(head.stream);
        }
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
        if self.find(number).is_some_and(|stream| stream.is(Mark::RequestOpen)) {
            return self.begin_late(number, now_ms);
        }
        self.remove(number, now_ms);
    }

    /// Responses were complete before their requests: the rest of these is not wanted (section 8.1).
    #[inline]
    pub(super) fn push_owed_resets(&mut self, out: &mut Vec<u8>) {
        if let Some(busy) = self.busy.as_mut().filter(|busy| busy.has_resets) {
            busy.push_resets(out);
        }
    }
}
