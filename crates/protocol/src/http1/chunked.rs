//! What surrounds the data of a chunked body: size lines, extensions, the trailer section.
//!
//! It owns where the next byte stands in RFC 9112, section 7.1. It must never keep a byte or count data:
//! whoever reads the body does that. Order: `step` for each byte; after `SizeRead` either take the data and
//! call `end_data`, or, when the size is nought, call `begin_trailer`.

use super::field::is_token;
use crate::limits::{CHUNK_LINE_BYTES_MAX, TRAILER_BYTES_MAX};

/// A place in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    /// Bytes of the size line or of the trailer section.
    line_bytes: u16,
    place: Place,
    /// Whether a line of the trailer section may go on in the next one, which then begins with white space.
    folds: bool,
}

/// What a byte of a line told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Nothing that concerns the reader.
    Nothing,
    /// One more digit of the chunk's size, as a number below 16.
    Digit(u8),
    /// The size line has ended: so many bytes of data follow.
    SizeRead,
    /// The body has ended.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
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
    /// At the start of the trailer section.
    TrailerFirst,
    /// At the start of a further line of it.
    TrailerNext,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
}

const _: () = assert!(CHUNK_LINE_BYTES_MAX < u16::MAX as usize);
const _: () = assert!(TRAILER_BYTES_MAX < u16::MAX as usize);

impl Lines {
    /// Before the first chunk of a request. A folded line is refused (RFC 9112, section 5.2).
    pub(super) const OF_REQUEST: Self = Self { line_bytes: 0, place: Place::SizeFirst, folds: false };
    /// Before the first chunk of an answer. A folded line is one line (the same section).
    pub(super) const OF_ANSWER: Self = Self { folds: true, ..Self::OF_REQUEST };

    /// Whether the next bytes are data.
    pub(super) fn in_data(self) -> bool {
        self.place == Place::Data
    }

    /// All data of the chunk was taken.
    pub(super) fn end_data(&mut self) {
        self.place = Place::DataReturn;
    }

    /// The chunk has no data: it was the last.
    pub(super) fn begin_trailer(&mut self) {
        self.place = Place::TrailerFirst;
    }

    /// One byte that is not data; `None` when it may not stand here.
    pub(super) fn step(&mut self, byte: u8) -> Option<Sign> {
        let mut sign = Sign::Nothing;
        self.place = match (self.place, byte) {
            (Place::SizeFirst | Place::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                sign = Sign::Digit(char::from(byte).to_digit(16)? as u8);
                self.count(CHUNK_LINE_BYTES_MAX, Place::Size)?
            }
            (Place::Size | Place::Extension, b'\r') => Place::SizeLineFeed,
            (Place::Size | Place::SizeSpace, b' ' | b'\t') => {
                self.count(CHUNK_LINE_BYTES_MAX, Place::SizeSpace)?
            }
            (Place::Size | Place::SizeSpace, b';') => self.count(CHUNK_LINE_BYTES_MAX, Place::Extension)?,
            (Place::Extension | Place::ExtensionQuoted | Place::ExtensionEscaped, _) => self.extend(byte)?,
            (Place::SizeLineFeed, b'\n') => {
                self.line_bytes = 0;
                sign = Sign::SizeRead;
                Place::Data
            }
            (Place::DataReturn, b'\r') => Place::DataLineFeed,
            (Place::DataLineFeed, b'\n') => Place::SizeFirst,
            (Place::TrailerFirst | Place::TrailerNext, b'\r') => Place::LastLineFeed,
            (
                Place::TrailerFirst
                | Place::TrailerNext
                | Place::TrailerName
                | Place::TrailerValue
                | Place::TrailerLineFeed,
                _,
            ) => {
                let next = self.trail(byte)?;
                self.count(TRAILER_BYTES_MAX, next)?
            }
            (Place::LastLineFeed, b'\n') => {
                sign = Sign::End;
                Place::LastLineFeed
            }
            _ => return None,
        };
        Some(sign)
    }

    fn count(&mut self, bytes_max: usize, next: Place) -> Option<Place> {
        self.line_bytes += 1;
        (usize::from(self.line_bytes) <= bytes_max).then_some(next)
    }

    /// A byte of a chunk's extensions, which are recognised only as far as to find their end (section 7.1.1).
    fn extend(&mut self, byte: u8) -> Option<Place> {
        let next = match (self.place, byte) {
            (Place::ExtensionEscaped, _) => Place::ExtensionQuoted,
            (Place::ExtensionQuoted, b'\\') => Place::ExtensionEscaped,
            (Place::ExtensionQuoted, b'"') => Place::Extension,
            (Place::Extension, b'"') => Place::ExtensionQuoted,
            (place, _) => place,
        };
        if is_text(byte) { self.count(CHUNK_LINE_BYTES_MAX, next) } else { None }
    }

    /// A byte of the trailer section, whose lines are field lines: `field-name ":" OWS field-value OWS`
    /// (sections 7.1.2 and 5). What they say concerns nobody here.
    fn trail(&self, byte: u8) -> Option<Place> {
        match (self.place, byte) {
            (Place::TrailerNext, b' ' | b'\t') if self.folds => Some(Place::TrailerValue),
            (Place::TrailerName, b':') => Some(Place::TrailerValue),
            (Place::TrailerFirst | Place::TrailerNext | Place::TrailerName, _) if is_token(byte) => {
                Some(Place::TrailerName)
            }
            (Place::TrailerValue, b'\r') => Some(Place::TrailerLineFeed),
            (Place::TrailerValue, _) if is_text(byte) => Some(Place::TrailerValue),
            (Place::TrailerLineFeed, b'\n') => Some(Place::TrailerNext),
            _ => None,
        }
    }
}

/// Whether a byte may stand in the value of a field.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
