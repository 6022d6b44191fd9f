//! Stamps: the order of updates of one topic, whoever published them.

use super::limits::AHEAD_MS_MAX;

/// An update's place among those of all nodes: the greatest one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// The publisher's time of day, in milliseconds since 1970.
    pub ms: u64,
    /// The publisher's address.
    pub node: u16,
    /// The publisher's own count.
    pub sequence: u32,
}

impl Stamp {
    /// Bytes of a stamp on the wire.
    pub(super) const BYTES: usize = 14;

    /// Whether it is further ahead of a clock than clocks of one LAN differ.
    pub(super) fn is_ahead(self, wall_ms: u64) -> bool {
        self.ms > wall_ms.saturating_add(AHEAD_MS_MAX)
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.ms.to_be_bytes());
        out.extend_from_slice(&self.node.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
    }

    pub(super) fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.ms.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.node.to_be_bytes());
        bytes[10..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }
}
