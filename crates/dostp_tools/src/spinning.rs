//! How a node waits between its turns: looking again and again at what spoke last, or asleep.
//!
//! This file owns when that is worth it. It must never keep the node from its other descriptors for long.

use std::io;

use staunch_dostp::{SPIN_NS, Wait};
use staunch_netio::clock;

use super::service::TURN_COUNT;

/// Looks at what spoke last before all descriptors are asked again.
const LOOKS: u32 = 256;

/// Where messages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// The node's socket.
    Dostp,
    /// The socket of UDP beside it.
    Udp,
}

/// The state of one node.
pub(super) struct Spinning {
    wait: Wait,
    /// The sender heard last. Looking at both would add the time of one to the answers of the other.
    last: Sender,
    last_ns: u64,
}

impl Spinning {
    /// Nothing has come yet.
    pub(super) fn new(wait: Wait) -> Self {
        Self { wait, last: Sender::Dostp, last_ns: 0 }
    }

    /// Notes that `count` messages came from there.
    pub(super) fn heard(&mut self, source: Sender, count: usize) {
        if count > 0 {
            (self.last, self.last_ns) = (source, clock::now_ns());
        }
    }

    /// Whether looking again is worth it.
    pub(super) fn is_on(&self) -> bool {
        match self.wait {
            Wait::Spin => true,
            Wait::Adaptive => clock::now_ns() < self.last_ns + SPIN_NS,
            Wait::Sleep => false,
        }
    }

    /// Looks at what spoke last while that is worth it, a bounded number of times. `take` takes what has come
    /// from there, and says how many messages.
    ///
    /// # Errors
    /// The errors of `take`.
    pub(super) fn spin(&mut self, mut take: impl FnMut(Sender) -> io::Result<usize>) -> io::Result<()> {
        let mut taken = 0;
        for _ in 0..LOOKS {
            if taken >= TURN_COUNT || !self.is_on() {
                return Ok(());
            }
            let count = take(self.last)?;
            self.heard(self.last, count);
            taken += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which sources are looked at where each look finds so many messages.
    fn looked_at(spinning: &mut Spinning, found: usize) -> Vec<Sender> {
        let mut looks = Vec::new();
        let ended = spinning.spin(|source| {
            looks.push(source);
            Ok(found)
        });
        ended.expect("no look fails");
        looks
    }

    #[test]
    fn what_spoke_last_is_looked_at_a_bounded_number_of_times() {
        let mut spinning = Spinning::new(Wait::Spin);
        assert_eq!(looked_at(&mut spinning, 0), [Sender::Dostp; LOOKS as usize]);
        spinning.heard(Sender::Udp, 1);
        spinning.heard(Sender::Dostp, 0);
        assert_eq!(looked_at(&mut spinning, 0), [Sender::Udp; LOOKS as usize]);
        assert_eq!(looked_at(&mut spinning, TURN_COUNT), [Sender::Udp]);
    }

    #[test]
    fn a_node_that_sleeps_looks_at_nothing_again() {
        let mut spinning = Spinning::new(Wait::Sleep);
        spinning.heard(Sender::Dostp, 1);
        assert!(!spinning.is_on() && looked_at(&mut spinning, 0).is_empty());
        // Long after the last message an adaptive one sleeps too.
        assert!(!Spinning::new(Wait::Adaptive).is_on());
    }
}
