//! Bodies of requests: what came of them, and how much more may come.
//!
//! It owns the windows of this side (RFC 9113, section 5.2). They grow by what was taken only, so all that a
//! peer can make us hold of its bodies is less than the window of the connection.

use super::{BlockHead, BlockUse, Event, Outcome, Session, TOO_MUCH_PADDING, Taken};
use crate::http2::error::{ConnectionFault, ErrorCode};
use crate::http2::frame::{self, FrameHead, flag, unpadded};
use crate::http2::head::HeadFault;
use crate::http2::ledger::{Glitch, TINY_BYTES};
use crate::http2::opening::push_continue;
use crate::http2::stream::{Mark, Stream};
use crate::limits::{BODY_WINDOW_BYTES, LATE_BODY_BYTES_MAX, MASKED_FRAME_BYTES_MIN, WINDOW_BYTES};

impl Session {
    /// DATA (section 6.1).
    pub(super) fn take_data<'i>(
        &mut self,
        head: FrameHead,
        payload: &'i [u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Outcome<'i> {
        if head.stream == 0 {
            return Err(ConnectionFault::protocol("DATA on no stream"));
        }
        self.check_not_idle(head.stream)?;
        let data = unpadded(head, payload).ok_or(TOO_MUCH_PADDING)?;
        let ends = head.has(flag::END_STREAM);
        let counted = head.length as u32;
        self.receive_left = self.receive_left.checked_sub(counted).ok_or(ConnectionFault::new(
            ErrorCode::FLOW_CONTROL_ERROR,
            "more data than the window of the connection allows",
        ))?;
        if !ends && data.len() < TINY_BYTES && !self.may_be_tiny(head.stream, data, counted) {
            self.pay(if data.is_empty() { Glitch::EmptyData } else { Glitch::TinyData }, now_ms)?;
        }
        let Some(stream) = self.find_mut(head.stream).filter(|stream| stream.is_live()) else {
            return self.take_late_data(head, data.len() as u32, now_ms, out);
        };
        if let Err(code) = accept(stream, data.len() as u32, counted, ends) {
            self.owed += counted;
            return self.stream_error(head.stream, code, now_ms, out).map(Taken::Event);
        }
        stream.note_body(data.len() as u32, now_ms);
        if stream.is(Mark::Discarding) {
            self.owed += counted;
            return Ok(Taken::Frame);
        }
        let padding = counted - data.len() as u32;
        stream.owed += padding;
        stream.untaken += data.len() as u32;
        self.owed += padding;
        Ok(self.tell_data(head.stream, data, ends))
    }

    /// DATA of a stream that is over for us. What was under way when we said so is thrown away (section 5.1).
    fn take_late_data<'i>(
        &mut self,
        head: FrameHead,
        bytes: u32,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Outcome<'i> {
        let (counted, ends) = (head.length as u32, head.has(flag::END_STREAM));
        self.owed += counted;
        let Some(late) = self.find_mut(head.stream) else {
            if !self.is_ignored(head.stream) && !self.has_ended(head.stream, ends) {
                self.pay(Glitch::LateFrame, now_ms)?;
                frame::push_reset(head.stream, ErrorCode::STREAM_CLOSED, out);
            }
            return Ok(Taken::Frame);
        };
        if !late.is(Mark::Late) {
            return Ok(Taken::Frame);
        }
        if let Err(code) = accept(late, bytes, counted, ends) {
            return self.fault_of_late(head.stream, code, now_ms, out).map(|()| Taken::Frame);
        }
        let is_enough = late.note_late(counted, LATE_BODY_BYTES_MAX);
        if ends {
            self.remove(head.stream, now_ms);
        } else if is_enough {
            self.owe_reset(head.stream);
        }
        Ok(Taken::Frame)
    }

    /// Whether a few bytes are not odd: a peer that sends as much as it may ends with few bytes of a window;
    /// in a tunnel a message may be as short as a frame of a WebSocket.
    fn may_be_tiny(&self, stream: u32, data: &[u8], counted: u32) -> bool {
        let is_message = data.len() >= MASKED_FRAME_BYTES_MIN;
        let of_stream = |stream: &Stream| {
            (counted > 0 && stream.receive_left == counted) || (is_message && stream.is(Mark::Tunnel))
        };
        (counted > 0 && self.receive_left == 0) || self.find(stream).is_some_and(of_stream)
    }

    /// Gives a piece, its end, or both one after the other.
    fn tell_data<'i>(&mut self, stream: u32, piece: &'i [u8], ends: bool) -> Taken<'i> {
        if piece.is_empty() {
            return if ends { Taken::Event(Event::BodyEnd { stream }) } else { Taken::Frame };
        }
        if ends && let Some(busy) = &mut self.busy {
            busy.has_news = true;
            if let Some(waiting) = self.find_mut(stream) {
                waiting.set(Mark::EndDue, true);
            }
        }
        Taken::Event(Event::Body { stream, piece })
    }

    /// A second block of a stream: trailers, of which nobody is told (section 8.1); in a tunnel there are
    /// none (section 8.5).
    pub(super) fn take_trailer(
        &mut self,
        head: BlockHead,
        finished: Result<(), HeadFault>,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<BlockUse, ConnectionFault> {
        let stream = head.stream;
        let Some(waiting) = self.find_mut(stream) else { return Ok(BlockUse::Nothing) };
        let may_come = head.ends_stream && !waiting.is(Mark::Tunnel);
        let good = may_come && finished != Err(HeadFault::Malformed);
        let is_live = waiting.is_live();
        let code = match accept(waiting, 0, 0, true) {
            Err(code) => code,
            Ok(()) if !good => ErrorCode::PROTOCOL_ERROR,
            Ok(()) if !is_live => {
                self.remove(stream, now_ms);
                return Ok(BlockUse::Nothing);
            }
            Ok(()) if waiting.is(Mark::Discarding) => return Ok(BlockUse::Nothing),
            Ok(()) => return Ok(BlockUse::Event(Event::BodyEnd { stream })),
        };
        if !is_live {
            return self.fault_of_late(stream, code, now_ms, out).map(|()| BlockUse::Nothing);
        }
        self.stream_error(stream, code, now_ms, out).map(BlockUse::Event)
    }

    /// The body of a request is wanted: the peer may send more of it at a time, and is told to go on if it
    /// waits for that (RFC 9110, section 10.1.1). To be called before the response begins.
    ///
    /// # Panics
    /// When there is no such request.
    pub fn read_body(&mut self, stream: u32, now_ms: u64, out: &mut Vec<u8>) {
        self.remember_current(now_ms);
        let waiting = self.find_live(stream).expect("no request whose body could be read");
        waiting.body_ms = now_ms;
        let (expects, is_open) = (waiting.is(Mark::Expects), waiting.is(Mark::RequestOpen));
        let is_large = waiting.announced_left.is_none_or(|left| left > u64::from(WINDOW_BYTES));
        waiting.set(Mark::Expects, false);
        if expects && is_open {
            let start = frame::begin_block(out);
            self.push_table_size(out);
            push_continue(out);
            frame::end_block(start, stream, false, out);
        }
        if !is_open || !is_large {
            return;
        }
        if let Some(waiting) = self.find_mut(stream)
            && !waiting.is(Mark::LargeWindow)
        {
            waiting.set(Mark::LargeWindow, true);
            waiting.owed += BODY_WINDOW_BYTES - WINDOW_BYTES;
        }
        self.tell_stream_window(stream, out);
    }

    /// The body of a request is not wanted (any more): what comes of it is thrown away. To be called at most
    /// once, before the response is complete; what was given before counts as taken.
    pub fn discard_body(&mut self, stream: u32) {
        let Some(waiting) = self.find_live(stream) else { return };
        waiting.set(Mark::Discarding, true);
        waiting.set(Mark::EndDue, false);
        self.owed += std::mem::take(&mut waiting.untaken);
    }

    /// So many bytes that were given of a body are held no more: as many may come. Without effect when the
    /// request is over. The deadline of the body begins anew when nothing is held any more.
    pub fn taken(&mut self, stream: u32, bytes: usize, now_ms: u64, out: &mut Vec<u8>) {
        let Some(waiting) = self.find_live(stream) else { return };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(waiting.untaken);
        waiting.untaken -= bytes;
        if waiting.untaken == 0 {
            waiting.body_ms = now_ms;
        }
        waiting.owed += bytes;
        self.owed += bytes;
        self.tell_stream_window(stream, out);
        self.tell_window(out);
    }

    fn tell_stream_window(&mut self, stream: u32, out: &mut Vec<u8>) {
        let Some(waiting) = self.find_live(stream) else { return };
        let window = if waiting.is(Mark::LargeWindow) { BODY_WINDOW_BYTES } else { WINDOW_BYTES };
        if waiting.owed >= window / 2 && waiting.is(Mark::RequestOpen) {
            let bytes = std::mem::take(&mut waiting.owed);
            waiting.receive_left += bytes;
            frame::push_window_update(stream, bytes, out);
        }
    }

    /// Tells the peer of the connection's window when half of it was taken.
    pub(super) fn tell_window(&mut self, out: &mut Vec<u8>) {
        if self.owed >= BODY_WINDOW_BYTES / 2 {
            let bytes = std::mem::take(&mut self.owed);
            self.receive_left += bytes;
            frame::push_window_update(0, bytes, out);
        }
    }
}

/// Whether a stream may get this data (sections 5.1, 6.9.1 and 8.1.1), which is noted then.
fn accept(stream: &mut Stream, bytes: u32, counted: u32, ends: bool) -> Result<(), ErrorCode> {
    if !stream.is(Mark::RequestOpen) {
        return Err(ErrorCode::STREAM_CLOSED);
    }
    stream.receive_left = stream.receive_left.checked_sub(counted).ok_or(ErrorCode::FLOW_CONTROL_ERROR)?;
    if let Some(left) = stream.announced_left {
        let left = left.checked_sub(u64::from(bytes)).ok_or(ErrorCode::PROTOCOL_ERROR)?;
        stream.announced_left = Some(left);
        if ends && left > 0 {
            stream.set(Mark::RequestOpen, false);
            return Err(ErrorCode::PROTOCOL_ERROR);
        }
    }
    if ends {
        stream.set(Mark::RequestOpen, false);
    }
    Ok(())
}
