//! What is told of one port: its state since when and why, its hint, its last second.
//!
//! It owns what was said. It must never say it: that is for the teller of all.

use super::figures::{self, Second};
use super::words::{hint_text, state_word};
use crate::controller::{Change, Decision, Hint};
use crate::layout::Counters;
use crate::observation::{Observation, State};
use crate::snapshot::{PortFigures, QueueFigures};

const SECOND_NS: u64 = 1_000_000_000;
/// The controller gives a hint again and again while it holds, with a pause of a minute; a second later it
/// does not hold any more.
const HINT_NS: u64 = 61 * SECOND_NS;

/// The figures of a port that are given out now, and those that were last.
pub(super) struct PortTeller {
    fixed: PortFigures,
    changed_ns: u64,
    /// SYN shed until then.
    shed: u64,
    hinted_ns: u64,
    listen_drops: u64,
    second: Second,
}

impl PortTeller {
    pub(super) fn new(port: u16, now_ns: u64) -> Self {
        let fixed = PortFigures { port, state: state_word(State::Open).to_owned(), ..PortFigures::default() };
        Self {
            fixed,
            changed_ns: now_ns,
            shed: 0,
            hinted_ns: now_ns,
            listen_drops: 0,
            second: Second::new(now_ns),
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.fixed.port
    }

    /// What it is until a tick was seen.
    pub(super) fn fixed(&self) -> &PortFigures {
        &self.fixed
    }

    /// Takes a tick in.
    pub(super) fn see(&mut self, now_ns: u64, seen: &Observation, counters: &Counters) {
        self.listen_drops += seen.listen_drops.unwrap_or(0);
        self.second.see(now_ns, counters);
    }

    /// What is to be said of a change, without what a dry run adds.
    pub(super) fn changed(&mut self, now_ns: u64, change: &Change, shed: u64) -> String {
        let (from, to) = (state_word(change.from), state_word(change.to));
        let after = (now_ns - self.changed_ns) as f64 / SECOND_NS as f64;
        let meanwhile = match change.from {
            State::Open => String::new(),
            State::Shedding => format!(" and {} SYN shed", shed.saturating_sub(self.shed)),
        };
        (self.changed_ns, self.shed) = (now_ns, shed);
        self.fixed.changes += 1;
        self.fixed.state = to.to_owned();
        self.fixed.reason = Some(change.reason.clone());
        format!("{from} -> {to} after {after:.1} s{meanwhile}: {}", change.reason)
    }

    /// What is to be said of a hint, or nothing.
    pub(super) fn hinted(&mut self, now_ns: u64, hint: Option<Hint>) -> Option<String> {
        if let Some(hint) = hint {
            self.fixed.hint = Some(hint_text(hint));
            self.hinted_ns = now_ns;
            return self.fixed.hint.clone();
        }
        if now_ns > self.hinted_ns + HINT_NS {
            self.fixed.hint = None;
        }
        None
    }

    pub(super) fn figures(
        &self,
        now_ns: u64,
        seen: &Observation,
        decision: &Decision,
        counters: &Counters,
    ) -> PortFigures {
        let queue = seen.queue.as_ref();
        PortFigures {
            verify: decision.orders.verify,
            state_seconds: (now_ns - self.changed_ns) as f64 / SECOND_NS as f64,
            syn: figures::syn(counters),
            rates: self.second.rates,
            connections: self.second.connections(counters),
            estimate: figures::estimate(&decision.estimate),
            queue: QueueFigures {
                listeners: queue.map(|queue| queue.listeners),
                waiting: queue.map(|queue| queue.waiting),
                limit: queue.map(|queue| queue.limit),
                drops: seen.listen_drops.map(|_| self.listen_drops),
            },
            ..self.fixed.clone()
        }
    }
}
