//! In time or not at all: each message bears how late it may be.
//!
//! Contract: a message that was held up for longer than its budget is dropped and counted. Nodes' clocks are
//! not compared: how long a message was held up is what it took beyond the quickest message of its sender in
//! the last minute or two. Send these with priority.

use std::collections::HashMap;

use super::{REALTIME, Sender, VERSION};

/// Bytes before the value: kind, version, two zeros, budget in us (4 bytes), the sender's time in us (8).
const HEAD_BYTES: usize = 16;

/// Senders one receiver remembers: as many as there are peers.
const SENDERS_MAX: usize = 4_096;

/// How long the quickest message counts: clocks drift by up to 100 us a second, so not for long.
const MEMORY_US: u64 = 60_000_000;

/// Beyond this no deadline goes: a greater difference is that of a clock that was set, or of a forged stamp.
const APART_US: u64 = 60_000_000;

/// The payload of a message that may be held up for so long.
pub fn stamp(value: &[u8], budget_us: u32, now_us: u64) -> Vec<u8> {
    let mut payload = vec![REALTIME, VERSION, 0, 0];
    payload.extend_from_slice(&budget_us.to_be_bytes());
    payload.extend_from_slice(&now_us.to_be_bytes());
    payload.extend_from_slice(value);
    payload
}

/// The least difference between arrival and stamp of one sender, in this memory and in the one before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quickest {
    least_us: i64,
    former_us: i64,
    since_us: u64,
    heard_us: u64,
}

impl Quickest {
    /// A quickest message that took so long, for a sender of which no other is known.
    pub(crate) fn new(took_us: i64, now_us: u64) -> Self {
        Self { least_us: took_us, former_us: took_us, since_us: now_us, heard_us: now_us }
    }

    /// The time that a message was held up beyond the quickest one.
    pub(crate) fn held_us(&mut self, took_us: i64, now_us: u64) -> u64 {
        let age_us = now_us.saturating_sub(self.since_us);
        let is_apart = took_us.abs_diff(self.least_us.min(self.former_us)) > APART_US;
        if age_us > 2 * MEMORY_US || is_apart {
            *self = Self::new(took_us, now_us);
        } else if age_us > MEMORY_US {
            *self = Self { former_us: self.least_us, ..Self::new(took_us, now_us) };
        }
        self.heard_us = now_us;
        self.least_us = self.least_us.min(took_us);
        // The quickest is not slower than this message, whatever the clocks say.
        took_us.wrapping_sub(self.least_us.min(self.former_us)).cast_unsigned()
    }
}

/// The receiver's time less the sender's.
pub(crate) fn took_us(stamp_us: u64, now_us: u64) -> i64 {
    now_us.wrapping_sub(stamp_us).cast_signed()
}

/// Reads a payload: budget and the sender's time, both in us, and the value. `None` if it is of another kind.
pub fn read(payload: &[u8]) -> Option<(u32, u64, &[u8])> {
    let (head, value) = payload.split_first_chunk::<HEAD_BYTES>()?;
    if head[..2] != [REALTIME, VERSION] {
        return None;
    }
    let budget_us = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    Some((budget_us, u64::from_be_bytes(*head.last_chunk::<8>()?), value))
}

/// A message and how it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealtimeArrival<'a> {
    /// The bytes that were sent.
    pub value: &'a [u8],
    /// The receiver's time less the sender's: how long the message took, if both have one clock.
    pub took_us: i64,
    /// The time that the message took beyond the quickest one of its sender.
    pub held_us: u64,
    /// Whether that is more than its budget.
    pub is_late: bool,
}

/// The receiving side.
#[derive(Debug, Default)]
pub struct Receiver {
    quickest: HashMap<Sender, Quickest>,
    /// Messages that came too late.
    pub late: u64,
}

impl Receiver {
    /// Takes a payload; hands back its value if it is in time.
    pub fn take<'a>(&mut self, from: Sender, payload: &'a [u8], now_us: u64) -> Option<&'a [u8]> {
        let arrival = self.judge(from, payload, now_us)?;
        (!arrival.is_late).then_some(arrival.value)
    }

    /// Takes a payload; says how it came, late or in time. `None` if it is of another kind.
    pub fn judge<'a>(&mut self, from: Sender, payload: &'a [u8], now_us: u64) -> Option<RealtimeArrival<'a>> {
        let (budget_us, stamp_us, value) = read(payload)?;
        let took_us = took_us(stamp_us, now_us);
        if !self.quickest.contains_key(&from) && self.quickest.len() >= SENDERS_MAX {
            // What is held of the one unheard for longest is given up.
            let oldest = self.quickest.iter().min_by_key(|(_, quickest)| quickest.heard_us);
            let oldest = oldest.map(|(sender, _)| *sender)?;
            self.quickest.remove(&oldest);
        }
        let quickest = self.quickest.entry(from).or_insert_with(|| Quickest::new(took_us, now_us));
        let held_us = quickest.held_us(took_us, now_us);
        let is_late = held_us > u64::from(budget_us);
        self.late += u64::from(is_late);
        Some(RealtimeArrival { value, took_us, held_us, is_late })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_held_up_too_long_is_dropped_whatever_the_clocks_say() {
        let mut receiver = Receiver::default();
        // The sender's clock is 1 s ahead, or far behind.
        for ahead_us in [1_000_000_i64, -5_000_000_000] {
            let from = (7, u16::from(ahead_us > 0));
            let mut at = |sent_us: u64, took_us: u64| {
                let stamped = sent_us.wrapping_add_signed(ahead_us);
                receiver.take(from, &stamp(b"x", 500, stamped), sent_us + took_us).is_some()
            };
            assert!(at(6_000_000_000, 100) && at(6_000_000_100, 600));
            assert!(!at(6_000_000_200, 601) && at(6_000_000_300, 50) && !at(6_000_000_400, 551));
        }
        assert_eq!(receiver.late, 4);
        assert_eq!(receiver.take((7, 1), b"short", 0), None);
    }

    #[test]
    fn of_each_message_is_told_how_it_came() {
        let mut receiver = Receiver::default();
        let mut at = |sent_us: u64, took_us: u64| {
            let payload = stamp(b"x", 500, sent_us);
            assert_eq!(read(&payload), Some((500, sent_us, &b"x"[..])));
            let arrival = receiver.judge((7, 1), &payload, sent_us + took_us).expect("of this kind");
            assert_eq!(arrival.value, b"x");
            (arrival.took_us, arrival.held_us, arrival.is_late)
        };
        assert_eq!(
            [at(1_000, 40), at(2_000, 540), at(3_000, 541)],
            [(40, 0, false), (540, 500, false), (541, 501, true)]
        );
        // Whatever stamps strangers write, no difference overflows.
        for stamp_us in [u64::MAX, u64::MAX / 2, 0, 1 << 63] {
            receiver.judge((8, 1), &stamp(b"", u32::MAX, stamp_us), 5);
        }
        assert_eq!((read(&[3, 1]), read(&[2; 40])), (None, None));
    }

    #[test]
    fn a_way_that_became_longer_counts_after_two_memories() {
        let mut receiver = Receiver::default();
        let mut at = |now_us: u64, took_us: u64| {
            receiver.take((7, 1), &stamp(b"", 100, now_us - took_us), now_us).is_some()
        };
        assert!(at(1_000_000, 10) && !at(2_000_000, 500));
        assert!(!at(62_000_000, 500) && at(123_000_000, 500));
    }

    #[test]
    fn after_a_long_silence_the_drift_of_clocks_makes_nothing_late() {
        let mut receiver = Receiver::default();
        let mut at = |now_us: u64, took_us: u64| {
            receiver.take((7, 1), &stamp(b"", 100, now_us - took_us), now_us).is_some()
        };
        // Three hours, in which the clocks came apart by 1 s.
        assert!(at(2_000_000, 10) && at(10_802_000_000, 1_000_010) && at(10_803_000_000, 1_000_110));
        assert!(!at(10_804_000_000, 1_000_111));
    }

    #[test]
    fn a_stamp_of_the_future_or_a_clock_that_stood_still_makes_nothing_late_that_follows() {
        let mut receiver = Receiver::default();
        let mut at =
            |now_us: u64, stamp_us: u64| receiver.take((7, 1), &stamp(b"", 100, stamp_us), now_us).is_some();
        assert!(at(1_000_000_000, 999_999_990));
        assert!(at(1_000_001_000, 9_000_000_000_000) && at(1_000_002_000, 1_000_001_990));
        assert!(!at(1_000_003_000, 1_000_002_000));
        // The sender stood still for 100 s.
        assert!(at(1_000_004_000, 900_003_000) && at(1_000_005_000, 900_004_000));
    }

    #[test]
    fn strangers_take_no_place_of_a_sender_that_speaks() {
        let mut receiver = Receiver::default();
        let mut at = |from: Sender, now_us: u64, took_us: u64| {
            receiver.take(from, &stamp(b"", 100, now_us - took_us), now_us).is_some()
        };
        assert!(at((7, 1), 1_000_000, 10));
        for number in 0..2 * SENDERS_MAX as u16 {
            let now_us = 1_000_001 + u64::from(number);
            assert!(at((8, number), now_us, 10));
            assert!(!at((7, 1), now_us, 500));
        }
    }
}
