//! Bytes of messages, read without trust.
//!
//! It must never copy more than was asked for, nor take a length at its word.

use super::limits::TOPIC_BYTES_MAX;

/// What is left of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(*self.take(2)?.first_chunk()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(*self.take(4)?.first_chunk()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(*self.take(8)?.first_chunk()?))
    }

    /// A text behind a byte with its length.
    pub(super) fn short_text(&mut self) -> Option<&'a str> {
        let length = self.u8()?;
        std::str::from_utf8(self.take(length.into())?).ok()
    }

    /// A topic's name behind two bytes with its length; empty where none is named.
    pub(super) fn topic(&mut self) -> Option<&'a str> {
        let length = usize::from(self.u16()?);
        let bytes = self.take(length)?;
        if length > TOPIC_BYTES_MAX { None } else { std::str::from_utf8(bytes).ok() }
    }
}

/// Writes a text behind a byte with its length; what is longer is cut where a character ends.
pub(super) fn short_text(text: &str, out: &mut Vec<u8>) {
    let cut = text.floor_char_boundary(usize::from(u8::MAX));
    out.push(cut as u8);
    out.extend_from_slice(&text.as_bytes()[..cut]);
}

/// Writes a topic's name behind two bytes with its length.
pub(super) fn topic(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(name.len() as u16).to_be_bytes());
    out.extend_from_slice(name.as_bytes());
}
