//! Which clients are let in when not all can be: the budget's parts for known, verified and unknown sources,
//! and for prefixes.
//!
//! It divides; how much there is to divide is said by others.

use super::history::{History, Totals};
use crate::observation::{KNOWN, UNKNOWN, VERIFIED};

/// What a class asks for is a mean over this: a few ticks.
const DEMAND_NS: f64 = 50_000_000.0;
/// However many known sources come, unknown ones get this share: nobody is shut out for being new.
const UNKNOWN_SHARE: f64 = 1.0 / 16.0;
/// A client that comes again waited a second already, and will not be content with what others find good.
/// While there are fresh clients it gets this, which leaves the 99th percentile of waits to those.
const AGAIN_SHARE: f64 = 0.005;
/// So many may always come at once: browsers open six connections.
const BURST_LEAST: u64 = 8;
/// Those who come again come together: Linux sends again all whose time falls into the same 32 ms (at 250 Hz;
/// kernel/time/timer.c, second level of the wheel). What is left over for them lasts as long.
const REPEAT_NS: f64 = 40_000_000.0;
/// No credits beyond this, whatever is observed: a second of the fastest machine's SYN.
pub(crate) const CREDITS_MAX: u64 = 10_000_000;

/// Prefixes are counted in windows of this length.
pub(crate) const WINDOW_NS: u64 = 100_000_000;
/// With fewer prefixes there is nobody to be fair to.
const PREFIXES_LEAST: u32 = 16;
/// Every prefix may send so many in a window: one page of one browser.
const PREFIX_LEAST: f64 = 8.0;
/// A prefix may have this many times its even part, for most ask for less than theirs.
const TIMES: (f64, f64) = (4.0, 4096.0);
/// What the multiple falls by in a tick while the line is full, and grows by while it is short.
const TIMES_FALL: f64 = 0.97;
const TIMES_RISE: f64 = 1.5;

/// What was asked for, and what is left of parts of credits.
#[derive(Debug)]
pub(crate) struct Shares {
    demand_per_ns: [f64; 3],
    parts: [f64; 3],
    times: f64,
}

impl Default for Shares {
    fn default() -> Shares {
        Shares { demand_per_ns: [0.0; 3], parts: [0.0; 3], times: TIMES.1 }
    }
}

impl Shares {
    /// Takes a tick in.
    pub(crate) fn see(&mut self, tick: &Totals) {
        let interval_ns = tick.at_ns as f64;
        if interval_ns <= 0.0 {
            return;
        }
        for class in 0..3 {
            let sample = tick.syn[class] as f64 / interval_ns;
            let weight = interval_ns / (interval_ns + DEMAND_NS);
            self.demand_per_ns[class] += (sample - self.demand_per_ns[class]) * weight;
        }
    }

    /// Connections by class out of `budget` for all. With proof asked for, those who gave it come before
    /// unknown ones; else after them.
    pub(crate) fn divide(&self, budget: f64, interval_ns: f64, verify: bool) -> [f64; 3] {
        let demand = self.demand_per_ns.map(|rate| rate * interval_ns);
        let again = demand[VERIFIED].min(budget * if verify { UNKNOWN_SHARE } else { AGAIN_SHARE });
        let new = if verify { 0.0 } else { demand[UNKNOWN].min(budget * UNKNOWN_SHARE) };
        let known = demand[KNOWN].min(budget - again - new);
        let left = budget - known;
        let (again, new) = if verify {
            let again = demand[VERIFIED].min(left);
            (again, demand[UNKNOWN].min(left - again))
        } else {
            let new = demand[UNKNOWN].min(left - again);
            (demand[VERIFIED].min(left - new), new)
        };
        let nobody = (left - again - new).max(0.0);
        [known + nobody, again + nobody, new + nobody]
    }

    /// Whole credits for an interval, and how many may be left over of each class.
    pub(crate) fn credits(&mut self, wanted: [f64; 3], interval_ns: f64) -> ([u64; 3], [u64; 3]) {
        let credits = std::array::from_fn(|class| {
            let all = (wanted[class].max(0.0) + self.parts[class]).min(CREDITS_MAX as f64);
            self.parts[class] = all.fract();
            all as u64
        });
        let mut burst = std::array::from_fn(|class| match wanted[class] {
            none if none <= 0.0 => credits[class],
            _ => (2 * credits[class]).max(BURST_LEAST),
        });
        let repeated = wanted[VERIFIED] * REPEAT_NS / interval_ns.max(1.0);
        burst[VERIFIED] = burst[VERIFIED].max(repeated.min(CREDITS_MAX as f64) as u64);
        (credits, burst)
    }

    /// SYN one of `prefixes` may send in a window of `per_second` let in; 0 when there is nobody to be fair
    /// to. The multiple gives way at once when the line gets short, for a server must not idle for fairness.
    pub(crate) fn prefix_limit(
        &mut self,
        prefixes: u32,
        per_second: f64,
        short: bool,
        history: &History,
    ) -> u32 {
        if prefixes < PREFIXES_LEAST {
            self.times = TIMES.1;
            return 0;
        }
        let rises = short && history.tick().shed > 0;
        self.times = (self.times * if rises { TIMES_RISE } else { TIMES_FALL }).clamp(TIMES.0, TIMES.1);
        let even = per_second * WINDOW_NS as f64 / 1e9 / f64::from(prefixes);
        (even * self.times).max(PREFIX_LEAST).min(f64::from(u32::MAX)) as u32
    }

    /// Forgets what was left over: shedding begins.
    pub(crate) fn begin(&mut self) {
        (self.parts, self.times) = ([0.0; 3], TIMES.1);
    }
}
