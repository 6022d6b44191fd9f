//! The tail of a record about a request that was passed on to an application.
//!
//! This module owns the tail's form. It must never say what a time means: that is for those who measure it.

use staunch_engine::Standing;

/// The numbers before the server's address: tries, three times, and the rank of the standing.
const NUMBERS_COUNT: usize = 5;
/// A time that is not known.
const UNKNOWN: u32 = u32::MAX;

/// The way of a request to an application, as a line may tell it. Times are in milliseconds, and `None`
/// where there was no such moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed<'a> {
    /// The address of the server that was asked last; empty if none was.
    pub(crate) server: &'a [u8],
    /// A second try of the request counts as one more.
    pub(crate) tries: u32,
    /// The standing of the request in line.
    pub(crate) standing: Standing,
    /// All lines together, where it stood in several.
    pub(crate) line_ms: u32,
    /// From its place to the head of the answer.
    pub(crate) header_ms: Option<u32>,
    /// From its place to the end of the answer.
    pub(crate) response_ms: Option<u32>,
}

impl<'a> Passed<'a> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let known = |time_ms: Option<u32>| time_ms.map_or(UNKNOWN, |time_ms| time_ms.min(UNKNOWN - 1));
        let rank = self.standing.rank() as u32;
        let numbers = [self.tries, self.line_ms, known(self.header_ms), known(self.response_ms), rank];
        [numbers.map(u32::to_le_bytes).as_flattened(), self.server].concat()
    }

    /// `None` for what was not passed on.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (numbers, server) = bytes.split_first_chunk::<{ 4 * NUMBERS_COUNT }>()?;
        let (numbers, _) = numbers.as_chunks::<4>();
        let number = |index: usize| numbers.get(index).map_or(UNKNOWN, |bytes| u32::from_le_bytes(*bytes));
        let known = |index| Some(number(index)).filter(|time_ms| *time_ms != UNKNOWN);
        let (tries, line_ms) = (number(0), number(1));
        let standing = *Standing::ALL.get(number(4) as usize)?;
        Some(Self { server, tries, standing, line_ms, header_ms: known(2), response_ms: known(3) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        let refused = Passed {
            server: b"",
            tries: 0,
            standing: Standing::default(),
            line_ms: 0,
            header_ms: None,
            response_ms: None,
        };
        let standing = Standing { is_known: true, ..Standing::default() };
        let whole = Passed { server: b"10.0.0.5:80", tries: 2, standing, line_ms: 7, ..refused };
        let whole = Passed { header_ms: Some(0), response_ms: Some(9), ..whole };
        for passed in [whole, refused] {
            assert_eq!(Passed::decode(&passed.encode()), Some(passed));
        }
        let longest = Passed { header_ms: Some(u32::MAX), ..refused };
        let bytes = longest.encode();
        assert_eq!(Passed::decode(&bytes).and_then(|passed| passed.header_ms), Some(u32::MAX - 1));
        for none in [&b""[..], b"too short"] {
            assert_eq!(Passed::decode(none), None);
        }
    }
}
