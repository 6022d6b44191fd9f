//! Many to one: each sender's last value.
//!
//! Contract: a value replaces older ones of its sender, whatever order they come in; what is lost is replaced
//! by the next; nothing is repeated. A receiver holds one value a sender, within a bound.

use std::collections::HashMap;

use super::{COLLECT, Sender, VERSION, is_newer};

/// Bytes before the value: kind, version, two zeros, a sequence number of 4 bytes.
const HEAD_BYTES: usize = 8;

/// Senders one receiver remembers: as many as there are peers.
const SENDERS_MAX: usize = 4_096;

/// A sender was silent for so long that its next value is taken whatever its number is: it may have
/// restarted.
const SILENCE_MS: u64 = 10_000;

/// The sending side.
#[derive(Debug, Default)]
pub struct Reporter {
    sequence: u32,
}

impl Reporter {
    /// Begins with this number: a random one.
    pub fn new(sequence: u32) -> Self {
        Self { sequence }
    }

    /// The payload that reports a value.
    pub fn report(&mut self, value: &[u8]) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut payload = vec![COLLECT, VERSION, 0, 0];
        payload.extend_from_slice(&self.sequence.to_be_bytes());
        payload.extend_from_slice(value);
        payload
    }
}

/// A sender's last value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The value itself.
    pub bytes: Vec<u8>,
    /// When it came.
    pub came_ms: u64,
    sequence: u32,
}

/// The receiving side.
#[derive(Debug, Default)]
pub struct Collector {
    values: HashMap<Sender, Value>,
    /// Values that came after a newer one, or had no room.
    pub dropped: u64,
}

impl Collector {
    /// Takes a payload; says whether it was a value newer than the one known.
    pub fn take(&mut self, from: Sender, payload: &[u8], now_ms: u64) -> bool {
        let Some((head, bytes)) = payload.split_first_chunk::<HEAD_BYTES>() else { return false };
        if head[..2] != [COLLECT, VERSION] {
            return false;
        }
        let sequence = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let known = self.values.get(&from);
        let is_old = known
            .is_some_and(|known| !is_newer(sequence, known.sequence) && now_ms < known.came_ms + SILENCE_MS);
        if is_old || (known.is_none() && self.values.len() >= SENDERS_MAX) {
            self.dropped += 1;
            return false;
        }
        self.values.insert(from, Value { bytes: bytes.to_vec(), came_ms: now_ms, sequence });
        true
    }

    /// The last value of a sender.
    pub fn value(&self, from: Sender) -> Option<&Value> {
        self.values.get(&from)
    }

    /// All last values.
    pub fn values(&self) -> impl Iterator<Item = (Sender, &Value)> {
        self.values.iter().map(|(from, value)| (*from, value))
    }

    /// Forgets values that came before that time.
    pub fn forget_before(&mut self, came_ms: u64) {
        self.values.retain(|_, value| value.came_ms >= came_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_counts_whatever_comes_after_it() {
        let mut reporter = Reporter::new(u32::MAX - 1);
        let reports: Vec<Vec<u8>> = [b"a", b"b", b"c"].map(|value| reporter.report(value)).into();
        let mut collector = Collector::default();
        assert!(collector.take((7, 1), &reports[2], 0));
        assert!(!collector.take((7, 1), &reports[0], 1) && !collector.take((7, 1), &reports[2], 1));
        assert!(collector.take((8, 1), &reports[1], 1));
        assert_eq!(collector.value((7, 1)).unwrap().bytes, b"c");
        assert_eq!((collector.values().count(), collector.dropped), (2, 2));
        // After a long silence a sender may have begun anew.
        assert!(collector.take((7, 1), &reports[0], SILENCE_MS));
        collector.forget_before(SILENCE_MS);
        assert_eq!(collector.values().count(), 1);
        assert!(!collector.take((7, 1), b"\x01\x01", 0) && !collector.take((7, 1), b"\x02\x01000000", 0));
    }

    #[test]
    fn senders_are_bounded() {
        let (mut reporter, mut collector) = (Reporter::default(), Collector::default());
        let taken = (0..5_000).filter(|port| collector.take((7, *port), &reporter.report(b""), 0)).count();
        assert_eq!((taken, collector.dropped), (SENDERS_MAX, 904));
    }
}
