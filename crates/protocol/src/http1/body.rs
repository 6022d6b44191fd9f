//! Request bodies, read only to be thrown away.
//!
//! It owns how much is worth reading. It must never keep a byte: its state is a few numbers, so the bytes may
//! come in any pieces.

use super::chunked::{Lines, Sign};
use super::response::Refusal;
use crate::limits::DISCARDED_BODY_BYTES_MAX;
use crate::message::BodyIn;

/// How far a body was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All of it: what follows is the next request.
    Done,
    /// The input is used up.
    NeedInput,
    /// The body is longer than worth reading: no request can follow.
    Lost,
    /// The body is not in the chunked coding it is said to have: no request can follow.
    Broken,
}

/// Discards one body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Discard {
    /// Bytes left of the body, or of the chunk (while its size is read: the size so far).
    remaining_bytes: u32,
    /// Bytes taken so far, the lines around the chunks too: so a body of many tiny chunks with long
    /// extensions is no cheaper way to keep a server reading.
    taken_bytes: u32,
    rest: Rest,
}

/// What is left of the body.
#[derive(Debug, Clone, Copy)]
enum Rest {
    Nothing,
    Lost,
    Withheld,
    Broken,
    /// Of known length.
    Length,
    Chunked(Lines),
}

const _: () =
    assert!(DISCARDED_BODY_BYTES_MAX <= u32::MAX as u64 >> 4, "a chunk's size is compared at each digit");

impl Discard {
    /// Nothing to discard.
    pub(super) const NOTHING: Self = Self::at(Rest::Nothing, 0);
    /// A body that will not be read.
    pub(super) const UNREAD: Self = Self::at(Rest::Lost, 0);
    /// A body that the peer withholds until 100 is sent, and that will not be read unless it is.
    pub(super) const WITHHELD: Self = Self::at(Rest::Withheld, 0);

    const fn at(rest: Rest, remaining_bytes: u32) -> Self {
        Self { remaining_bytes, taken_bytes: 0, rest }
    }

    /// The body so delimited.
    #[inline]
    pub(super) fn new(framing: BodyIn) -> Self {
        match framing {
            BodyIn::None => Self::NOTHING,
            BodyIn::Length(length_bytes) if length_bytes > DISCARDED_BODY_BYTES_MAX => Self::UNREAD,
            BodyIn::Length(length_bytes) => Self::at(Rest::Length, length_bytes as u32),
            BodyIn::Open => Self::at(Rest::Chunked(Lines::STRICT), 0),
        }
    }

    /// Whether it is known already that no request can follow.
    #[inline]
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.rest, Rest::Lost | Rest::Withheld)
    }

    /// Whether the peer waits for 100 before it sends the body.
    #[inline]
    pub(super) fn is_withheld(&self) -> bool {
        matches!(self.rest, Rest::Withheld)
    }

    /// The rest of a chunked body of which so much is left of the present chunk.
    pub(super) fn within(lines: Lines, remaining_bytes: u64) -> Self {
        match u32::try_from(remaining_bytes) {
            Ok(remaining) if remaining_bytes <= DISCARDED_BODY_BYTES_MAX => {
                Self::at(Rest::Chunked(lines), remaining)
            }
            _ => Self::UNREAD,
        }
    }

    /// How much of the body was taken, everything around its chunks included.
    pub(super) fn taken_bytes(&self) -> u32 {
        self.taken_bytes
    }

    /// Takes from `input` what belongs to the body.
    #[inline]
    pub(super) fn advance(&mut self, input: &mut &[u8]) -> Progress {
        if matches!(self.rest, Rest::Nothing) {
            return Progress::Done;
        }
        self.advance_body(input)
    }

    fn advance_body(&mut self, input: &mut &[u8]) -> Progress {
        loop {
            let next = match self.rest {
                Rest::Nothing => return Progress::Done,
                Rest::Lost | Rest::Withheld => return Progress::Lost,
                Rest::Broken => return Progress::Broken,
                _ if input.is_empty() => return Progress::NeedInput,
                Rest::Length => self.skip(input).then_some(Rest::Nothing),
                Rest::Chunked(mut lines) if lines.in_data() => self.skip(input).then(|| {
                    lines.end_data();
                    Rest::Chunked(lines)
                }),
                Rest::Chunked(lines) => {
                    let Some((byte, rest)) = input.split_first() else { return Progress::NeedInput };
                    *input = rest;
                    self.taken_bytes += 1;
                    Some(if self.allows(0) { self.step(lines, *byte) } else { Rest::Lost })
                }
            };
            self.rest = next.unwrap_or(self.rest);
        }
    }

    /// Skips what remains; whether that was all of it.
    fn skip(&mut self, input: &mut &[u8]) -> bool {
        let skipped = input.len().min(self.remaining_bytes as usize);
        *input = input.get(skipped..).unwrap_or_default();
        self.remaining_bytes -= skipped as u32;
        self.taken_bytes += skipped as u32;
        self.remaining_bytes == 0
    }

    /// Whether so many more bytes are worth reading.
    fn allows(&self, bytes: u32) -> bool {
        u64::from(self.taken_bytes) + u64::from(bytes) <= DISCARDED_BODY_BYTES_MAX
    }

    /// Takes one byte of what surrounds the chunks: size lines and trailer.
    fn step(&mut self, mut lines: Lines, byte: u8) -> Rest {
        match lines.step(byte) {
            None => return Rest::Broken,
            Some(Sign::Nothing) => {}
            Some(Sign::Digit(digit)) => {
                self.remaining_bytes = self.remaining_bytes * 16 + u32::from(digit);
                if u64::from(self.remaining_bytes) > DISCARDED_BODY_BYTES_MAX {
                    return Rest::Lost;
                }
            }
            Some(Sign::SizeRead) if !self.allows(self.remaining_bytes) => return Rest::Lost,
            Some(Sign::SizeRead) if self.remaining_bytes == 0 => lines.begin_trailer(),
            Some(Sign::SizeRead) => {}
            Some(Sign::End) => return Rest::Nothing,
        }
        Rest::Chunked(lines)
    }
}

/// What a body gets that is not what its fields say.
pub(super) const BROKEN_BODY: Refusal =
    Refusal::bad("the body is not in the chunked coding it is said to have");

/// Whether what came of a chunked body is sound. It is read once more when it is thrown away.
#[cold]
#[inline(never)]
pub(super) fn check_chunked(mut bytes: &[u8]) -> Result<(), Refusal> {
    match Discard::new(BodyIn::Open).advance(&mut bytes) {
        Progress::Broken => Err(BROKEN_BODY),
        Progress::Done | Progress::NeedInput | Progress::Lost => Ok(()),
    }
}

#[cfg(test)]
mod tests;
