//! Request bodies, read only to be thrown away.
//!
//! It owns the chunked coding (RFC 9112, section 7.1). It must never keep a byte: its state is a few numbers,
//! so the bytes may come in any pieces.

use super::framing::Framing;
use crate::limits::{CHUNK_LINE_BYTES_MAX, DISCARDED_BODY_BYTES_MAX, TRAILER_BYTES_MAX};

/// How far a body was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All of it: what follows is the next request.
    Done,
    /// The input is used up.
    NeedInput,
    /// The body is broken or longer than worth reading: no request can follow.
    Lost,
}

/// Discards one body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Discard {
    /// Bytes left of the body, or of the chunk (while its size is read: the size so far).
    remaining_bytes: u32,
    /// What chunks and everything around them may still cost. Counting the lines too, a body of many tiny
    /// chunks with long extensions is no cheaper way to keep a server reading.
    budget_bytes: u32,
    /// Bytes of the size line or of the trailer section.
    line_bytes: u16,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Done,
    Lost,
    /// In a body of known length.
    Length,
    /// Before the first digit of a chunk's size.
    SizeFirst,
    /// Behind a digit of a chunk's size.
    Size,
    /// White space behind the size: an extension must follow.
    SizeSpace,
    Extension,
    ExtensionQuoted,
    ExtensionEscaped,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    /// At the start of a line of the trailer section.
    TrailerStart,
    Trailer,
    TrailerLineFeed,
    LastLineFeed,
}

const _: () =
    assert!(DISCARDED_BODY_BYTES_MAX <= u32::MAX as u64 >> 4, "a chunk's size is compared at each digit");
const _: () = assert!(CHUNK_LINE_BYTES_MAX < u16::MAX as usize);
const _: () = assert!(TRAILER_BYTES_MAX < u16::MAX as usize);

impl Discard {
    /// Nothing to discard.
    pub(super) const NOTHING: Self = Self::at(State::Done, 0);
    /// A body that will not be read.
    pub(super) const UNREAD: Self = Self::at(State::Lost, 0);

    const fn at(state: State, remaining_bytes: u32) -> Self {
        Self { remaining_bytes, budget_bytes: DISCARDED_BODY_BYTES_MAX as u32, line_bytes: 0, state }
    }

    /// The body so delimited.
    #[inline]
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::NOTHING,
            Framing::Length(length_bytes) if length_bytes > DISCARDED_BODY_BYTES_MAX => Self::UNREAD,
            Framing::Length(length_bytes) => Self::at(State::Length, length_bytes as u32),
            Framing::Chunked => Self::at(State::SizeFirst, 0),
        }
    }

    /// Whether it is known already that no request can follow.
    #[inline]
    pub(super) fn is_lost(&self) -> bool {
        self.state == State::Lost
    }

    /// Takes from `input` what belongs to the body.
    #[inline]
    pub(super) fn advance(&mut self, input: &mut &[u8]) -> Progress {
        if self.state == State::Done {
            return Progress::Done;
        }
        self.advance_body(input)
    }

    fn advance_body(&mut self, input: &mut &[u8]) -> Progress {
        loop {
            match self.state {
                State::Done => return Progress::Done,
                State::Lost => return Progress::Lost,
                _ if input.is_empty() => return Progress::NeedInput,
                State::Length => self.skip(input, State::Done),
                State::Data => self.skip(input, State::DataReturn),
                _ => {
                    let Some((byte, rest)) = input.split_first() else { return Progress::NeedInput };
                    *input = rest;
                    self.state = self.spend(1).and_then(|()| self.step(*byte)).unwrap_or(State::Lost);
                }
            }
        }
    }

    /// Skips what remains, then goes on with `next`.
    fn skip(&mut self, input: &mut &[u8], next: State) {
        let skipped = input.len().min(self.remaining_bytes as usize);
        *input = input.get(skipped..).unwrap_or_default();
        self.remaining_bytes -= skipped as u32;
        if self.remaining_bytes == 0 {
            self.state = next;
        }
    }

    fn spend(&mut self, bytes: u32) -> Option<()> {
        self.budget_bytes = self.budget_bytes.checked_sub(bytes)?;
        Some(())
    }

    /// One byte of what surrounds the chunks; `None` when it may not stand here.
    fn step(&mut self, byte: u8) -> Option<State> {
        match (self.state, byte) {
            (State::SizeFirst | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.add_digit(byte),
            (State::Size | State::Extension, b'\r') => Some(State::SizeLineFeed),
            (State::Size | State::SizeSpace, b' ' | b'\t') => {
                self.count(CHUNK_LINE_BYTES_MAX, State::SizeSpace)
            }
            (State::Size | State::SizeSpace, b';') => self.count(CHUNK_LINE_BYTES_MAX, State::Extension),
            (State::Extension | State::ExtensionQuoted | State::ExtensionEscaped, _) => self.extend(byte),
            (State::SizeLineFeed, b'\n') => self.begin_chunk(),
            (State::DataReturn, b'\r') => Some(State::DataLineFeed),
            (State::DataLineFeed, b'\n') => Some(State::SizeFirst),
            (State::TrailerStart, b'\r') => Some(State::LastLineFeed),
            (State::Trailer, b'\r') => Some(State::TrailerLineFeed),
            (State::TrailerStart | State::Trailer, _) if is_text(byte) => {
                self.count(TRAILER_BYTES_MAX, State::Trailer)
            }
            (State::TrailerLineFeed, b'\n') => Some(State::TrailerStart),
            (State::LastLineFeed, b'\n') => Some(State::Done),
            _ => None,
        }
    }

    fn count(&mut self, bytes_max: usize, next: State) -> Option<State> {
        self.line_bytes += 1;
        (usize::from(self.line_bytes) <= bytes_max).then_some(next)
    }

    fn add_digit(&mut self, digit: u8) -> Option<State> {
        let digit = char::from(digit).to_digit(16)?;
        self.remaining_bytes = self.remaining_bytes * 16 + digit;
        if u64::from(self.remaining_bytes) > DISCARDED_BODY_BYTES_MAX {
            return None;
        }
        self.count(CHUNK_LINE_BYTES_MAX, State::Size)
    }

    /// A byte of a chunk's extensions, which are recognised only as far as to find their end (section 7.1.1).
    fn extend(&mut self, byte: u8) -> Option<State> {
        let next = match (self.state, byte) {
            (State::ExtensionEscaped, _) => State::ExtensionQuoted,
            (State::ExtensionQuoted, b'\\') => State::ExtensionEscaped,
            (State::ExtensionQuoted, b'"') => State::Extension,
            (State::Extension, b'"') => State::ExtensionQuoted,
            (state, _) => state,
        };
        if is_text(byte) { self.count(CHUNK_LINE_BYTES_MAX, next) } else { None }
    }

    fn begin_chunk(&mut self) -> Option<State> {
        self.line_bytes = 0;
        self.spend(self.remaining_bytes)?;
        Some(if self.remaining_bytes == 0 { State::TrailerStart } else { State::Data })
    }
}

/// Whether a byte may stand in the value of a field.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests;
