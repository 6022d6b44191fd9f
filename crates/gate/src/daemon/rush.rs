//! Whether so many come that their frames are better taken many at once: a forged flood, or a large crowd.
//!
//! It must never say so while all come in: to let frames lie delays those who are served.

use crate::layout::Counters;
use crate::observation::{Orders, State};

/// While a crowd is shed from, so many SYN a second are worth it: at 500 us one in each look.
const CROWD_SYN_PER_S: f64 = 2_000.0;
/// Half of it, and it is over.
const OVER: f64 = 0.5;
/// Frames are counted over so much.
const WINDOW_NS: u64 = 100_000_000;

/// How many frames come a second, and whether they are too many.
#[derive(Debug, Default)]
pub(super) struct Rush {
    began_ns: u64,
    before: u64,
    frames_per_s: f64,
    there: bool,
}

impl Rush {
    /// Takes a tick in: what is ordered, and how many SYN come a second.
    pub(super) fn see(&mut self, orders: &Orders, syn_per_s: f64, totals: &Counters, now_ns: u64) {
        let least = CROWD_SYN_PER_S * if self.there { OVER } else { 1.0 };
        self.there = orders.state == State::Shedding && (orders.verify || syn_per_s >= least);
        let passed_ns = now_ns.saturating_sub(self.began_ns);
        if passed_ns >= WINDOW_NS {
            let frames = totals.frames();
            self.frames_per_s = frames.saturating_sub(self.before) as f64 * 1e9 / passed_ns as f64;
            (self.began_ns, self.before) = (now_ns, frames);
        }
    }

    /// Frames of all interfaces in a second, while too many come.
    pub(super) fn frames_per_s(&self) -> Option<f64> {
        self.there.then_some(self.frames_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_shed_from_is_a_rush() {
        let shedding = Orders { state: State::Shedding, ..Orders::default() };
        let flood = Orders { verify: true, ..shedding };
        let mut rush = Rush::default();
        let steps = [
            (Orders::default(), 1e5, None),
            (shedding, 1_900.0, None),
            (shedding, 2_100.0, Some(5_000.0)),
            (shedding, 1_100.0, Some(5_000.0)),
            (shedding, 900.0, None),
            (shedding, 1_900.0, None),
            (flood, 0.0, Some(5_000.0)),
            (Orders::default(), 1e5, None),
        ];
        for (step, (orders, syn_per_s, expected)) in steps.into_iter().enumerate() {
            // 500 frames in each 100 ms.
            let totals = Counters { other: 500 * step as u64, ..Counters::default() };
            rush.see(&orders, syn_per_s, &totals, 1_000_000_000 + WINDOW_NS * step as u64);
            assert_eq!(rush.frames_per_s(), expected, "step {step}");
        }
    }
}
