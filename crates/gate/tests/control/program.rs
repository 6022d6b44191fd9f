//! The program in the kernel, played: states, credits, prefixes; and what it and the tracker count.

use staunch_gate::observation::{Orders, State};
use std::collections::HashMap;

/// Places for first SYN in a part of the table, how many each holds, and how long a part is written to.
const PLACES: f64 = 2048.0;
const SHARING: u32 = 6;
const PART_S: f64 = 0.067;

/// Credits, and counts since the last tick.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) orders: Orders,
    granted: [u64; 3],
    spent: [u64; 3],
    window: u32,
    prefixes: HashMap<u32, u32>,
    pub(crate) prefixes_before: u32,
    pub(crate) syn: [u64; 3],
    pub(crate) passed: [u64; 3],
    pub(crate) shed: u64,
}

impl Program {
    /// A SYN: does it pass?
    pub(crate) fn judge(&mut self, class: usize, prefix: u32) -> bool {
        self.syn[class] += 1;
        let count = self.prefixes.entry(prefix).or_insert(0);
        *count += 1;
        let unfair = self.orders.prefix_limit > 0 && *count > self.orders.prefix_limit;
        let passes = match self.orders.state {
            State::Open => true,
            State::Shedding if unfair || self.spent[class] >= self.granted[class] => false,
            State::Shedding => {
                self.spent[class] += 1;
                true
            }
        };
        *if passes { &mut self.passed[class] } else { &mut self.shed } += 1;
        passes
    }

    /// New orders: credits are added, and what is left over is bounded.
    pub(crate) fn give(&mut self, orders: Orders) {
        for class in 0..3 {
            let granted = self.granted[class] + orders.credits[class];
            self.granted[class] = granted.min(self.spent[class] + orders.burst[class]);
        }
        if orders.window != self.window {
            self.prefixes_before = self.prefixes.len() as u32;
            self.prefixes.clear();
            self.window = orders.window;
        }
        self.orders = orders;
        (self.syn, self.passed, self.shed) = ([0; 3], [0; 3], 0);
    }
}

/// The share of first SYN that are still remembered after a second when so many a second come from unknown
/// sources: the last six of those that come to a place by chance (Poisson).
pub(crate) fn found_place(per_s: f64) -> f64 {
    let load = (per_s * PART_S / PLACES).max(1e-9);
    let (mut chance, mut more_come, mut kept) = ((-load).exp(), 1.0, 0.0);
    for count in 1..=SHARING {
        more_come -= chance;
        kept += more_come;
        chance *= load / f64::from(count);
    }
    (kept / load).min(1.0)
}
