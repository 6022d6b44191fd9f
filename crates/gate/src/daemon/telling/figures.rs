//! Figures of a snapshot, from what was counted.

use crate::controller::Estimate;
use crate::daemon::tally::{ages_since, percentile_ns};
use crate::layout::{Counters, Outcome};
use crate::snapshot::{
    ClassFigures, ConnectionFigures, EstimateFigures, FrameFigures, RateFigures, SynFigures,
};

const SECOND_NS: u64 = 1_000_000_000;

/// The last whole second of a port, or of all.
#[derive(Default)]
pub(super) struct Second {
    began_ns: u64,
    before: Counters,
    pub(super) rates: RateFigures,
    wait_p50_ms: Option<f64>,
    wait_p99_ms: Option<f64>,
}

impl Second {
    /// A second that begins now.
    pub(super) fn new(now_ns: u64) -> Self {
        Self { began_ns: now_ns, ..Self::default() }
    }

    /// Takes a tick in: the figures are those of the second that has just ended, if one has.
    pub(super) fn see(&mut self, now_ns: u64, totals: &Counters) {
        if now_ns >= self.began_ns + SECOND_NS {
            *self = self.next(now_ns, totals);
        }
    }

    /// What became of connections.
    pub(super) fn connections(&self, totals: &Counters) -> Option<ConnectionFigures> {
        let flows = totals.flows.as_ref()?;
        Some(ConnectionFigures {
            established: flows.established,
            begun: flows.begun,
            ended: flows.ended,
            abandoned: flows.left_silent + flows.left_waiting,
            spoken: flows.spoken,
            reads: flows.reads,
            waiting: flows.waiting(),
            silent: flows.silent(),
            waits: flows.ages.to_vec(),
            wait_p50_ms: self.wait_p50_ms,
            wait_p99_ms: self.wait_p99_ms,
        })
    }

    /// The one that ends now.
    fn next(&self, now_ns: u64, totals: &Counters) -> Self {
        let seconds = (now_ns - self.began_ns) as f64 / SECOND_NS as f64;
        let (now, before) = (syn(totals), syn(&self.before));
        let rate = |of: fn(&ClassFigures) -> u64| now.sum(of).saturating_sub(before.sum(of)) as f64 / seconds;
        let begun = |totals: &Counters| totals.flows.as_ref().map_or(0, |flows| flows.begun);
        let flows = totals.flows.as_ref();
        let ages = flows.map(|flows| ages_since(self.before.flows.as_ref(), flows));
        let milliseconds = |share| {
            let ns = percentile_ns(ages.as_ref()?, share)?;
            Some(ns as f64 / 1e6)
        };
        Self {
            began_ns: now_ns,
            before: totals.clone(),
            rates: RateFigures {
                offered_per_s: rate(ClassFigures::seen),
                passed_per_s: rate(ClassFigures::let_in),
                shed_per_s: rate(ClassFigures::shed),
                begun_per_s: begun(totals).saturating_sub(begun(&self.before)) as f64 / seconds,
            },
            wait_p50_ms: milliseconds(0.5),
            wait_p99_ms: milliseconds(0.99),
        }
    }
}

/// SYN by class.
pub(super) fn syn(totals: &Counters) -> SynFigures {
    let [known, verified, unknown] = totals.outcomes.each_ref().map(|outcomes| {
        let count = |outcome: Outcome| outcomes[outcome as usize];
        ClassFigures {
            passed: count(Outcome::Passed),
            allowed: count(Outcome::Allowed),
            lease_over: count(Outcome::LeaseOver),
            shed_credit: count(Outcome::Credit),
            shed_fair: count(Outcome::Fair),
            shed_deny: count(Outcome::Deny),
        }
    });
    SynFigures { known, verified, unknown }
}

/// Frames that always pass, and answers.
pub(super) fn frames(totals: &Counters) -> FrameFigures {
    FrameFigures {
        other: totals.other,
        small: totals.small,
        large: totals.large,
        fragments: totals.fragments,
        malformed: totals.malformed,
        elsewhere: totals.elsewhere,
        answered: totals.answered,
        dry: totals.dry,
    }
}

/// What the law makes of it.
pub(super) fn estimate(estimate: &Estimate) -> EstimateFigures {
    EstimateFigures {
        served_per_s: estimate.served_per_s,
        wait_ms: estimate.wait_s * 1e3,
        syn_share: estimate.syn_cost_share,
        asking_share: estimate.asking_share,
        speaks_first: estimate.speaks_first,
        small_queue: estimate.small_queue,
        flood_passed: estimate.flood_passed,
    }
}
