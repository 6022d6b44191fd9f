//! Frames: their heads, and those that are written here (RFC 9113, sections 4 and 6).
//!
//! It owns the layout of bytes. It must never know what state a stream is in.

use super::error::ErrorCode;
use crate::limits::{FRAME_BYTES_MAX, HEAD_BYTES_MAX, STREAMS_MAX};

/// Length of a frame's head.
pub(super) const FRAME_HEAD_BYTES: usize = 9;

/// Kinds of frames (section 6; PRIORITY_UPDATE: RFC 9218, section 7.1).
pub(super) mod kind {
    pub(in crate::http2) const DATA: u8 = 0x0;
    pub(in crate::http2) const HEADERS: u8 = 0x1;
    pub(in crate::http2) const PRIORITY: u8 = 0x2;
    pub(in crate::http2) const RST_STREAM: u8 = 0x3;
    pub(in crate::http2) const SETTINGS: u8 = 0x4;
    pub(in crate::http2) const PUSH_PROMISE: u8 = 0x5;
    pub(in crate::http2) const PING: u8 = 0x6;
    pub(in crate::http2) const GOAWAY: u8 = 0x7;
    pub(in crate::http2) const WINDOW_UPDATE: u8 = 0x8;
    pub(in crate::http2) const CONTINUATION: u8 = 0x9;
    pub(in crate::http2) const PRIORITY_UPDATE: u8 = 0x10;
}

/// Flags of frames (section 6).
pub(super) mod flag {
    pub(in crate::http2) const ACK: u8 = 0x1;
    pub(in crate::http2) const END_STREAM: u8 = 0x1;
    pub(in crate::http2) const END_HEADERS: u8 = 0x4;
    pub(in crate::http2) const PADDED: u8 = 0x8;
    pub(in crate::http2) const PRIORITY: u8 = 0x20;
}

/// Numbers of settings (section 6.5.2; RFC 9218, section 2.1; RFC 8441, section 3).
pub(super) mod setting {
    pub(in crate::http2) const HEADER_TABLE_SIZE: u16 = 0x1;
    pub(in crate::http2) const ENABLE_PUSH: u16 = 0x2;
    pub(in crate::http2) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub(in crate::http2) const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub(in crate::http2) const MAX_FRAME_SIZE: u16 = 0x5;
    pub(in crate::http2) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
    pub(in crate::http2) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
    pub(in crate::http2) const NO_RFC7540_PRIORITIES: u16 = 0x9;
}

/// The largest number of a stream, and the largest window.
pub(super) const NUMBER_MAX: u32 = 0x7fff_ffff;

/// What stands before the payload of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    /// The head that the bytes begin with, once it is there as a whole.
    #[inline]
    pub(super) fn at_start_of(bytes: &[u8]) -> Option<Self> {
        let &[high, middle, low, kind, flags, ref stream @ ..] = bytes.first_chunk::<FRAME_HEAD_BYTES>()?;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        Some(Self { length, kind, flags, stream: number(stream) })
    }

    #[inline]
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(super) fn push(self, out: &mut Vec<u8>) {
        let mut bytes = [0; FRAME_HEAD_BYTES];
        bytes[..4].copy_from_slice(&(self.length as u32).to_be_bytes());
        bytes.copy_within(1..4, 0);
        bytes[3] = self.kind;
        bytes[4] = self.flags;
        bytes[5..].copy_from_slice(&self.stream.to_be_bytes());
        out.extend_from_slice(&bytes);
    }
}

/// 31 bits; the first is reserved and has no meaning.
#[inline]
pub(super) fn number(bytes: &[u8; 4]) -> u32 {
    u32::from_be_bytes(*bytes) & NUMBER_MAX
}

/// A payload without its padding, if it is padded (sections 6.1 and 6.2); `None` if there is more of it than
/// payload.
#[inline]
pub(super) fn unpadded(head: FrameHead, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(flag::PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(padding))?)
}

/// Appends our settings, which are what a server sends first (section 3.4).
pub(super) fn push_settings(out: &mut Vec<u8>) {
    let settings = [
        (setting::MAX_CONCURRENT_STREAMS, STREAMS_MAX as u32),
        (setting::MAX_HEADER_LIST_SIZE, HEAD_BYTES_MAX as u32),
        (setting::ENABLE_CONNECT_PROTOCOL, 1),
        (setting::NO_RFC7540_PRIORITIES, 1),
    ];
    let length = settings.len() * 6;
    FrameHead { length, kind: kind::SETTINGS, flags: 0, stream: 0 }.push(out);
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of the peer's settings.
pub(super) fn push_settings_ack(out: &mut Vec<u8>) {
    FrameHead { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.push(out);
}

/// Appends a PING, or the answer to one.
pub(super) fn push_ping(flags: u8, payload: &[u8], out: &mut Vec<u8>) {
    FrameHead { length: payload.len(), kind: kind::PING, flags, stream: 0 }.push(out);
    out.extend_from_slice(payload);
}

/// Appends RST_STREAM.
pub(super) fn push_reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    FrameHead { length: 4, kind: kind::RST_STREAM, flags: 0, stream }.push(out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends WINDOW_UPDATE, of a connection if the stream is 0.
pub(super) fn push_window_update(stream: u32, bytes: u32, out: &mut Vec<u8>) {
    FrameHead { length: 4, kind: kind::WINDOW_UPDATE, flags: 0, stream }.push(out);
    out.extend_from_slice(&bytes.to_be_bytes());
}

/// Appends GOAWAY.
pub(super) fn push_goaway(last_stream: u32, code: ErrorCode, reason: &str, out: &mut Vec<u8>) {
    FrameHead { length: 8 + reason.len(), kind: kind::GOAWAY, flags: 0, stream: 0 }.push(out);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(reason.as_bytes());
}

/// Where a block of fields begins that is being written behind its frame's head.
pub(super) struct BlockStart(usize);

/// Begins HEADERS: the block is appended next.
#[inline]
pub(super) fn begin_block(out: &mut Vec<u8>) -> BlockStart {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    BlockStart(start)
}

/// Ends HEADERS, whose block stands behind `start`. A block too long for a frame goes on in others.
#[inline]
pub(super) fn end_block(start: BlockStart, stream: u32, end_stream: bool, out: &mut Vec<u8>) {
    let block_start = start.0 + FRAME_HEAD_BYTES;
    let length = out.len() - block_start;
    let flags = if end_stream { flag::END_STREAM } else { 0 };
    if length > FRAME_BYTES_MAX {
        return end_long_block(start, stream, flags, out);
    }
    let [_, high, middle, low] = (length as u32).to_be_bytes();
    let [first, second, third, fourth] = stream.to_be_bytes();
    let flags = flags | flag::END_HEADERS;
    let head = [high, middle, low, kind::HEADERS, flags, first, second, third, fourth];
    if let Some(place) = out.get_mut(start.0..block_start) {
        place.copy_from_slice(&head);
    }
}

#[cold]
fn end_long_block(start: BlockStart, stream: u32, mut flags: u8, out: &mut Vec<u8>) {
    let block = out.split_off(start.0 + FRAME_HEAD_BYTES);
    out.truncate(start.0);
    let mut pieces = block.chunks(FRAME_BYTES_MAX).peekable();
    let mut kind = kind::HEADERS;
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            flags |= flag::END_HEADERS;
        }
        FrameHead { length: piece.len(), kind, flags, stream }.push(out);
        out.extend_from_slice(piece);
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_written() {
        let head = FrameHead { length: 0x01_02_03, kind: kind::PING, flags: 0xa5, stream: 0x7fff_fffd };
        let mut out = Vec::new();
        head.push(&mut out);
        assert_eq!(out, [1, 2, 3, 6, 0xa5, 0x7f, 0xff, 0xff, 0xfd]);
        assert_eq!(FrameHead::at_start_of(&out), Some(head));
        assert_eq!(FrameHead::at_start_of(&out[..8]), None);
        out[5] |= 0x80;
        assert_eq!(FrameHead::at_start_of(&out), Some(head), "the reserved bit");
    }

    #[test]
    fn padding() {
        let head = |flags| FrameHead { length: 0, kind: kind::DATA, flags, stream: 1 };
        assert_eq!(unpadded(head(0), b"\x02ab"), Some(&b"\x02ab"[..]));
        assert_eq!(unpadded(head(flag::PADDED), b"\x02abc"), Some(&b"a"[..]));
        assert_eq!(unpadded(head(flag::PADDED), b"\x03abc"), Some(&b""[..]));
        assert_eq!(unpadded(head(flag::PADDED), b"\x04abc"), None);
        assert_eq!(unpadded(head(flag::PADDED), b""), None);
    }

    #[test]
    fn a_long_block_takes_several_frames() {
        let mut out = b"before".to_vec();
        let start = begin_block(&mut out);
        out.resize(out.len() + FRAME_BYTES_MAX + 5, b'x');
        end_block(start, 3, true, &mut out);
        let first = FrameHead::at_start_of(&out[6..]).expect("a head");
        assert_eq!((first.length, first.kind, first.flags), (FRAME_BYTES_MAX, 1, flag::END_STREAM));
        let second = FrameHead::at_start_of(&out[6 + 9 + FRAME_BYTES_MAX..]).expect("a head");
        assert_eq!((second.length, second.kind, second.flags, second.stream), (5, 9, flag::END_HEADERS, 3));
        assert_eq!(out.len(), 6 + 9 + FRAME_BYTES_MAX + 9 + 5);
    }
}
