//! Messages cut into frames.
//!
//! It must never copy a payload: a frame is a header and a piece of what the caller holds.

use crate::check;
use crate::frame::sum;
use crate::header::{Flags, Header, Kind};
use crate::limits::{FRAGMENTS_MAX, HEADER_BYTES, SUM_BYTES};

/// Where the flags stand in a header.
const FLAGS_PLACE: usize = 1;

/// A message to be sent, but for its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outbound {
    /// DATA, REQUEST, REPLY or ACK.
    pub kind: Kind,
    /// The receiver's address, or all.
    pub destination: u16,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of the message at the sender's port.
    pub message_id: u16,
    /// Whether PRIORITY is set.
    pub priority: bool,
}

/// The frames of one message, in order.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    header: Header,
    rest: &'a [u8],
    piece_bytes: usize,
    trailer_bytes: usize,
    cluster: u8,
    done: bool,
}

/// A frame, in parts that are to be sent one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameOut<'a> {
    /// What it says.
    pub header: Header,
    /// The header's bytes.
    pub head: [u8; HEADER_BYTES],
    /// The bytes of the caller.
    pub payload: &'a [u8],
}

impl<'a> Frames<'a> {
    /// Cuts a payload for frames of at most `mtu` bytes, with a trailer of that length. `None` if it needs
    /// more than 256 fragments.
    pub(crate) fn new(
        source: u16,
        outbound: &Outbound,
        payload: &'a [u8],
        mtu: u16,
        mark: Flags,
        trailer_bytes: usize,
        cluster: u8,
    ) -> Option<Self> {
        let piece_bytes = usize::from(mtu).checked_sub(HEADER_BYTES + trailer_bytes)?;
        if piece_bytes == 0 || payload.len() > piece_bytes * FRAGMENTS_MAX {
            return None;
        }
        let mark = if outbound.priority { mark.with(Flags::PRIORITY) } else { mark };
        let header = Header {
            kind: outbound.kind,
            flags: mark.with(Flags::FIRST),
            source,
            destination: outbound.destination,
            source_port: outbound.source_port,
            destination_port: outbound.destination_port,
            message_id: outbound.message_id,
            length: 0,
            sequence: 0,
        };
        Some(Self { header, rest: payload, piece_bytes, trailer_bytes, cluster, done: false })
    }

    /// Bytes of the trailer of each frame.
    pub(crate) fn trailer_bytes(&self) -> usize {
        self.trailer_bytes
    }

    /// Bytes that go to the receiver in one frame of the link at most.
    pub(crate) fn bytes_max(&self) -> usize {
        HEADER_BYTES + self.piece_bytes + self.trailer_bytes
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = FrameOut<'a>;

    #[inline]
    fn next(&mut self) -> Option<FrameOut<'a>> {
        if self.done {
            return None;
        }
        let (payload, rest) = self.rest.split_at(self.piece_bytes.min(self.rest.len()));
        let mut header = self.header;
        header.length = payload.len() as u16;
        if rest.is_empty() {
            header.flags = header.flags.with(Flags::FINAL);
            self.done = true;
        }
        self.rest = rest;
        self.header.flags = self.header.flags.without(Flags::FIRST);
        self.header.sequence = self.header.sequence.wrapping_add(1);
        Some(FrameOut { header, head: header.encode(self.cluster), payload })
    }
}

impl FrameOut<'_> {
    /// Whether `next` may stand right behind this frame.
    pub(crate) fn may_precede(&self, next: &FrameOut<'_>) -> bool {
        self.header.may_be_joined() && next.header.may_follow(&self.header)
    }

    /// Says in the header that another frame follows. Must come before the frame is written.
    pub(crate) fn tell_of_more(&mut self) {
        if !self.header.flags.has(Flags::MORE) {
            self.header.flags = self.header.flags.with(Flags::MORE);
            self.head[FLAGS_PLACE] |= Flags::MORE.bits();
            self.head[HEADER_BYTES - 1] ^= check::change(FLAGS_PLACE, Flags::MORE.bits());
        }
    }

    /// Header, payload and, where SUM is set, the checksum, behind what stands in `frame`. A frame with AUTH
    /// is written by [`crate::Node::write`].
    pub fn write(&self, frame: &mut Vec<u8>) {
        frame.extend_from_slice(&self.head);
        frame.extend_from_slice(self.payload);
        if self.header.flags.has(Flags::SUM) {
            frame.extend_from_slice(&self.sum());
        }
    }

    /// The checksum of header and payload.
    pub fn sum(&self) -> [u8; SUM_BYTES] {
        sum(&self.head, self.payload)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::Frame;

    const OUTBOUND: Outbound = Outbound {
        kind: Kind::Data,
        destination: 8,
        source_port: 1,
        destination_port: 2,
        message_id: 3,
        priority: false,
    };

    #[test]
    fn a_message_has_at_most_256_fragments() {
        let frames = |bytes: usize| {
            Frames::new(7, &OUTBOUND, &vec![0; bytes], 128, Flags::default(), 0, 0).map(Iterator::count)
        };
        assert_eq!(frames(0), Some(1));
        assert_eq!(frames(112), Some(1));
        assert_eq!(frames(113), Some(2));
        assert_eq!(frames(112 * 256), Some(256));
        assert_eq!(frames(112 * 256 + 1), None);
    }

    proptest! {
        /// Every frame is one that a receiver takes, fits, and all pieces together are the message.
        #[test]
        fn frames_are_right_and_hold_all(
            payload in prop::collection::vec(any::<u8>(), 0..20_000), mtu in 128_u16..2_000, summed: bool,
        ) {
            let (mark, trailer) = if summed { (Flags::SUM, 4) } else { (Flags::default(), 0) };
            let frames = Frames::new(7, &OUTBOUND, &payload, mtu, mark, trailer, 5).unwrap();
            let mut all = Vec::new();
            let mut last = None;
            for frame in frames {
                let mut bytes = Vec::new();
                frame.write(&mut bytes);
                prop_assert!(bytes.len() <= usize::from(mtu));
                let decoded = Frame::decode(&bytes, 5).unwrap();
                prop_assert!(decoded.is_sum_right(5));
                prop_assert_eq!(decoded.header, frame.header);
                all.extend_from_slice(decoded.payload);
                last = Some(decoded.header.flags.has(Flags::FINAL));
            }
            prop_assert_eq!(all, payload);
            prop_assert_eq!(last, Some(true));
        }
    }
}
