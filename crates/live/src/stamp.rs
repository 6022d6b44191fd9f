//! Stamps: the order of a topic's updates among nodes that publish to it each.
//!
//! It must never read a clock.

/// How far the clock of another node may be ahead: an own update goes beyond its stamps up to there.
const AHEAD_MS_MAX: u64 = 60_000;

/// An update's place among those of its topic on all nodes: the greatest one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpdateStamp {
    /// The publisher's time of day, in milliseconds since 1970; 0 of an update that was kept without one.
    pub ms: u64,
    /// The node that was published at.
    pub node: u16,
    /// That node's own count.
    pub sequence: u32,
}

impl UpdateStamp {
    /// The stamp of an update that is published now at a node, behind the last one of its topics. Of many in
    /// a millisecond the number tells the order: stamps do not run ahead of the clock. It is the time of day
    /// where the last one is further ahead than clocks may be: the own clock went back.
    pub(crate) fn of_own(now_ms: u64, last: Option<Self>, node: u16, number: u64) -> Self {
        let at = |ms| Self { ms, node, sequence: number as u32 };
        let Some(last) = last.filter(|last| last.ms >= now_ms) else { return at(now_ms) };
        let behind = if at(last.ms) > last { at(last.ms) } else { at(last.ms.saturating_add(1)) };
        if behind.is_ahead(now_ms) { at(now_ms) } else { behind }
    }

    /// Whether it is further ahead than clocks may be: the clock of its node was wrong, or the own one is.
    pub(crate) fn is_ahead(self, now_ms: u64) -> bool {
        self.ms > now_ms.saturating_add(AHEAD_MS_MAX)
    }

    /// How old it is at least, whatever clocks say that differ no more than they may.
    pub(crate) fn age_ms(self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.ms).saturating_sub(AHEAD_MS_MAX)
    }

    /// The stamp as bytes.
    pub(crate) fn to_bytes(self) -> [u8; 14] {
        let mut bytes = [0; 14];
        bytes[..8].copy_from_slice(&self.ms.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.node.to_le_bytes());
        bytes[10..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }

    /// A stamp from its bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (ms, rest) = bytes.split_first_chunk()?;
        let (node, rest) = rest.split_first_chunk()?;
        let sequence = u32::from_le_bytes(rest.try_into().ok()?);
        Some(Self { ms: u64::from_le_bytes(*ms), node: u16::from_le_bytes(*node), sequence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_update_is_behind_the_last_one_within_the_bound() {
        let last = |ms| Some(UpdateStamp { ms, node: 9, sequence: 9 });
        let ms = |now_ms, last| UpdateStamp::of_own(now_ms, last, 1, 2).ms;
        assert_eq!((ms(100, None), ms(100, last(50)), ms(100, last(100))), (100, 100, 101));
        assert_eq!(
            (ms(100, last(60_099)), ms(100, last(60_100)), ms(100, last(u64::MAX))),
            (60_100, 100, 100)
        );
        let stamp = last(100_000).unwrap();
        assert!(stamp.is_ahead(39_999) && !stamp.is_ahead(40_000) && !stamp.is_ahead(u64::MAX));
        assert_eq!((stamp.age_ms(0), stamp.age_ms(160_000), stamp.age_ms(160_007)), (0, 0, 7));
        let stamp = UpdateStamp::of_own(u64::MAX, last(u64::MAX), 1, 2);
        assert_eq!(UpdateStamp::of_bytes(&stamp.to_bytes()), Some(stamp));
        assert_eq!(UpdateStamp::of_bytes(&[0; 13]), None);
    }
}
