//! What has to be known of a run with readers before a figure is believed.
//!
//! It must never soften a finding, and never claims one that the figures do not show.

use super::outcome::LiveOutcome;
use crate::drift;

/// A thread that worked for more than this share of the time had no time left.
const BUSY_SHARE_MAX: f64 = 0.97;

/// The findings, the gravest first.
pub(crate) fn of(outcome: &LiveOutcome, busy_ns: &[u64], ran_ns: u64) -> Vec<String> {
    let checks = [
        sum(outcome),
        publishing(outcome),
        gathering(outcome),
        unanswered(outcome),
        busy(busy_ns, ran_ns),
        late(outcome),
        unmarked(outcome),
    ];
    checks.into_iter().flatten().collect()
}

fn sum(outcome: &LiveOutcome) -> Option<String> {
    let counts = &outcome.counts;
    (!counts.add_up()).then(|| {
        format!(
            "THE ACCOUNTS DO NOT ADD UP: {} were due, and {} delivered, {} lost, {} skipped. This is a \
             fault of the generator; please report it.",
            counts.due, counts.delivered, counts.lost, counts.skipped
        )
    })
}

fn publishing(outcome: &LiveOutcome) -> Option<String> {
    let told = &outcome.publications;
    let reason = told.first_fault.as_ref().map(|fault| format!(" First: {fault}.")).unwrap_or_default();
    (told.refused + told.unsent > 0).then(|| {
        format!(
            "{} publications were refused and {} not sent, because those before were not answered in time: \
             fewer updates were published than wanted.{reason}",
            told.refused, told.unsent
        )
    })
}

fn gathering(outcome: &LiveOutcome) -> Option<String> {
    let reason = outcome.first_fault.as_ref().map(|fault| format!(" First: {fault}.")).unwrap_or_default();
    (outcome.gathered < outcome.readers).then(|| {
        format!(
            "Only {} of {} readers were there when it began.{reason} Those that came later count from the \
             first update they had.",
            outcome.gathered, outcome.readers
        )
    })
}

fn unanswered(outcome: &LiveOutcome) -> Option<String> {
    let count = outcome.publications.unanswered;
    (count > 0).then(|| {
        format!(
            "{count} publications were sent and not answered. If they were not published, each reader of \
             their topics counts {} as lost that never existed.",
            if count == 1 { "one".to_owned() } else { format!("up to {count}") }
        )
    })
}

fn busy(busy_ns: &[u64], ran_ns: u64) -> Option<String> {
    let busiest = busy_ns.iter().copied().max().unwrap_or(0) as f64 / ran_ns.max(1) as f64;
    (busiest > BUSY_SHARE_MAX).then(|| {
        format!(
            "A thread of the readers was busy for {:.0} % of the time: delays are partly the generator's. \
             Use more threads (--threads), or fewer readers.",
            busiest * 100.0
        )
    })
}

fn late(outcome: &LiveOutcome) -> Option<String> {
    let ms = |ns: u64| Some(ns as f64 / 1e6);
    let (drift, delay) = (&outcome.times.drift, &outcome.times.delay);
    let measured = drift.count() > 0 && delay.count() > 0;
    let drift_ms = ms(drift.percentile(99.0)).filter(|_| measured)?;
    drift::shows_in(Some(drift_ms), ms(delay.percentile(99.0))).then(|| {
        format!(
            "Publications were sent later than meant: one in a hundred by {drift_ms:.1} ms or more, because \
             those before were not answered or the generator had no time. Delays count from the meant time."
        )
    })
}

fn unmarked(outcome: &LiveOutcome) -> Option<String> {
    let counts = &outcome.counts;
    (counts.unmarked > 0 && counts.delivered == 0).then(|| {
        format!(
            "{} events came and none held a mark of a generator: nothing can be said of loss or delay.",
            counts.unmarked
        )
    })
}
