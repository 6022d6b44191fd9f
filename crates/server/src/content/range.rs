//! Range requests for bytes (RFC 9110, section 14): a field and a length in, ranges out.
//!
//! It must never allocate for a single range, fail, or give a range that is not within the length.

use crate::limits::RANGES_MAX;

/// A range of bytes within a representation; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// Behind the last byte.
    pub end: u64,
}

impl ByteRange {
    /// How many bytes.
    pub fn length_bytes(self) -> u64 {
        self.end - self.start
    }
}

/// What is to be done with a Range field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeAnswer {
    /// Send the whole: the field is no valid range of bytes, asks for too much, or for nothing that could be
    /// named.
    Ignore,
    /// 416: valid, but nothing of it lies within the length.
    Unsatisfiable,
    /// 206 with this part.
    One(ByteRange),
    /// 206 with these parts, at least two, disjoint; in the order asked for unless some had to be joined.
    Many(Vec<ByteRange>),
}

/// Reads a Range field for a representation of `length` bytes. Of nothing there are no parts: some clients
/// ask for a first part of everything, and an empty file is no mistake of theirs, so they get it whole (as
/// from nginx).
pub fn parse(field: &[u8], length: u64) -> RangeAnswer {
    if length == 0 {
        return RangeAnswer::Ignore;
    }
    let Some(set) = range_set(field) else { return RangeAnswer::Ignore };
    let mut elements = set.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|one| !one.is_empty());
    let Some(first) = elements.next() else { return RangeAnswer::Ignore };
    let first = one(first, length);
    match elements.next() {
        None => single(first),
        Some(second) => many(first, one(second, length), elements.map(|next| one(next, length))),
    }
}

/// An element of the list of ranges, held against the length of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    /// Not a range at all: the whole field is void.
    Wrong,
    /// Begins behind the end.
    Outside,
    Within(ByteRange),
}

/// What follows `bytes=`; other units are not known here (RFC 9110, section 14.2).
fn range_set(field: &[u8]) -> Option<&[u8]> {
    let (unit, set) = field.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(set)
}

fn single(element: Element) -> RangeAnswer {
    match element {
        Element::Wrong => RangeAnswer::Ignore,
        Element::Within(range) => RangeAnswer::One(range),
        Element::Outside => RangeAnswer::Unsatisfiable,
    }
}

fn many(first: Element, second: Element, rest: impl Iterator<Item = Element>) -> RangeAnswer {
    let mut ranges = Vec::with_capacity(4);
    for (count, element) in [first, second].into_iter().chain(rest).enumerate() {
        match element {
            _ if count >= RANGES_MAX => return RangeAnswer::Ignore,
            Element::Wrong => return RangeAnswer::Ignore,
            Element::Outside => {}
            Element::Within(range) => ranges.push(range),
        }
    }
    join_if_overlapping(&mut ranges);
    match ranges[..] {
        [] => RangeAnswer::Unsatisfiable,
        [range] => RangeAnswer::One(range),
        _ => RangeAnswer::Many(ranges),
    }
}

/// Overlapping ranges are joined, and then all stand in ascending order (RFC 9110, section
/// 15.3.7.2): a peer gets no byte twice, so no small request can ask for more than the whole.
fn join_if_overlapping(ranges: &mut Vec<ByteRange>) {
    let mut sorted = ranges.clone();
    sorted.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<ByteRange> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    if joined.len() < ranges.len() {
        *ranges = joined;
    }
}

/// `first-last`, `first-` or `-suffix` (RFC 9110, section 14.1.2).
fn one(element: &[u8], length: u64) -> Element {
    let Some(dash) = element.iter().position(|&byte| byte == b'-') else { return Element::Wrong };
    let (first, last) = (&element[..dash], &element[dash + 1..]);
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => Element::Wrong,
        (Some(first), Some(last)) => within(first, last.saturating_add(1).min(length)),
        (Some(first), None) if last.is_empty() => within(first, length),
        (None, Some(suffix)) if first.is_empty() => within(length - suffix.min(length), length),
        _ => Element::Wrong,
    }
}

fn within(start: u64, end: u64) -> Element {
    if start < end { Element::Within(ByteRange { start, end }) } else { Element::Outside }
}

/// A number in digits; one too large to be held is as good as the largest, since no representation is longer.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits
        .iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    Some(value.unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "range/tests.rs"]
mod tests;
