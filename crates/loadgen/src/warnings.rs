//! What the reader has to know before believing a figure: above all, when the generator itself was the limit.
//!
//! It must never soften a finding, and never claims one that the figures do not show.

use crate::outcome::Outcome;
use crate::plan::{LaneKind, Plan, SlotPlan};

/// A thread that worked for more than this share of the time had no time left.
const BUSY_SHARE_MAX: f64 = 0.97;

/// Starts later than this at the 99.9th percentile are said.
const DRIFT_MAX_NS: u64 = 1_000_000;

/// The findings, the gravest first.
pub(crate) fn of(outcome: &Outcome, plan: &Plan, busy_ns: &[u64]) -> Vec<String> {
    let checks = [unsent(outcome, plan), drift(outcome, plan), busy(outcome, plan, busy_ns), sum(outcome)];
    checks.into_iter().flatten().collect()
}

/// Requests that could not be begun.
fn unsent(outcome: &Outcome, plan: &Plan) -> Option<String> {
    let unsent = outcome.counts().unsent;
    let slots_max = plan.lanes.iter().find_map(|lane| match lane.kind {
        LaneKind::Open { slots: SlotPlan::Kept { connections_max }, .. } => Some(connections_max),
        _ => None,
    });
    let remedy = match slots_max {
        Some(connections_max) => format!(
            "all {connections_max} kept connections were in use (raise --connections, or set --patience)"
        ),
        None => "there were no descriptors, source ports or time left (--io uring, more --source addresses, \
                 --close rst, more --threads)"
            .to_owned(),
    };
    (unsent > 0).then(|| {
        format!(
            "THE GENERATOR IS SATURATED: {unsent} requests were not begun as scheduled, because {remedy}."
        )
    })
}

/// Requests that were begun late.
fn drift(outcome: &Outcome, plan: &Plan) -> Option<String> {
    let open = plan.lanes.iter().any(|lane| matches!(lane.kind, LaneKind::Open { .. }));
    let late_ns = outcome.times().drift.percentile(99.9);
    (open && late_ns > DRIFT_MAX_NS).then(|| {
        format!(
            "The generator was behind its schedule: one start in a thousand was {:.1} ms late or more. Times \
             count from the intended start, so they include this; use more --threads.",
            late_ns as f64 / 1e6
        )
    })
}

/// Threads that had no time left.
fn busy(outcome: &Outcome, plan: &Plan, busy_ns: &[u64]) -> Option<String> {
    let ran_ns = outcome.moments.len() as f64 * 1e8;
    let shares = busy_ns.iter().map(|busy| *busy as f64 / ran_ns);
    let busiest = shares.fold(0.0, f64::max);
    let held = plan.lanes.iter().all(|lane| matches!(lane.kind, LaneKind::Hold { .. }));
    (busiest > BUSY_SHARE_MAX && !held).then(|| {
        format!(
            "The generator's processor was busy {:.0} % of the time: the server may be able to do more than \
             was measured; use more --threads, on processors the server does not use.",
            100.0 * busiest.min(1.0)
        )
    })
}

/// The accounts have to be right, or nothing is.
fn sum(outcome: &Outcome) -> Option<String> {
    let counts = outcome.counts();
    (counts.settled() != counts.offered).then(|| {
        format!(
            "THE ACCOUNTS DO NOT ADD UP: {} requests were offered and {} have an end. This is a mistake in \
             the generator; please report it.",
            counts.offered,
            counts.settled()
        )
    })
}
