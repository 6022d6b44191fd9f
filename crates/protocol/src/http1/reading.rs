//! A request's body, read for whoever wants it.
//!
//! It owns where the next byte of a body stands, in numbers as wide as a body may be. It must never keep a
//! byte: a piece is lent from the input it came in.

use super::body::Discard;
use super::chunked::{Lines, Sign};
use crate::message::BodyIn;

/// Reads one body.
#[derive(Debug)]
pub(super) struct BodyReader {
    /// Bytes left of the body, or of the chunk (while its size is read: the size so far).
    remaining_bytes: u64,
    /// Bytes taken so far, the lines around the chunks too.
    taken_bytes: u64,
    rest: Rest,
}

#[derive(Debug, Clone, Copy)]
enum Rest {
    Nothing,
    Broken,
    Length,
    Chunked(Lines),
    /// No body at all: whatever comes, until the peer ends.
    Everything,
}

/// What the next bytes of a body are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'i> {
    /// Data of the body, at least one byte.
    Piece(&'i [u8]),
    /// The body has ended.
    End,
    /// The input is used up.
    NeedInput,
    /// The body is not in the chunked coding it is said to have.
    Broken,
}

impl BodyReader {
    /// The body so delimited.
    pub(super) fn new(content: BodyIn) -> Self {
        let (rest, remaining_bytes) = match content {
            BodyIn::None => (Rest::Nothing, 0),
            BodyIn::Length(length_bytes) => (Rest::Length, length_bytes),
            BodyIn::Open => (Rest::Chunked(Lines::STRICT), 0),
        };
        Self { remaining_bytes, taken_bytes: 0, rest }
    }

    /// Everything that comes: the connection does not speak HTTP any more.
    pub(super) fn of_everything() -> Self {
        Self { remaining_bytes: u64::MAX, taken_bytes: 0, rest: Rest::Everything }
    }

    /// Whether what comes has no end but the peer's.
    pub(super) fn is_endless(&self) -> bool {
        matches!(self.rest, Rest::Everything)
    }

    /// How much of the body was taken, everything around its chunks included.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Takes the next bytes of the body from `input`.
    pub(super) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Next<'i> {
        loop {
            match self.rest {
                Rest::Nothing => return Next::End,
                Rest::Broken => return Next::Broken,
                _ if input.is_empty() => return Next::NeedInput,
                Rest::Everything => return Next::Piece(std::mem::take(input)),
                Rest::Length => return Next::Piece(self.take(input, Rest::Nothing)),
                Rest::Chunked(mut lines) if lines.in_data() => {
                    lines.end_data();
                    return Next::Piece(self.take(input, Rest::Chunked(lines)));
                }
                Rest::Chunked(lines) => {
                    let Some((byte, rest)) = input.split_first() else { return Next::NeedInput };
                    *input = rest;
                    self.taken_bytes = self.taken_bytes.saturating_add(1);
                    self.rest = self.step(lines, *byte);
                }
            }
        }
    }

    /// Data up to what remains; if that is all of it, `then` follows.
    fn take<'i>(&mut self, input: &mut &'i [u8], then: Rest) -> &'i [u8] {
        let count = usize::try_from(self.remaining_bytes).unwrap_or(usize::MAX).min(input.len());
        let (piece, rest) = input.split_at(count);
        *input = rest;
        self.remaining_bytes -= count as u64;
        self.taken_bytes = self.taken_bytes.saturating_add(count as u64);
        if self.remaining_bytes == 0 {
            self.rest = then;
        }
        piece
    }

    /// Takes one byte of what surrounds the chunks: size lines and trailer.
    fn step(&mut self, mut lines: Lines, byte: u8) -> Rest {
        match lines.step(byte) {
            None => return Rest::Broken,
            Some(Sign::Nothing) => {}
            Some(Sign::Digit(digit)) => {
                let longer = self.remaining_bytes.checked_mul(16).map(|size| size + u64::from(digit));
                let Some(size_bytes) = longer else { return Rest::Broken };
                self.remaining_bytes = size_bytes;
            }
            Some(Sign::SizeRead) if self.remaining_bytes == 0 => lines.begin_trailer(),
            Some(Sign::SizeRead) => {}
            Some(Sign::End) => return Rest::Nothing,
        }
        Rest::Chunked(lines)
    }

    /// The rest of the body, to be thrown away.
    pub(super) fn into_discard(self) -> Discard {
        match self.rest {
            Rest::Nothing => Discard::NOTHING,
            Rest::Broken | Rest::Everything => Discard::UNREAD,
            Rest::Length => Discard::new(BodyIn::Length(self.remaining_bytes)),
            Rest::Chunked(lines) => Discard::within(lines, self.remaining_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Everything read from pieces, and how it ended.
    fn read(content: BodyIn, pieces: &[&[u8]]) -> (Vec<u8>, &'static str, usize) {
        let mut reader = BodyReader::new(content);
        let (mut body, mut used_bytes) = (Vec::new(), 0);
        for piece in pieces {
            let mut input = *piece;
            loop {
                match reader.next(&mut input) {
                    Next::Piece(bytes) => body.extend_from_slice(bytes),
                    Next::NeedInput => break,
                    Next::End => return (body, "end", used_bytes + piece.len() - input.len()),
                    Next::Broken => return (body, "broken", 0),
                }
            }
            used_bytes += piece.len();
        }
        (body, "more", used_bytes)
    }

    #[test]
    fn bodies_of_every_kind() {
        assert_eq!(read(BodyIn::None, &[b"next"]), (vec![], "end", 0));
        assert_eq!(read(BodyIn::Length(3), &[b"ab", b"cd"]), (b"abc".to_vec(), "end", 3));
        assert_eq!(read(BodyIn::Open, &[b"3;x\r\nabc\r\n1\r\nd\r\n0\r\nA: b\r\n\r\nGET"]).0, b"abcd");
        assert_eq!(read(BodyIn::Open, &[b"3\r\nabcd"]).1, "broken");
        assert_eq!(read(BodyIn::Open, &[b"ffffffffffffffff\r\na"]).1, "more");
        assert_eq!(read(BodyIn::Open, &[b"10000000000000000\r\na"]).1, "broken");
    }

    proptest! {
        #[test]
        fn every_split_reads_the_same(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            cuts in prop::collection::vec(0usize..400, 0..6),
        ) {
            let mut wire = Vec::new();
            for chunk in &chunks {
                wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(&[chunk, &b"\r\n"[..]].concat());
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let length = wire.len();
            wire.extend_from_slice(b"GET /");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % wire.len()).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([wire.len()]) {
                pieces.push(&wire[from..cut]);
                from = cut;
            }
            prop_assert_eq!(read(BodyIn::Open, &pieces), (chunks.concat(), "end", length));
        }
    }
}
