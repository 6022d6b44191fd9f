//! The last two seconds of what was counted: how many came since a moment, how many in the last half second.
//!
//! It owns the running totals. It takes any observation: a count no machine can have is taken for none, and
//! a gap makes it forget.

use crate::observation::Observation;
use std::collections::VecDeque;

/// Moments that are kept: at 4 ms or more from one to the next these are at least 2 s, more than any window
/// used.
const MOMENTS_MAX: usize = 512;

/// Nothing closer than this is kept apart, so that a fast tick does not shorten what is remembered.
const APART_NS: u64 = 4_000_000;

/// A longer interval tells nothing of what was in it.
pub(crate) const GAP_NS: u64 = 1_000_000_000;

/// More of anything in one interval is a counter that went back: 10^9 in a second at most.
const PLAUSIBLE_MAX: u64 = 1_000_000_000;

/// Totals since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// When, by the controller's own sum of intervals.
    pub at_ns: u64,
    /// SYN seen, by class.
    pub syn: [u64; 3],
    /// SYN let through, by class.
    pub passed: [u64; 3],
    /// SYN shed.
    pub shed: u64,
    /// Handshakes completed.
    pub established: u64,
    /// Connections that began to wait.
    pub asked: u64,
    /// Connections with which the server began.
    pub begun: u64,
    /// Of these: the server spoke first.
    pub spoken: u64,
    /// How often the server read from connections.
    pub reads: u64,
    /// What the listeners dropped, in earnest or not.
    pub dropped: u64,
}

impl Totals {
    /// All SYN seen.
    pub(crate) fn syn_all(&self) -> u64 {
        self.syn.iter().sum()
    }

    /// All SYN seen in a second.
    pub(crate) fn syn_per_s(&self) -> f64 {
        self.syn_all() as f64 * 1e9 / self.at_ns.max(1) as f64
    }

    /// All SYN let through.
    pub(crate) fn passed_all(&self) -> u64 {
        self.passed.iter().sum()
    }

    fn plus(mut self, o: &Observation, interval_ns: u64) -> Totals {
        let connections = o.connections.unwrap_or_default();
        self.at_ns += interval_ns;
        for class in 0..3 {
            self.syn[class] += plausible(o.syn[class]);
            self.passed[class] += plausible(o.passed[class]);
        }
        self.shed += plausible(o.shed);
        self.established += plausible(connections.established);
        self.asked += plausible(connections.asked);
        self.begun += plausible(connections.begun);
        self.spoken += plausible(connections.spoken);
        self.reads += plausible(connections.reads);
        self.dropped += plausible(o.listen_drops.unwrap_or(0));
        self
    }

    /// What came between `before` and this.
    pub(crate) fn since(&self, before: &Totals) -> Totals {
        Totals {
            at_ns: self.at_ns - before.at_ns,
            syn: std::array::from_fn(|class| self.syn[class] - before.syn[class]),
            passed: std::array::from_fn(|class| self.passed[class] - before.passed[class]),
            shed: self.shed - before.shed,
            established: self.established - before.established,
            asked: self.asked - before.asked,
            begun: self.begun - before.begun,
            spoken: self.spoken - before.spoken,
            reads: self.reads - before.reads,
            dropped: self.dropped - before.dropped,
        }
    }
}

/// The last two seconds.
#[derive(Debug, Default)]
pub(crate) struct History {
    moments: VecDeque<Totals>,
    now: Totals,
    tick: Totals,
}

impl History {
    /// Adds a tick. A gap forgets all before it.
    pub(crate) fn add(&mut self, o: &Observation, interval_ns: u64) {
        let before = self.now;
        self.now = before.plus(o, interval_ns);
        self.tick = self.now.since(&before);
        if interval_ns >= GAP_NS {
            self.moments.clear();
        }
        let apart = self.moments.back().is_none_or(|last| before.at_ns - last.at_ns >= APART_NS);
        if apart && interval_ns < GAP_NS {
            if self.moments.len() == MOMENTS_MAX {
                self.moments.pop_front();
            }
            self.moments.push_back(before);
        }
    }

    /// What came in the last tick.
    pub(crate) fn tick(&self) -> Totals {
        self.tick
    }

    /// What came in the last `window_ns`, rounded up to a moment that is kept; `at_ns` is the time it took.
    pub(crate) fn last(&self, window_ns: u64) -> Totals {
        self.now.since(&self.moment(window_ns).unwrap_or(self.now))
    }

    /// What came since each moment kept that is between so long and so long ago, and since the last before.
    pub(crate) fn since_each(&self, (least_ns, most_ns): (u64, u64)) -> impl Iterator<Item = Totals> {
        let since = self.moments.range(self.place(most_ns)..).map(|moment| self.now.since(moment));
        since.take_while(move |since| since.at_ns >= least_ns)
    }

    /// Connections that began to wait in the last `window_ns`, between two moments by proportion.
    pub(crate) fn asked_in(&self, window_ns: u64) -> f64 {
        let edge = self.now.at_ns.saturating_sub(window_ns);
        let Some(from) = self.moment(window_ns) else { return 0.0 };
        let after = self.moments.partition_point(|moment| moment.at_ns <= edge);
        let until = self.moments.get(after).copied().unwrap_or(self.now);
        let piece = until.since(&from);
        let inside = until.at_ns.saturating_sub(edge.max(from.at_ns)) as f64 / (piece.at_ns.max(1)) as f64;
        self.now.since(&until).asked as f64 + piece.asked as f64 * inside.min(1.0)
    }

    /// The last moment kept that is at least `window_ns` ago, else the oldest.
    fn moment(&self, window_ns: u64) -> Option<Totals> {
        self.moments.get(self.place(window_ns)).copied()
    }

    fn place(&self, window_ns: u64) -> usize {
        let edge = self.now.at_ns.saturating_sub(window_ns);
        self.moments.partition_point(|moment| moment.at_ns <= edge).saturating_sub(1)
    }
}

/// A count, or none when no machine can have counted it.
pub(crate) fn plausible(count: u64) -> u64 {
    if count <= PLAUSIBLE_MAX { count } else { 0 }
}
