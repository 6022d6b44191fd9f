//! What surrounds the data of a chunked body: size lines, extensions, the trailer section.
//!
//! It owns where the next byte stands in RFC 9112, section 7.1. It must never keep a byte or count data:
//! whoever reads the body does that. Order: `step` for each byte; after `SizeRead` either take the data and
//! call `end_data`, or, when the size is nought, call `begin_trailer`.

use super::field::is_token;
use crate::limits::{CHUNK_LINE_BYTES_MAX, TRAILER_BYTES_MAX};

/// A position in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    /// Bytes of the size line or of the trailer section.
    line_bytes: u16,
    position: Position,
    /// Whether it is an answer's that is only read: a line of the trailer section may go on in the next one,
    /// which then begins with white space, and white space may stand behind a size (old servers pad it).
    is_lenient: bool,
}

/// What a byte of a line told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Nothing that concerns the reader.
    Nothing,
    /// Another digit of the chunk's size, as a number below 16.
    Digit(u8),
    /// The size line has ended: so many bytes of data follow.
    SizeRead,
    /// The body has ended.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before the first digit of a chunk's size.
    SizeFirst,
    /// Behind a digit of a chunk's size.
    Size,
    /// White space behind the size: an extension must follow, but in an answer.
    SizeSpace,
    /// Behind a semicolon: a name must follow.
    ExtensionFirst,
    ExtensionName,
    /// White space behind a name: a sign must follow.
    ExtensionSpace,
    /// Behind an equals sign: a value must follow.
    ExtensionEquals,
    ExtensionValue,
    ExtensionQuoted,
    ExtensionEscaped,
    /// Behind a quoted value.
    ExtensionEnd,
    /// White space behind a value: another extension must follow.
    ValueSpace,
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
    /// Before the first chunk of a request, and of an answer that is passed on. A folded line is refused (RFC
    /// 9112, section 5.2).
    pub(super) const STRICT: Self = Self { line_bytes: 0, position: Position::SizeFirst, is_lenient: false };
    /// Before the first chunk of an answer that is only read. A folded line is one line (RFC 9112, section
    /// 5.2).
    pub(super) const LENIENT: Self = Self { is_lenient: true, ..Self::STRICT };

    /// Whether the next bytes are data.
    pub(super) fn in_data(self) -> bool {
        self.position == Position::Data
    }

    /// All data of the chunk was taken.
    pub(super) fn end_data(&mut self) {
        self.position = Position::DataReturn;
    }

    /// The chunk has no data: it was the last.
    pub(super) fn begin_trailer(&mut self) {
        self.position = Position::TrailerFirst;
    }

    /// Takes one byte that is not data; gives `None` when it may not stand here.
    pub(super) fn step(&mut self, byte: u8) -> Option<Sign> {
        let mut sign = Sign::Nothing;
        self.position = match (self.position, byte) {
            (Position::SizeFirst | Position::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                sign = Sign::Digit(char::from(byte).to_digit(16)? as u8);
                self.count(CHUNK_LINE_BYTES_MAX, Position::Size)?
            }
            (
                Position::Size | Position::ExtensionName | Position::ExtensionValue | Position::ExtensionEnd,
                b'\r',
            ) => Position::SizeLineFeed,
            (Position::SizeSpace, b'\r') if self.is_lenient => Position::SizeLineFeed,
            (Position::Size | Position::SizeSpace, b' ' | b'\t') => {
                self.count(CHUNK_LINE_BYTES_MAX, Position::SizeSpace)?
            }
            (Position::Size | Position::SizeSpace, b';') => {
                self.count(CHUNK_LINE_BYTES_MAX, Position::ExtensionFirst)?
            }
            (
                Position::ExtensionFirst
                | Position::ExtensionName
                | Position::ExtensionSpace
                | Position::ExtensionEquals
                | Position::ExtensionValue
                | Position::ExtensionQuoted
                | Position::ExtensionEscaped
                | Position::ExtensionEnd
                | Position::ValueSpace,
                _,
            ) => {
                let next = self.extend(byte)?;
                self.count(CHUNK_LINE_BYTES_MAX, next)?
            }
            (Position::SizeLineFeed, b'\n') => {
                self.line_bytes = 0;
                sign = Sign::SizeRead;
                Position::Data
            }
            (Position::DataReturn, b'\r') => Position::DataLineFeed,
            (Position::DataLineFeed, b'\n') => Position::SizeFirst,
            (Position::TrailerFirst | Position::TrailerNext, b'\r') => Position::LastLineFeed,
            (
                Position::TrailerFirst
                | Position::TrailerNext
                | Position::TrailerName
                | Position::TrailerValue
                | Position::TrailerLineFeed,
                _,
            ) => {
                let next = self.trail(byte)?;
                self.count(TRAILER_BYTES_MAX, next)?
            }
            (Position::LastLineFeed, b'\n') => {
                sign = Sign::End;
                Position::LastLineFeed
            }
            _ => return None,
        };
        Some(sign)
    }

    fn count(&mut self, bytes_max: usize, next: Position) -> Option<Position> {
        self.line_bytes += 1;
        (usize::from(self.line_bytes) <= bytes_max).then_some(next)
    }

    /// A byte of a chunk's extensions: `BWS ";" BWS name [ BWS "=" BWS value ]`, the value a token or quoted
    /// (section 7.1.1). What they say concerns nobody here.
    fn extend(&self, byte: u8) -> Option<Position> {
        match (self.position, byte) {
            (Position::ExtensionEscaped, _) if is_text(byte) => Some(Position::ExtensionQuoted),
            (Position::ExtensionQuoted, b'\\') => Some(Position::ExtensionEscaped),
            (Position::ExtensionQuoted, b'"') => Some(Position::ExtensionEnd),
            (Position::ExtensionQuoted, _) if is_text(byte) => Some(Position::ExtensionQuoted),
            (position @ (Position::ExtensionFirst | Position::ExtensionEquals), b' ' | b'\t') => {
                Some(position)
            }
            (Position::ExtensionFirst | Position::ExtensionName, _) if is_token(byte) => {
                Some(Position::ExtensionName)
            }
            (Position::ExtensionEquals, b'"') => Some(Position::ExtensionQuoted),
            (Position::ExtensionEquals | Position::ExtensionValue, _) if is_token(byte) => {
                Some(Position::ExtensionValue)
            }
            (Position::ExtensionName, b' ' | b'\t') => Some(Position::ExtensionSpace),
            (Position::ExtensionName | Position::ExtensionSpace, b'=') => Some(Position::ExtensionEquals),
            (Position::ExtensionValue | Position::ExtensionEnd, b' ' | b'\t') => Some(Position::ValueSpace),
            (
                Position::ExtensionName
                | Position::ExtensionSpace
                | Position::ExtensionValue
                | Position::ExtensionEnd
                | Position::ValueSpace,
                b';',
            ) => Some(Position::ExtensionFirst),
            (Position::ExtensionSpace | Position::ValueSpace, b' ' | b'\t') => Some(self.position),
            _ => None,
        }
    }

    /// A byte of the trailer section, whose lines are field lines: `field-name ":" OWS field-value OWS`
    /// (sections 7.1.2 and 5). What they say concerns nobody here.
    fn trail(&self, byte: u8) -> Option<Position> {
        match (self.position, byte) {
            (Position::TrailerNext, b' ' | b'\t') if self.is_lenient => Some(Position::TrailerValue),
            (Position::TrailerName, b':') => Some(Position::TrailerValue),
            (Position::TrailerFirst | Position::TrailerNext | Position::TrailerName, _) if is_token(byte) => {
                Some(Position::TrailerName)
            }
            (Position::TrailerValue, b'\r') => Some(Position::TrailerLineFeed),
            (Position::TrailerValue, _) if is_text(byte) => Some(Position::TrailerValue),
            (Position::TrailerLineFeed, b'\n') => Some(Position::TrailerNext),
            _ => None,
        }
    }
}

/// Whether a byte may stand in the value of a field.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
