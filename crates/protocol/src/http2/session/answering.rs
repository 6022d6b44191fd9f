//! Responses: heads, and as much of their bodies as windows allow.
//!
//! It owns who may send next. It must never hold a byte of a body, nor grant more than both windows.

use super::{CURRENT_BEGUN, CURRENT_HEAD, Session, TABLE_UNUSED};
use crate::http2::error::ErrorCode;
use crate::http2::frame::{self, FrameHead, flag, kind};
use crate::http2::hpack::push_fields;
use crate::http2::opening::{HeadFields, Opening, push_head, push_interim_head};
use crate::http2::stream::Mark;
use crate::limits::{FRAME_BYTES_MAX, TAKEN_BYTES_MIN};
use crate::message::{BodyRule, Fields};
use crate::status::Status;

/// How a response begins.
#[derive(Debug, Clone, Copy)]
pub struct ResponseHead<'a> {
    /// The status, which is a final one.
    pub status: Status,
    /// The fields beside `server` and `date`.
    pub fields: HeadFields<'a>,
    /// Whether there is a body. Of one that is empty nothing has to be sent.
    pub has_body: bool,
}

impl Session {
    /// Begins the response to a request: appends HEADERS. If the rule says `Send`, its body follows by
    /// [`Session::begin_data`]; else the response is complete. To one that asks for a tunnel no success is
    /// sent, but 501 without a body instead of it.
    ///
    /// # Panics
    /// When there is no such request, or its response has begun.
    #[inline]
    pub fn begin_response(
        &mut self,
        stream: u32,
        mut head: ResponseHead<'_>,
        now_ms: u64,
        opening: &Opening,
        out: &mut Vec<u8>,
    ) -> BodyRule {
        let omit_body = if self.is_current(stream) {
            assert!(self.current & CURRENT_BEGUN == 0, "a response that has begun");
            self.current |= CURRENT_BEGUN;
            self.current & CURRENT_HEAD != 0
        } else {
            let waiting = self.find_live(stream).expect("a response without a request");
            assert!(!waiting.is(Mark::Begun), "a response that has begun");
            waiting.set(Mark::Begun, true);
            if waiting.is(Mark::Tunnel) {
                head = head.without_tunnel();
            }
            waiting.is(Mark::OmitBody)
        };
        let ends = omit_body || !head.has_body || head.status.has_no_content();
        let start = frame::begin_block(out);
        self.push_table_size(out);
        push_head(head.status, opening, head.fields, out);
        frame::end_block(start, stream, ends, out);
        if ends {
            self.finish_response(stream, now_ms);
            return BodyRule::Omit;
        }
        BodyRule::Send
    }

    /// Appends an interim response (RFC 9110, section 15.2) to a request whose final one has not begun.
    #[cold]
    pub fn push_interim(&mut self, stream: u32, status: Status, fields: Fields<'_>, out: &mut Vec<u8>) {
        let start = frame::begin_block(out);
        self.push_table_size(out);
        push_interim_head(status, fields, out);
        frame::end_block(start, stream, false, out);
    }

    /// A peer that made its table smaller has to be told, once, that none is used.
    #[inline]
    pub(super) fn push_table_size(&mut self, out: &mut Vec<u8>) {
        if self.flags & TABLE_UNUSED != 0 {
            self.flags &= !TABLE_UNUSED;
            out.push(0x20);
        }
    }

    /// Begins a piece of a body: appends what stands before it, and gives how many of the wanted bytes are to
    /// be appended right behind. `is_last` says that nothing follows the wanted bytes: if all are granted the
    /// response is complete. If fewer are granted, [`Session::next_to_send`] tells when to go on.
    ///
    /// # Panics
    /// When there is no such request, or its response has not begun.
    #[inline]
    pub fn begin_data(
        &mut self,
        stream: u32,
        wanted_bytes: u64,
        is_last: bool,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> u64 {
        if self.is_current(stream) {
            assert!(self.current & CURRENT_BEGUN != 0, "a body before its head");
            let room = self.send_window.min(self.stream_window).min(FRAME_BYTES_MAX as u32);
            if is_last && wanted_bytes <= u64::from(room) {
                let flags = flag::END_STREAM;
                FrameHead { length: wanted_bytes as usize, kind: kind::DATA, flags, stream }.push(out);
                self.send_window -= wanted_bytes as u32;
                self.ledger.sent(wanted_bytes as u32);
                self.finish_response(stream, now_ms);
                return wanted_bytes;
            }
            self.remember_current(now_ms);
        }
        self.begin_waiting_data(stream, wanted_bytes, is_last, now_ms, out)
    }

    fn begin_waiting_data(
        &mut self,
        stream: u32,
        wanted_bytes: u64,
        is_last: bool,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> u64 {
        let connection_window = self.send_window;
        let waiting = self.find_live(stream).expect("a body without a request");
        assert!(waiting.is(Mark::Begun), "a body before its head");
        let room = connection_window.min(waiting.send_window.max(0) as u32).min(FRAME_BYTES_MAX as u32);
        let granted = wanted_bytes.min(u64::from(room)) as u32;
        let is_all = u64::from(granted) == wanted_bytes;
        let ends = is_last && is_all;
        if !waiting.is(Mark::Wants) {
            (waiting.blocked_ms, waiting.taken_bytes) = (now_ms, 0);
        }
        waiting.taken_bytes += granted;
        if waiting.taken_bytes >= TAKEN_BYTES_MIN {
            (waiting.blocked_ms, waiting.taken_bytes) = (now_ms, 0);
        }
        waiting.send_window -= granted as i32;
        waiting.set(Mark::Wants, !is_all);
        self.send_window -= granted;
        if is_all {
            self.ledger.sent(granted);
        }
        if granted > 0 || ends {
            let flags = if ends { flag::END_STREAM } else { 0 };
            FrameHead { length: granted as usize, kind: kind::DATA, flags, stream }.push(out);
        }
        if ends {
            self.finish_response(stream, now_ms);
        }
        u64::from(granted)
    }

    /// Ends a response whose body was handed over: appends trailer fields, with which the stream ends.
    ///
    /// # Panics
    /// When there is no such request, or its response has not begun.
    #[cold]
    pub fn end_with(&mut self, stream: u32, trailers: Fields<'_>, now_ms: u64, out: &mut Vec<u8>) {
        self.remember_current(now_ms);
        let waiting = self.find_live(stream).expect("trailers without a request");
        assert!(waiting.is(Mark::Begun), "trailers before the head");
        let start = frame::begin_block(out);
        self.push_table_size(out);
        push_fields(trailers, out);
        frame::end_block(start, stream, true, out);
        self.finish_response(stream, now_ms);
    }

    /// The stream whose answer goes on next, if any may (RFC 9218, section 10): the most urgent; of these one
    /// after the other in the order of their requests, and then those that may be mixed, a frame of each in
    /// turn. A tunnel, which has no end, gets every second frame.
    ///
    /// Appends what can only be said behind a body that is complete.
    pub fn next_to_send(&mut self, out: &mut Vec<u8>) -> Option<u32> {
        self.push_owed_resets(out);
        self.drop_if_idle();
        let may_send = self.send_window > 0;
        let busy = self.busy.as_mut().filter(|_| may_send)?;
        let (served, served_tunnel) = (busy.served, busy.served_tunnel);
        let ready = busy.streams.iter().filter(|stream| stream.is(Mark::Wants) && stream.send_window > 0);
        let next = ready.min_by_key(|stream| {
            let (priority, is_tunnel) = (stream.priority, stream.is(Mark::Tunnel));
            let has_precedence = is_tunnel && !served_tunnel;
            let takes_turns = priority.incremental || is_tunnel;
            let had_turn = takes_turns && stream.number <= served;
            (priority.urgency, !has_precedence, takes_turns, had_turn, stream.number)
        })?;
        busy.served_tunnel = next.is(Mark::Tunnel);
        if next.priority.incremental || busy.served_tunnel {
            busy.served = next.number;
        }
        Some(next.number)
    }

    /// Whether an answer waits for a window.
    pub(super) fn is_blocked(&self) -> bool {
        let shut = self.send_window == 0;
        let streams = self.busy.iter().flat_map(|busy| &busy.streams);
        streams.into_iter().any(|stream| stream.is(Mark::Wants) && (shut || stream.send_window <= 0))
    }

    /// The answer will never be complete, or the request is not to be answered: appends RST_STREAM.
    ///
    /// # Panics
    /// When there is no such request.
    pub fn reset(&mut self, stream: u32, code: ErrorCode, now_ms: u64, out: &mut Vec<u8>) {
        self.remember_current(now_ms);
        assert!(self.find_live(stream).is_some(), "no request to reset");
        frame::push_reset(stream, code, out);
        self.end_early(stream, now_ms);
    }

    /// A whole answer to what never became a request. Gives the length of its body.
    pub(super) fn answer_refused(
        &mut self,
        stream: u32,
        status: Status,
        sentence: &[u8],
        opening: &Opening,
        out: &mut Vec<u8>,
    ) -> usize {
        let room = self.send_window.min(self.stream_window) as usize;
        let ends = sentence.is_empty() || sentence.len() > room;
        let fields = Fields::new(b"Content-Type: text/plain; charset=utf-8\r\n");
        let start = frame::begin_block(out);
        self.push_table_size(out);
        push_head(status, opening, HeadFields::Lines(fields), out);
        frame::end_block(start, stream, ends, out);
        if ends {
            return 0;
        }
        FrameHead { length: sentence.len(), kind: kind::DATA, flags: flag::END_STREAM, stream }.push(out);
        out.extend_from_slice(sentence);
        self.send_window -= sentence.len() as u32;
        sentence.len()
    }
}
