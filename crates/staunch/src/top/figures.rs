//! What changed between two looks: rates, and percentiles of what was measured in between.
//!
//! It must never divide by nothing: a server that was started anew counts from its start.

use staunch_engine::BOUNDS_NS;
use staunch_server::metrics::{HistogramFigures, Snapshot, WorkerFigures};

/// Rates of one step.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) requests_per_s: f64,
    pub(super) sent_bytes_per_s: f64,
    pub(super) accepted_per_s: f64,
    pub(super) cpu_share: f64,
    pub(super) classes_per_s: [f64; 5],
    /// 50th and 99th percentile of the server's own part, in nanoseconds.
    pub(super) latency_ns: Option<[f64; 2]>,
    pub(super) queue_age_ns: Option<[f64; 2]>,
    /// Requests a second of each worker.
    pub(super) workers_per_s: Vec<f64>,
}

impl Rates {
    /// From one look to the next, which came so much later.
    pub(super) fn between(before: &Snapshot, now: &Snapshot, ns: u64) -> Self {
        let nothing = Snapshot { workers: Vec::new(), ..before.clone() };
        let is_same = before.process_id == now.process_id && before.workers.len() == now.workers.len();
        let (before, cpu_before) =
            if is_same { (before, before.process.cpu_seconds) } else { (&nothing, 0.0) };
        let seconds = (ns.max(1)) as f64 / 1e9;
        let rate = |of: &dyn Fn(&WorkerFigures) -> u64| {
            sum(&now.workers, of).saturating_sub(sum(&before.workers, of)) as f64 / seconds
        };
        let none = WorkerFigures::default();
        let one = |(index, worker): (usize, &WorkerFigures)| {
            let before = before.workers.get(index).unwrap_or(&none);
            worker.requests.saturating_sub(before.requests) as f64 / seconds
        };
        Self {
            requests_per_s: rate(&|worker| worker.requests),
            sent_bytes_per_s: rate(&|worker| worker.sent_bytes),
            accepted_per_s: rate(&|worker| worker.accepted),
            cpu_share: ((now.process.cpu_seconds - cpu_before) / seconds).max(0.0),
            classes_per_s: [0, 1, 2, 3, 4].map(|class| rate(&|worker| worker.responses[class])),
            latency_ns: percentiles(before, now, |worker| &worker.latency),
            queue_age_ns: percentiles(before, now, |worker| &worker.queue_age),
            workers_per_s: now.workers.iter().enumerate().map(one).collect(),
        }
    }
}

/// Sum over the workers.
pub(super) fn sum(workers: &[WorkerFigures], of: impl Fn(&WorkerFigures) -> u64) -> u64 {
    workers.iter().map(of).sum()
}

fn percentiles(
    before: &Snapshot,
    now: &Snapshot,
    of: impl Fn(&WorkerFigures) -> &HistogramFigures,
) -> Option<[f64; 2]> {
    let bucket = |snapshot: &Snapshot, index: usize| {
        sum(&snapshot.workers, |worker| of(worker).buckets.get(index).copied().unwrap_or(0))
    };
    let counts: Vec<u64> =
        (0..=BOUNDS_NS.len()).map(|index| bucket(now, index).saturating_sub(bucket(before, index))).collect();
    (counts.iter().sum::<u64>() > 0).then(|| [0.5, 0.99].map(|share| percentile(&counts, share)))
}

/// As Prometheus does it: evenly spread within a bucket, and never above the largest bound.
fn percentile(counts: &[u64], share: f64) -> f64 {
    let wanted = counts.iter().sum::<u64>() as f64 * share;
    let mut below = 0.0;
    for (index, (count, bound)) in counts.iter().zip(BOUNDS_NS).enumerate() {
        let (count, low) = (*count as f64, if index == 0 { 0 } else { BOUNDS_NS[index - 1] });
        if below + count >= wanted && count > 0.0 {
            return low as f64 + (bound - low) as f64 * (wanted - below) / count;
        }
        below += count;
    }
    BOUNDS_NS[BOUNDS_NS.len() - 1] as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_in_their_bucket() {
        let mut counts = vec![0; BOUNDS_NS.len() + 1];
        counts[0] = 90;
        counts[3] = 10;
        assert!(percentile(&counts, 0.5) <= 10_000.0);
        let high = percentile(&counts, 0.99);
        assert!(high > 50_000.0 && high <= 100_000.0, "{high}");
        counts[BOUNDS_NS.len()] = 1_000_000;
        assert_eq!(percentile(&counts, 0.99), 1e10);
    }
}
