//! Connecting to the peers of a simulation: it takes a while, and may be refused, broken off or unanswered.
//!
//! It owns what is known of an attempt before its outcome is reported. It must never touch a peer that is not
//! connected.

use super::faults::Faults;
use super::random::Random;

/// The longest way to a peer and back.
const ROUND_TRIP_MS_MAX: usize = 300;

/// After so many milliseconds without an answer the kernel gives up: tcp_syn_retries(6) of Linux.
const UNANSWERED_MS: u64 = 127_000;

/// When the kernel sends its SYN again, in milliseconds after the first.
const SYN_AGAIN_MS: [u64; 6] = [1_000, 3_000, 7_000, 15_000, 31_000, 63_000];

const ECONNREFUSED: i32 = 111;
const ECONNRESET: i32 = 104;
const ETIMEDOUT: i32 = 110;

/// An attempt to connect, decided when it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    begun_ms: u64,
    /// When the outcome is known.
    pub(super) over_ms: u64,
    /// The outcome: 0 if connected.
    pub(super) errno: i32,
}

impl Attempt {
    /// Decides by chance. Where nobody listens it is refused.
    pub(super) fn new(now_ms: u64, listens: bool, faults: &Faults, random: &mut Random) -> Self {
        let unanswered = random.chance(faults.unanswered);
        let refused = random.chance(faults.refusals);
        let reset = random.chance(faults.resets);
        let round_trip_ms = random.below(ROUND_TRIP_MS_MAX) as u64;
        let (errno, length_ms) = match (listens, unanswered) {
            (true, true) => (ETIMEDOUT, UNANSWERED_MS),
            (false, _) => (ECONNREFUSED, round_trip_ms),
            (true, false) if refused => (ECONNREFUSED, round_trip_ms),
            (true, false) if reset => (ECONNRESET, round_trip_ms),
            (true, false) => (0, round_trip_ms),
        };
        Self { begun_ms: now_ms, over_ms: now_ms + length_ms, errno }
    }

    /// An attempt that is never answered.
    pub(super) fn unanswered(now_ms: u64) -> Self {
        Self { begun_ms: now_ms, over_ms: now_ms + UNANSWERED_MS, errno: ETIMEDOUT }
    }

    /// How often the SYN was sent again until now.
    pub(super) fn retransmitted(&self, now_ms: u64) -> u32 {
        let length_ms = now_ms.min(self.over_ms) - self.begun_ms;
        SYN_AGAIN_MS.iter().filter(|&&at_ms| at_ms < length_ms).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_follows_the_faults_and_the_syns_follow_the_clock() {
        let mut random = Random::new(1);
        let deaf = Faults { unanswered: 1000, ..Faults::NONE };
        let attempt = Attempt::new(50, true, &deaf, &mut random);
        assert_eq!((attempt.errno, attempt.over_ms), (ETIMEDOUT, 50 + UNANSWERED_MS));
        let counts = [50, 1_050, 1_051, 3_051, 1_000_000].map(|now_ms| attempt.retransmitted(now_ms));
        assert_eq!(counts, [0, 0, 1, 2, 6]);
        assert_eq!(Attempt::new(0, false, &deaf, &mut random).errno, ECONNREFUSED);
        let perfect = Attempt::new(0, true, &Faults::NONE, &mut random);
        assert_eq!((perfect.errno, perfect.retransmitted(10_000)), (0, 0));
        let unkind = Faults { refusals: 1000, ..Faults::NONE };
        assert_eq!(Attempt::new(0, true, &unkind, &mut random).errno, ECONNREFUSED);
        let rough = Faults { resets: 1000, ..Faults::NONE };
        assert_eq!(Attempt::new(0, true, &rough, &mut random).errno, ECONNRESET);
    }
}
