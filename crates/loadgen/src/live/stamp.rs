//! The mark in each published value, by which readers tell whose it is, which it is, and when it was meant to
//! be published.
//!
//! It owns the mark's form. It must never hold a character that JSON, a form or a URL would escape: the mark
//! has to be found in whatever envelope a server makes around a value.

use memchr::memmem;

/// What a mark begins with.
const BEGIN: &[u8] = b"sl1.";

/// Digits of the run's number.
const RUN_DIGITS: usize = 8;

/// The longest mark: its begin, the run, two numbers of 20 digits, three points.
pub const STAMP_BYTES_MAX: usize = BEGIN.len() + RUN_DIGITS + 2 * 20 + 3;

/// A mark: `sl1.RUN.NUMBER.TIME.`, the run in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Which run of a generator published it.
    pub(crate) run: u32,
    /// Its number in its topic, from 1.
    pub(crate) number: u64,
    /// When it was meant to be published, in nanoseconds since 1970.
    pub(crate) meant_ns: u64,
}

impl Stamp {
    /// Appends the mark, and fills up to a length in bytes.
    pub(crate) fn append(self, length_bytes: usize, output: &mut Vec<u8>) {
        let end = output.len() + length_bytes;
        let Self { run, number, meant_ns } = self;
        output.extend_from_slice(format!("sl1.{run:08x}.{number}.{meant_ns}.").as_bytes());
        output.resize(end.max(output.len()), b'x');
    }

    /// Finds the first mark.
    pub(crate) fn find(text: &[u8]) -> Option<Self> {
        let mut rest = text;
        loop {
            let at = memmem::find(rest, BEGIN)?;
            rest = &rest[at + BEGIN.len()..];
            if let Some(stamp) = Self::read(rest) {
                return Some(stamp);
            }
        }
    }

    /// Reads what stands behind the begin of a mark.
    fn read(text: &[u8]) -> Option<Self> {
        let (run, rest) = text.split_at_checked(RUN_DIGITS)?;
        let run = u32::from_str_radix(std::str::from_utf8(run).ok()?, 16).ok()?;
        let (number, rest) = digits(rest.strip_prefix(b".")?)?;
        let (meant_ns, _) = digits(rest)?;
        Some(Self { run, number, meant_ns })
    }
}

/// A number, and what stands behind the point that ends it.
fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = memchr::memchr(b'.', text.get(..21).unwrap_or(text))?;
    let (number, rest) = text.split_at(end);
    if !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, &rest[1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mark_fills_the_value() {
        let stamp = Stamp { run: 0xab, number: 7, meant_ns: 12 };
        let mut value = b"<".to_vec();
        stamp.append(30, &mut value);
        assert_eq!(value, b"<sl1.000000ab.7.12.xxxxxxxxxxxx");
        value.clear();
        stamp.append(3, &mut value);
        assert_eq!(value, b"sl1.000000ab.7.12.");
        value.clear();
        Stamp { run: u32::MAX, number: u64::MAX, meant_ns: u64::MAX }.append(0, &mut value);
        assert_eq!(value.len(), STAMP_BYTES_MAX);
    }

    #[test]
    fn what_is_no_mark_is_passed_over() {
        for text in [
            &b""[..],
            b"sl1.",
            b"sl1.000000ab",
            b"sl1.000000ab.7",
            b"sl1.000000ab.7.12",
            b"sl1.000000ag.7.12.",
            b"sl1.000000ab.-7.12.",
            b"sl1.000000ab..12.",
            b"sl1.000000ab.7.99999999999999999999.",
        ] {
            assert_eq!(Stamp::find(text), None, "{}", text.escape_ascii());
            let mut behind = text.to_vec();
            behind.extend_from_slice(b" sl1.000000ab.7.12.");
            let number = Stamp::find(&behind).map(|stamp| stamp.number);
            assert_eq!(number, Some(7), "behind {}", text.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_found(
            run: u32, number: u64, meant_ns: u64, length in 0usize..300, before in "[ -~]{0,30}",
        ) {
            prop_assume!(!before.contains("sl1."));
            let stamp = Stamp { run, number, meant_ns };
            let mut text = before.into_bytes();
            stamp.append(length, &mut text);
            text.extend_from_slice(b"\"}");
            prop_assert_eq!(Stamp::find(&text), Some(stamp));
        }
    }
}
