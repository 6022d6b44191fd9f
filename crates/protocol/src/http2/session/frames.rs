//! Frames of the peer, one by one (RFC 9113, section 6).
//!
//! It owns what each kind may look like and what it does. It must never answer a request.

use super::{BlockHead, Event, Outcome, Phase, Session, TOO_MUCH_PADDING, Taken};
use crate::http2::error::{ConnectionFault, ErrorCode};
use crate::http2::frame::{
    self, FRAME_HEAD_BYTES, FrameHead, NUMBER_MAX, flag, kind, number, setting, unpadded,
};
use crate::http2::ledger::{Glitch, TINY_BYTES};
use crate::http2::priority::Priority;
use crate::http2::stream::Mark;
use crate::limits::{BLOCK_BYTES_MAX, BLOCK_FRAMES_MAX, FIELD_TABLE_BYTES_MAX, FRAME_BYTES_MAX};
use crate::preface::{PREFACE, is_preface};

/// The payload of our PING that asks whether the peer knows that we leave.
const LEAVING: &[u8; 8] = b"leaving!";

impl Session {
    /// Takes the next frame if it is there as a whole, and does what it asks for.
    #[inline]
    pub(super) fn take_frame<'i>(
        &mut self,
        input: &mut &'i [u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Outcome<'i> {
        if self.phase == Phase::Preface && !self.take_preface(input)? {
            return Ok(Taken::NeedInput);
        }
        let Some(head) = FrameHead::at_start_of(input) else { return Ok(Taken::NeedInput) };
        if head.length > FRAME_BYTES_MAX {
            return Err(ConnectionFault::size("a frame is longer than what was allowed"));
        }
        let Some((bytes, behind)) = input.split_at_checked(FRAME_HEAD_BYTES + head.length) else {
            return Ok(Taken::NeedInput);
        };
        *input = behind;
        let payload = &bytes[FRAME_HEAD_BYTES..];
        if let Some(busy) = &mut self.busy {
            if let Some(block_head) = busy.block_head {
                return self.take_continuation(block_head, head, payload, now_ms);
            }
            busy.partial_ms = None;
        }
        if self.phase == Phase::Settings {
            if head.kind != kind::SETTINGS || head.has(flag::ACK) {
                return Err(ConnectionFault::protocol("the first frame is not SETTINGS"));
            }
            self.phase = Phase::Open;
            self.since_ms = now_ms;
            self.take_settings(head, payload, out)?;
            return Ok(Taken::Frame);
        }
        match head.kind {
            kind::HEADERS => self.take_headers(head, payload, now_ms),
            kind::DATA => self.take_data(head, payload, now_ms, out),
            kind::WINDOW_UPDATE => self.take_window_update(head, payload, now_ms, out),
            kind::RST_STREAM => self.take_reset(head, payload, now_ms),
            _ => self.take_rare_frame(head, payload, now_ms, out).map(|()| Taken::Frame),
        }
    }

    /// Section 3.4. What is not one is told by its first wrong byte.
    fn take_preface(&mut self, input: &mut &[u8]) -> Result<bool, ConnectionFault> {
        match is_preface(input) {
            None => return Ok(false),
            Some(false) => return Err(ConnectionFault::protocol("what came is not HTTP/2")),
            Some(true) => {}
        }
        *input = input.get(PREFACE.len()..).unwrap_or_default();
        self.phase = Phase::Settings;
        Ok(true)
    }

    #[cold]
    fn take_rare_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionFault> {
        match head.kind {
            kind::SETTINGS => {
                if !head.has(flag::ACK) {
                    self.pay(Glitch::Settings, now_ms)?;
                }
                self.take_settings(head, payload, out)
            }
            kind::PING => self.take_ping(head, payload, now_ms, out),
            kind::PRIORITY => self.take_old_priority(head, payload, now_ms),
            kind::PRIORITY_UPDATE => self.take_priority_update(head, payload, now_ms),
            kind::GOAWAY => {
                if head.stream != 0 {
                    return Err(ConnectionFault::protocol("GOAWAY on a stream"));
                }
                if payload.len() < 8 {
                    return Err(ConnectionFault::size("GOAWAY is too short"));
                }
                // Nothing new comes; what waits is answered.
                self.phase = Phase::Left;
                Ok(())
            }
            kind::PUSH_PROMISE => Err(ConnectionFault::protocol("a client sent PUSH_PROMISE")),
            kind::CONTINUATION => Err(ConnectionFault::protocol("CONTINUATION behind no HEADERS")),
            // Section 4.1.
            _ => self.pay(Glitch::UnknownFrame, now_ms),
        }
    }

    /// HEADERS (section 6.2).
    #[inline]
    fn take_headers<'i>(&mut self, head: FrameHead, payload: &'i [u8], now_ms: u64) -> Outcome<'i> {
        if head.stream.is_multiple_of(2) {
            return Err(ConnectionFault::protocol("a client's stream has an even number"));
        }
        let mut block = unpadded(head, payload).ok_or(TOO_MUCH_PADDING)?;
        let mut depends_on_itself = false;
        if head.has(flag::PRIORITY) {
            let (dependency, rest) =
                block.split_at_checked(5).ok_or(ConnectionFault::size("HEADERS is too short"))?;
            depends_on_itself = dependency.first_chunk().map(number) == Some(head.stream);
            block = rest;
        }
        let ends_stream = head.has(flag::END_STREAM);
        let block_head = BlockHead { stream: head.stream, ends_stream, depends_on_itself };
        if head.has(flag::END_HEADERS) {
            return Ok(Taken::Block(block_head, block));
        }
        let busy = self.busy.get_or_insert_default();
        (busy.block_head, busy.block_frames) = (Some(block_head), 1);
        busy.block = block.to_vec();
        busy.partial_ms = Some(now_ms);
        Ok(Taken::Frame)
    }

    /// CONTINUATION, and nothing else (sections 6.2 and 6.10).
    #[cold]
    fn take_continuation<'i>(
        &mut self,
        block_head: BlockHead,
        head: FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Outcome<'i> {
        if head.kind != kind::CONTINUATION || head.stream != block_head.stream {
            return Err(ConnectionFault::protocol("a frame within a block of fields"));
        }
        let busy = self.busy.get_or_insert_default();
        busy.block_frames += 1;
        let frames = busy.block_frames;
        if frames > BLOCK_FRAMES_MAX || busy.block.len() + payload.len() > BLOCK_BYTES_MAX {
            let code = ErrorCode::ENHANCE_YOUR_CALM;
            return Err(ConnectionFault::new(code, "a block of fields has no end"));
        }
        busy.block.extend_from_slice(payload);
        let ended = head.has(flag::END_HEADERS);
        let block = if ended {
            (busy.block_head, busy.partial_ms) = (None, None);
            std::mem::take(&mut busy.block)
        } else {
            Vec::new()
        };
        if frames > 3 || payload.is_empty() {
            self.pay(Glitch::Continuation, now_ms)?;
        }
        Ok(if ended { Taken::LongBlock(block_head, block) } else { Taken::Frame })
    }

    /// SETTINGS (section 6.5).
    fn take_settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionFault> {
        if head.stream != 0 {
            return Err(ConnectionFault::protocol("SETTINGS on a stream"));
        }
        if head.has(flag::ACK) {
            let short = payload.is_empty();
            return if short { Ok(()) } else { Err(ConnectionFault::size("SETTINGS with ACK is not empty")) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(ConnectionFault::size("SETTINGS is not a multiple of 6 bytes"));
        }
        for &[high, low, ref value @ ..] in settings {
            self.apply_setting(u16::from_be_bytes([high, low]), u32::from_be_bytes(*value))?;
        }
        frame::push_settings_ack(out);
        Ok(())
    }

    /// Section 6.5.2.
    fn apply_setting(&mut self, name: u16, value: u32) -> Result<(), ConnectionFault> {
        let good = match name {
            setting::ENABLE_PUSH | setting::NO_RFC7540_PRIORITIES => value <= 1,
            setting::MAX_FRAME_SIZE => (FRAME_BYTES_MAX as u32..1 << 24).contains(&value),
            setting::INITIAL_WINDOW_SIZE => return self.resize_windows(value),
            setting::HEADER_TABLE_SIZE => {
                if (value as usize) < FIELD_TABLE_BYTES_MAX {
                    self.flags |= super::TABLE_UNUSED;
                }
                true
            }
            _ => true,
        };
        if good {
            Ok(())
        } else {
            Err(ConnectionFault::protocol("a setting has a value that it must not have"))
        }
    }

    /// Section 6.9.2: windows of streams may fall below zero.
    fn resize_windows(&mut self, bytes: u32) -> Result<(), ConnectionFault> {
        const TOO_LARGE: ConnectionFault =
            ConnectionFault::new(ErrorCode::FLOW_CONTROL_ERROR, "a window is larger than 2^31 - 1");
        if bytes > NUMBER_MAX {
            return Err(TOO_LARGE);
        }
        let change = bytes as i32 - self.stream_window as i32;
        self.stream_window = bytes;
        for stream in self.busy.iter_mut().flat_map(|busy| &mut busy.streams) {
            stream.send_window = stream.send_window.checked_add(change).ok_or(TOO_LARGE)?;
        }
        Ok(())
    }

    /// PING (section 6.7).
    fn take_ping(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionFault> {
        if head.stream != 0 {
            return Err(ConnectionFault::protocol("PING on a stream"));
        }
        if payload.len() != 8 {
            return Err(ConnectionFault::size("PING is not of 8 bytes"));
        }
        if head.has(flag::ACK) {
            if self.phase == Phase::Leaving && payload == LEAVING {
                self.tell_last_stream(out);
            }
            return Ok(());
        }
        self.pay(Glitch::Ping, now_ms)?;
        frame::push_ping(flag::ACK, payload, out);
        Ok(())
    }

    /// PRIORITY (RFC 9113, section 5.3.2): the scheme that it is of is not spoken any more.
    fn take_old_priority(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), ConnectionFault> {
        if head.stream == 0 {
            return Err(ConnectionFault::protocol("PRIORITY on no stream"));
        }
        if payload.len() != 5 {
            return Err(ConnectionFault::size("PRIORITY is not of 5 bytes"));
        }
        if payload.first_chunk().map(number) == Some(head.stream) {
            return Err(ConnectionFault::protocol("a stream depends on itself"));
        }
        self.pay(Glitch::Priority, now_ms)
    }

    /// PRIORITY_UPDATE (RFC 9218, section 7.1). For a stream that has not come it is forgotten.
    fn take_priority_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), ConnectionFault> {
        if head.stream != 0 {
            return Err(ConnectionFault::protocol("PRIORITY_UPDATE on a stream"));
        }
        let (stream, value) =
            payload.split_first_chunk().ok_or(ConnectionFault::size("PRIORITY_UPDATE is too short"))?;
        let stream = number(stream);
        if stream == 0 {
            return Err(ConnectionFault::protocol("PRIORITY_UPDATE of no stream"));
        }
        if let Some(stream) = self.find_mut(stream) {
            stream.priority = Priority::read(value);
        }
        self.pay(Glitch::Priority, now_ms)
    }

    /// WINDOW_UPDATE (section 6.9).
    fn take_window_update<'i>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Outcome<'i> {
        let bytes =
            payload.try_into().map_err(|_| ConnectionFault::size("WINDOW_UPDATE is not of 4 bytes"))?;
        let bytes = number(bytes);
        if (bytes as usize) < TINY_BYTES && bytes > 0 && self.is_blocked() {
            self.pay(Glitch::TinyWindow, now_ms)?;
        }
        if head.stream == 0 {
            return self.widen(bytes).map(|()| Taken::Frame);
        }
        self.check_not_idle(head.stream)?;
        let Some(stream) = self.find_mut(head.stream).filter(|stream| stream.is_live()) else {
            return Ok(Taken::Frame);
        };
        let code = match stream.send_window.checked_add(bytes as i32) {
            _ if bytes == 0 => ErrorCode::PROTOCOL_ERROR,
            None => ErrorCode::FLOW_CONTROL_ERROR,
            Some(window) => {
                stream.send_window = window;
                return Ok(Taken::Frame);
            }
        };
        self.stream_error(head.stream, code, now_ms, out).map(Taken::Event)
    }

    /// The window of the connection grows.
    fn widen(&mut self, bytes: u32) -> Result<(), ConnectionFault> {
        if bytes == 0 {
            return Err(ConnectionFault::protocol("a window is opened by nothing"));
        }
        let window = self.send_window.checked_add(bytes).filter(|window| *window <= NUMBER_MAX);
        self.send_window = window.ok_or(ConnectionFault::new(
            ErrorCode::FLOW_CONTROL_ERROR,
            "the window of the connection is larger than 2^31 - 1",
        ))?;
        Ok(())
    }

    /// RST_STREAM (section 6.4).
    fn take_reset<'i>(&mut self, head: FrameHead, payload: &[u8], now_ms: u64) -> Outcome<'i> {
        let code = payload.try_into().map_err(|_| ConnectionFault::size("RST_STREAM is not of 4 bytes"))?;
        let code = ErrorCode(u32::from_be_bytes(code));
        if head.stream == 0 {
            return Err(ConnectionFault::protocol("RST_STREAM on no stream"));
        }
        self.check_not_idle(head.stream)?;
        let stream = head.stream;
        match self.remove(stream, now_ms) {
            Some(removed) if removed.is_live() => {
                let has_begun = removed.is(Mark::Begun);
                self.pay(if has_begun { Glitch::ResetOfBegun } else { Glitch::Cancelled }, now_ms)?;
                Ok(Taken::Event(Event::Reset { stream, code }))
            }
            None if self.is_ignored(stream) || self.has_ended(stream, true) => Ok(Taken::Frame),
            Some(_) | None => {
                self.pay(Glitch::ResetAfterAnswer, now_ms)?;
                Ok(Taken::Frame)
            }
        }
    }

    /// A frame on a stream that was never opened (section 5.1).
    pub(super) fn check_not_idle(&self, stream: u32) -> Result<(), ConnectionFault> {
        if (stream > self.last_stream && !self.is_ignored(stream)) || stream.is_multiple_of(2) {
            return Err(ConnectionFault::protocol("a frame on a stream that was not opened"));
        }
        Ok(())
    }

    /// Whether the stream was opened after we had left: nobody is to blame for its frames (section 6.8).
    pub(super) fn is_ignored(&self, stream: u32) -> bool {
        self.phase == Phase::Left && stream > self.last_stream
    }

    /// The ledger is charged.
    pub(super) fn pay(&mut self, glitch: Glitch, now_ms: u64) -> Result<(), ConnectionFault> {
        if self.ledger.pay(glitch, now_ms) {
            return Ok(());
        }
        Err(ConnectionFault::new(ErrorCode::ENHANCE_YOUR_CALM, "too much of what is odd"))
    }
}

/// The peer is asked whether it knows that we leave.
pub(super) fn push_leaving_ping(out: &mut Vec<u8>) {
    frame::push_ping(0, LEAVING, out);
}
