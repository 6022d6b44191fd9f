//! Whether so many come that their frames are better taken many at once: a forged flood, a large crowd, or
//! more than the server can do at once, who then wait longer than their frames.
//!
//! To let frames lie delays those who are served, so it must never say so where nobody is shed and nobody
//! waited in the last minute. What counts is who was seen to wait: how long a newcomer would, by the line and
//! the rate, is too much for a server that has nothing to do, for its rate is then what it is asked for.

use super::whole::Whole;
use crate::layout::Counters;

/// While a crowd is shed from, so many SYN a second are worth it: at 500 us one in each look.
const CROWD_SYN_PER_S: f64 = 2_000.0;
/// Where a line stands, so many frames a second: two in each look.
const LINE_FRAMES_PER_S: f64 = 4_000.0;
/// Half of it, and it is over.
const OVER: f64 = 0.5;
/// A line is where the server begins, in a tick, only with those who waited so long, in seconds: ten times as
/// long as frames wait then, unless `--coalescing` says otherwise.
const WAIT_S: f64 = 0.005;
/// A client that waited is a sign that others will: so long after the last of them the settings stay.
const STANDS_NS: u64 = 60_000_000_000;
/// Frames are counted over so much.
const WINDOW_NS: u64 = 100_000_000;

/// How many frames come a second, and whether they are too many.
#[derive(Debug, Default)]
pub(super) struct Rush {
    began_ns: u64,
    before: u64,
    frames_per_s: f64,
    /// When somebody waited last.
    waited_ns: Option<u64>,
    there: bool,
}

impl Rush {
    /// Takes a tick in: what is decided, and how many come and how long they wait.
    pub(super) fn see(&mut self, whole: &Whole, totals: &Counters, now_ns: u64) {
        let estimate = &whole.estimate;
        let passed_ns = now_ns.saturating_sub(self.began_ns);
        if passed_ns >= WINDOW_NS {
            let frames = totals.frames();
            self.frames_per_s = frames.saturating_sub(self.before) as f64 * 1e9 / passed_ns as f64;
            (self.began_ns, self.before) = (now_ns, frames);
        }
        if estimate.waited_s >= WAIT_S {
            self.waited_ns = Some(now_ns);
        }
        let share = if self.there { OVER } else { 1.0 };
        let stands = self.waited_ns.is_some_and(|waited_ns| now_ns - waited_ns < STANDS_NS);
        let crowd = whole.verify || estimate.syn_per_s >= share * CROWD_SYN_PER_S;
        let line = stands && self.frames_per_s >= share * LINE_FRAMES_PER_S;
        self.there = line || (whole.sheds && crowd);
    }

    /// Frames of all interfaces in a second, while too many come.
    pub(super) fn frames_per_s(&self) -> Option<f64> {
        self.there.then_some(self.frames_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Estimate;

    #[test]
    fn only_a_crowd_or_a_line_is_a_rush() {
        let (open, shedding) = (Whole::default(), Whole { sheds: true, ..Whole::default() });
        let flood = Whole { verify: true, ..shedding };
        // What is ordered, SYN a second, how long they waited in ms, frames in 100 ms, and what is said.
        let steps = [
            (open, 1e5, 4.9, 900, None),
            (shedding, 1_900.0, 0.0, 100, None),
            (shedding, 2_100.0, 0.0, 100, Some(1_000.0)),
            (shedding, 1_100.0, 0.0, 100, Some(1_000.0)),
            (shedding, 900.0, 0.0, 100, None),
            (shedding, 1_900.0, 0.0, 100, None),
            (flood, 0.0, 0.0, 100, Some(1_000.0)),
            (open, 1e5, 0.0, 900, None),
            (open, 1_000.0, 5.0, 390, None),
            (open, 1_000.0, 0.0, 410, Some(4_100.0)),
            (open, 1_000.0, 0.0, 210, Some(2_100.0)),
            (open, 1_000.0, 0.0, 190, None),
            (open, 1_000.0, 0.0, 410, Some(4_100.0)),
        ];
        let mut rush = Rush::default();
        let (mut now_ns, mut totals) = (1_000_000_000, Counters::default());
        let mut see = |whole: &Whole, syn_per_s, waited_ms: f64, frames: u64| {
            (now_ns, totals.other) = (now_ns + WINDOW_NS, totals.other + frames);
            let waited_s = waited_ms / 1e3;
            let estimate = Estimate { syn_per_s, waited_s, wait_s: 1.0, ..Estimate::default() };
            rush.see(&Whole { estimate, ..*whole }, &totals, now_ns);
            rush.frames_per_s()
        };
        see(&shedding, 0.0, 0.0, 0);
        for (step, (whole, syn_per_s, waited_ms, frames, expected)) in steps.into_iter().enumerate() {
            assert_eq!(see(&whole, syn_per_s, waited_ms, frames), expected, "step {step}");
        }
        // A minute after somebody waited it is over.
        let lasts = (0..999).take_while(|_| see(&open, 1_000.0, 0.0, 410).is_some()).count();
        assert_eq!(lasts, 595);
    }
}
