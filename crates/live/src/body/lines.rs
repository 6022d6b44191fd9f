//! Lines of JSON as they come: a batch, or a feed that never ends.
//!
//! It must never hold more than the line that is half received.

use super::BodyFault;
use super::json::read_json;
use crate::hub::Publication;

/// How long a batch may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinesMax {
    /// Bytes of a line.
    pub line_bytes: usize,
    /// Lines; none for a feed.
    pub lines: Option<usize>,
    /// Bytes of all lines; none for a feed.
    pub bytes: Option<usize>,
}

/// A place in a batch or feed.
#[derive(Debug)]
pub struct LineReader {
    limits: LinesMax,
    half: Vec<u8>,
    lines: u64,
    bytes: usize,
    has_failed: bool,
}

impl LineReader {
    /// Before the first line.
    pub fn new(limits: LinesMax) -> Self {
        Self { limits, half: Vec::new(), lines: 0, bytes: 0, has_failed: false }
    }

    /// Takes a piece of the body, in any split, and gives each line that ends in it: its number, from 1, and
    /// what it says. After a fault nothing more is given; the lines before stand.
    pub fn read(&mut self, mut piece: &[u8], mut line: impl FnMut(u64, Result<Publication, BodyFault>)) {
        while !self.has_failed {
            let end = memchr::memchr(b'\n', piece);
            let part = &piece[..end.unwrap_or(piece.len())];
            if let Err(fault) = self.admit(part.len(), end.is_some()) {
                return self.give(Err(fault), &mut line);
            }
            let Some(end) = end else { return self.half.extend_from_slice(part) };
            piece = &piece[end + 1..];
            let mut half = std::mem::take(&mut self.half);
            match half.is_empty() {
                true => self.end_line(part, &mut line),
                false => {
                    half.extend_from_slice(part);
                    self.end_line(&half, &mut line);
                    half.clear();
                    self.half = half;
                }
            }
        }
    }

    /// The body has ended: what follows the last line end is a line as well.
    pub fn end(&mut self, mut line: impl FnMut(u64, Result<Publication, BodyFault>)) {
        let half = std::mem::take(&mut self.half);
        if !self.has_failed && !half.is_empty() {
            self.end_line(&half, &mut line);
        }
    }

    /// Bytes held of a line that is half received.
    pub fn held_bytes(&self) -> usize {
        self.half.capacity()
    }

    /// Whether so many bytes more of a line, and its end, are within the limits. Of two that are passed the
    /// one that is passed first counts, so that the fault does not depend on how the body was split.
    fn admit(&mut self, part: usize, has_end: bool) -> Result<(), BodyFault> {
        let more = part + usize::from(has_end);
        let room_in_line = self.limits.line_bytes.saturating_sub(self.half.len());
        let room = self.limits.bytes.map_or(usize::MAX, |limit| limit.saturating_sub(self.bytes));
        self.bytes = self.bytes.saturating_add(more);
        match self.limits.bytes {
            Some(limit) if more > room && room <= room_in_line => Err(BodyFault::TooManyBytes(limit)),
            _ if part > room_in_line => Err(BodyFault::LineTooLong(self.limits.line_bytes)),
            Some(limit) if more > room => Err(BodyFault::TooManyBytes(limit)),
            _ => Ok(()),
        }
    }

    fn end_line(&mut self, text: &[u8], line: &mut impl FnMut(u64, Result<Publication, BodyFault>)) {
        self.lines += 1;
        let number = self.lines;
        if text.trim_ascii().is_empty() {
            return;
        }
        if let Some(limit) = self.limits.lines.filter(|limit| number > *limit as u64) {
            self.lines -= 1;
            return self.give(Err(BodyFault::TooManyLines(limit)), line);
        }
        let read = read_json(text, number);
        self.has_failed = read.is_err();
        line(number, read);
    }

    /// A fault in the line that is not complete.
    fn give(
        &mut self,
        fault: Result<Publication, BodyFault>,
        line: &mut impl FnMut(u64, Result<Publication, BodyFault>),
    ) {
        self.has_failed = true;
        line(self.lines + 1, fault);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: LinesMax = LinesMax { line_bytes: 40, lines: Some(4), bytes: Some(120) };

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: LinesMax) -> Vec<String> {
        let (mut reader, mut told) = (LineReader::new(limits), Vec::new());
        let mut tell = |number, line: Result<Publication, BodyFault>| {
            told.push(match line {
                Ok(publication) => format!("{number} {}", publication.topics[0]),
                Err(fault) => format!("{number} {}: {fault}", fault.status()),
            });
        };
        for piece in pieces {
            reader.read(piece, &mut tell);
        }
        reader.end(&mut tell);
        told
    }

    #[test]
    fn lines_before_a_fault_stand() {
        let line = |topic: &str| format!("{{\"topic\":\"{topic}\",\"data\":1}}\n");
        let [a, b] = ["a", "b"].map(line);
        let long = format!("{{\"topic\":\"{}\"}}\n", "x".repeat(40));
        let table = [
            (format!("{a}\r\n\n{b}"), &["1 a", "4 b"][..]),
            (format!("{a}{}", b.trim_end()), &["1 a", "2 b"]),
            (format!("{a}[]\n{b}"), &["1 a", "2 400: line 2, column 1: expected an object"]),
            (format!("{a}{long}{b}"), &["1 a", "2 413: the line is longer than 40 bytes"]),
            (format!("{}\n{a}", " \n".repeat(50)), &["52 413: a batch has at most 120 bytes"]),
            (a.repeat(5), &["1 a", "2 a", "3 a", "4 a", "5 413: a batch has at most 4 lines"]),
            (
                format!("\n{}", "{\"topic\":\"a\"}\n".repeat(5)),
                &["2 a", "3 a", "4 a", "5 413: a batch has at most 4 lines"],
            ),
        ];
        for (body, expected) in table {
            assert_eq!(read([body.as_bytes()], LIMITS), expected, "{body}");
            assert_eq!(read(body.as_bytes().chunks(1), LIMITS), expected, "byte by byte: {body}");
        }
    }

    #[test]
    fn a_feed_has_no_end() {
        let limits = LinesMax { lines: None, bytes: None, ..LIMITS };
        let body = "{\"topic\":\"a\"}\n".repeat(1000);
        assert_eq!(read([body.as_bytes()], limits).len(), 1000);
    }

    proptest! {
        #[test]
        fn any_split_reads_the_same(
            body in "(\\{\"topic\":\"[a-c$]\"\\}[\r]?\n|\n| x\n){0,6}[a-z{]{0,50}",
            cuts in prop::collection::vec(0usize..300, 0..6),
        ) {
            let bytes = body.as_bytes();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let pieces = places.windows(2).map(|two| &bytes[two[0]..two[1]]);
            prop_assert_eq!(read(pieces, LIMITS), read([bytes], LIMITS));
        }
    }
}
