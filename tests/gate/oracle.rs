//! What a frame is, read once more by other means: whether it may be shed. A frame is what Linux makes of it.
//!
//! It must never share anything with the program.

use crate::trial::PORTS;

/// More tags, and more extension headers, than anybody has a use for.
const TAGS_MAX: usize = 4;
const EXTENSIONS_MAX: usize = 8;

/// What stands behind all wrapping.
enum Inside<'f> {
    /// A segment that is here as a whole, as far as IP says.
    Segment(&'f [u8]),
    /// What of a segment stands in the first part of a packet.
    Part(&'f [u8]),
    /// There is too much of it to be read to its end.
    Wrapped,
}

/// Whether the frame is a SYN without ACK to a protected port, or may hide one.
pub(crate) fn may_be_shed(frame: &[u8]) -> bool {
    let is_to_us = |segment: &[u8]| PORTS.contains(&u16::from_be_bytes([segment[2], segment[3]]));
    let is_syn = |segment: &[u8]| segment[13] & 0x12 == 0x02;
    match inside(frame) {
        None => false,
        Some(Inside::Wrapped) => true,
        Some(Inside::Part(segment)) => {
            segment.len() >= 8 && is_to_us(segment) && (segment.len() < 14 || is_syn(segment))
        }
        Some(Inside::Segment(segment)) => {
            let header_bytes = segment.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
            (20..=segment.len()).contains(&header_bytes) && is_to_us(segment) && is_syn(segment)
        }
    }
}

fn inside(frame: &[u8]) -> Option<Inside<'_>> {
    let mut at = 12;
    let mut tags = 0;
    let (kind, packet) = loop {
        let kind = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        if !matches!(kind, 0x8100 | 0x88a8) {
            break (kind, frame.get(at + 2..)?);
        }
        if tags == TAGS_MAX {
            return Some(Inside::Wrapped);
        }
        (at, tags) = (at + 4, tags + 1);
    };
    match kind {
        0x0800 => behind_ipv4(packet),
        0x86dd => behind_ipv6(packet),
        _ => None,
    }
}

/// The part of a segment between two places of a packet, as far as it is there.
fn part(packet: &[u8], from: usize, until: usize) -> Option<Inside<'_>> {
    packet.get(from..until.min(packet.len())).map(Inside::Part)
}

fn behind_ipv4(packet: &[u8]) -> Option<Inside<'_>> {
    let head = packet.get(..20)?;
    let header_bytes = usize::from(head[0] & 15) * 4;
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let place = u16::from_be_bytes([head[6], head[7]]);
    if head[0] >> 4 != 4 || header_bytes < 20 || head[9] != 6 || place & 0x1fff != 0 {
        return None;
    }
    if place & 0x2000 != 0 {
        return part(packet, header_bytes, length);
    }
    Some(Inside::Segment(packet.get(..length)?.get(header_bytes..)?))
}

fn behind_ipv6(packet: &[u8]) -> Option<Inside<'_>> {
    let head = packet.get(..40)?;
    if head[0] >> 4 != 6 {
        return None;
    }
    let mut next = head[6];
    let length = match usize::from(u16::from_be_bytes([head[4], head[5]])) {
        // Before a header of options for each hop Linux takes no length for "all there is" (RFC 2675, 3).
        0 if next == 0 => packet.len() - 40,
        length => length,
    };
    let mut rest = packet.get(40..40 + length)?;
    let mut is_part = false;
    for _ in 0..EXTENSIONS_MAX {
        if !matches!(next, 0 | 43 | 44 | 60) {
            break;
        }
        let header = rest.get(..8)?;
        let place = u16::from_be_bytes([header[2], header[3]]);
        if next == 44 && place & 0xfff8 != 0 {
            return None;
        }
        let bytes = if next == 44 { 8 } else { (usize::from(header[1]) + 1) * 8 };
        is_part |= next == 44 && place & 1 != 0;
        next = header[0];
        rest = rest.get(bytes..)?;
    }
    match next {
        6 if is_part => Some(Inside::Part(rest)),
        6 => Some(Inside::Segment(rest)),
        0 | 43 | 44 | 60 => Some(Inside::Wrapped),
        _ => None,
    }
}
