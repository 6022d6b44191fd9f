//! What a frame is, read once more by other means: whether it may be shed.
//!
//! It must never share anything with the program.

use crate::trial::PORTS;

/// Whether the frame is a whole SYN without ACK to a protected port.
pub(crate) fn may_be_shed(frame: &[u8]) -> bool {
    segment(frame).is_some_and(|segment| {
        let port = u16::from_be_bytes([segment[2], segment[3]]);
        PORTS.contains(&port) && segment[13] & 0x12 == 0x02
    })
}

/// The segment of a frame that is whole: all of its header, inside what IP says.
fn segment(frame: &[u8]) -> Option<&[u8]> {
    let mut at = 12;
    let mut tags = 0;
    let (kind, packet) = loop {
        let kind = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        if !matches!(kind, 0x8100 | 0x88a8) || tags == 2 {
            break (kind, frame.get(at + 2..)?);
        }
        (at, tags) = (at + 4, tags + 1);
    };
    let segment = match kind {
        0x0800 => behind_ipv4(packet)?,
        0x86dd => behind_ipv6(packet)?,
        _ => return None,
    };
    let header_bytes = usize::from(segment.get(12)? >> 4) * 4;
    (header_bytes >= 20 && header_bytes <= segment.len()).then_some(segment)
}

fn behind_ipv4(packet: &[u8]) -> Option<&[u8]> {
    let head = packet.get(..20)?;
    let header_bytes = usize::from(head[0] & 15) * 4;
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let is_part = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
    if head[0] >> 4 != 4 || header_bytes < 20 || head[9] != 6 || is_part {
        return None;
    }
    packet.get(..length)?.get(header_bytes..)
}

fn behind_ipv6(packet: &[u8]) -> Option<&[u8]> {
    let head = packet.get(..40)?;
    if head[0] >> 4 != 6 {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
    let mut rest = packet.get(40..40 + length)?;
    let mut next = head[6];
    for _ in 0..4 {
        if !matches!(next, 0 | 43 | 60) {
            break;
        }
        next = *rest.first()?;
        rest = rest.get((usize::from(*rest.get(1)?) + 1) * 8..)?;
    }
    (next == 6).then_some(rest)
}
