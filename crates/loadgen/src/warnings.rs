//! What the reader has to know before believing a figure: above all, when the generator itself was the limit.
//!
//! It must never soften a finding, and never claims one that the figures do not show.

use crate::drift;
use crate::histogram::Histogram;
use crate::outcome::{Counts, RunOutcome, TlsOutcome};
use crate::plan::{LaneKind, Plan, SlotPlan};

/// A thread that worked for more than this share of the time had no time left.
const BUSY_SHARE_MAX: f64 = 0.97;

/// What the generator had, beside the outcome.
pub(crate) struct Effort<'a> {
    /// Processor time of each thread.
    pub(crate) busy_ns: &'a [u64],
    /// How long the run took, the wait for the last answers included.
    pub(crate) ran_ns: u64,
    /// How many processors the generator might use.
    pub(crate) processors: usize,
}

/// The findings, the gravest first.
pub(crate) fn of(outcome: &RunOutcome, plan: &Plan, effort: &Effort<'_>) -> Vec<String> {
    let counts = all_lanes(outcome);
    let checks =
        [tls(outcome), unsent(&counts, plan), late(outcome, plan, effort), busy(plan, effort), sum(&counts)];
    checks.into_iter().flatten().collect()
}

fn all_lanes(outcome: &RunOutcome) -> Counts {
    let mut all = Counts::default();
    outcome.lanes.iter().for_each(|lane| all += lane.counts);
    all
}

/// Connections that were lost by a fault of TLS, the commonest reason first.
fn tls(outcome: &RunOutcome) -> Option<String> {
    let mut all = TlsOutcome::default();
    outcome.lanes.iter().for_each(|lane| all.merge(&lane.tls));
    let mut reasons: Vec<(&String, &u64)> = all.faults.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let lost: u64 = reasons.iter().map(|(_, count)| **count).sum();
    let reasons: Vec<String> = reasons.iter().map(|(reason, count)| format!("{reason} ({count})")).collect();
    (lost > 0).then(|| format!("TLS failed on {lost} connections: {}.", reasons.join("; ")))
}

/// Requests that could not be begun.
fn unsent(counts: &Counts, plan: &Plan) -> Option<String> {
    let unsent = counts.unsent;
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

/// Requests that were begun late, by so much that p99 is not the server's. Where only one start in a thousand
/// was, the summary says so at the figures it concerns.
fn late(outcome: &RunOutcome, plan: &Plan, effort: &Effort<'_>) -> Option<String> {
    let open = matches!(plan.lanes.first()?.kind, LaneKind::Open { .. });
    let times = outcome.times();
    let ms = |histogram: &Histogram| (histogram.count() > 0).then(|| histogram.percentile(99.0) as f64 / 1e6);
    let drift_ms = ms(&times.drift);
    (open && drift::shows_in(drift_ms, ms(&times.complete))).then(|| {
        format!(
            "The generator was behind its schedule: one start in a hundred was {:.1} ms late or more. Times \
             count from the intended start, so p99 and what is above it are partly the generator's; {}.",
            drift_ms.unwrap_or(0.0),
            remedy(plan, effort)
        )
    })
}

/// Threads that had no time left.
fn busy(plan: &Plan, effort: &Effort<'_>) -> Option<String> {
    let shares = effort.busy_ns.iter().map(|busy| *busy as f64 / effort.ran_ns.max(1) as f64);
    let busiest = shares.fold(0.0, f64::max);
    let held = plan.lanes.iter().all(|lane| matches!(lane.kind, LaneKind::Hold { .. }));
    (busiest > BUSY_SHARE_MAX && !held).then(|| {
        format!(
            "The generator's processor was busy {:.0} % of the time{}: the server may be able to do more \
             than was measured; {}.",
            100.0 * busiest.min(1.0),
            if plan.tls.is_some() { ", its part of TLS included" } else { "" },
            remedy(plan, effort)
        )
    })
}

/// What helps a generator that has too little. More threads do only where there are processors for them
/// beside as many for a server.
fn remedy(plan: &Plan, effort: &Effort<'_>) -> &'static str {
    if plan.threads.len() * 2 < effort.processors {
        "use more --threads, on processors the server does not use"
    } else {
        "give it processors that nobody else uses (--cpus), or another machine"
    }
}

/// The accounts have to be right, or nothing is.
fn sum(counts: &Counts) -> Option<String> {
    (counts.settled() != counts.offered).then(|| {
        format!(
            "THE ACCOUNTS DO NOT ADD UP: {} requests were offered and {} have an end. This is a mistake in \
             the generator; please report it.",
            counts.offered,
            counts.settled()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;
    use crate::simulation::open_plan;

    #[test]
    fn late_starts_are_a_warning_where_they_show_in_p99() {
        let cases = [(20, 2, 300, true), (20, 2, 12, false), (2, 2, 300, false), (20, 8, 300, true)];
        for (late_of_1000, processors, drift_ms, said) in cases {
            let mut outcome = made_up::overload();
            let times = &mut outcome.lanes[0].times;
            (times.drift, times.complete) = (Histogram::default(), Histogram::default());
            for request in 0..1_000 {
                times.drift.record(if request < late_of_1000 { drift_ms * 1_000_000 } else { 10_000 });
                times.complete.record(200_000_000);
            }
            let effort = Effort { busy_ns: &[0], ran_ns: 1, processors };
            let found = of(&outcome, &open_plan(), &effort);
            assert_eq!(found.len(), usize::from(said), "{found:?}");
            assert!(!said || found[0].contains("--threads") == (processors > 2), "{found:?}");
        }
    }

    #[test]
    fn faults_of_tls_are_told_by_reason_the_commonest_first() {
        let mut outcome = made_up::overload();
        outcome.lanes[0].tls.count_faults("it has expired", 1);
        outcome.lanes[1].tls.count_faults("nobody trusts it", 7);
        let found = of(&outcome, &open_plan(), &Effort { busy_ns: &[0], ran_ns: 1, processors: 2 });
        let said = "TLS failed on 8 connections: nobody trusts it (7); it has expired (1).";
        assert_eq!(found[0], said);
    }

    #[test]
    fn a_short_run_is_busy_for_its_own_length_only() {
        let outcome = made_up::overload();
        let found = of(&outcome, &open_plan(), &Effort { busy_ns: &[36], ran_ns: 37, processors: 2 });
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("97 %") && found[0].contains("another machine"), "{found:?}");
    }
}
