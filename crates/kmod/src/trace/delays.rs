//! Times in a histogram whose steps double, as one draws those of which a few are long.

use serde::Serialize;
use staunch_figures::statistics::{median, quantile};
use staunch_figures::words;

/// Characters of the longest bar in a terminal.
const BAR: u64 = 40;

/// So many times, from the shortest to the longest, in steps.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct DelayHistogram {
    pub(super) count: u64,
    pub(super) median_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) most_us: Option<f64>,
    pub(super) steps: Vec<DelayStep>,
}

/// The times at or above `from_us` and below `to_us`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct DelayStep {
    pub(super) from_us: u64,
    pub(super) to_us: u64,
    pub(super) count: u64,
}

impl DelayStep {
    pub(super) fn name(&self) -> String {
        format!("{} to {} us", words::count(self.from_us), words::count(self.to_us))
    }
}

impl DelayHistogram {
    /// The histogram of these times in microseconds.
    pub(super) fn of(times_us: &[f64]) -> Self {
        Self {
            count: times_us.len() as u64,
            median_us: median(times_us),
            p99_us: quantile(times_us, 0.99),
            most_us: quantile(times_us, 1.0),
            steps: steps(times_us),
        }
    }

    /// A sentence of the figures.
    pub(super) fn glance(&self) -> String {
        let time = |us: f64| words::time_ns(us * 1000.0);
        let said = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), time);
        let [median, p99, most] = [self.median_us, self.p99_us, self.most_us].map(said);
        format!("{} in all: median {median}, 99 % within {p99}, longest {most}", words::count(self.count))
    }

    /// The rows of a table for a terminal: a step, its count, and a bar.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let most = self.steps.iter().map(|step| step.count).max().unwrap_or(1).max(1);
        let bar = |count: u64| "#".repeat((count * BAR).div_ceil(most) as usize);
        let row = |step: &DelayStep| vec![step.name(), words::count(step.count), bar(step.count)];
        self.steps.iter().map(row).collect()
    }
}

/// The steps from the first that has a time to the last one.
fn steps(times_us: &[f64]) -> Vec<DelayStep> {
    // Below 1 us is step 0, below 2 us step 1, below 4 us step 2.
    let place = |us: &f64| (u64::BITS - (*us as u64).leading_zeros()) as usize;
    let mut counts = [0u64; u64::BITS as usize + 1];
    times_us.iter().for_each(|us| counts[place(us)] += 1);
    let (Some(first), Some(last)) =
        (counts.iter().position(|count| *count > 0), counts.iter().rposition(|count| *count > 0))
    else {
        return Vec::new();
    };
    let edge = |place: usize| 1u64.checked_shl(place as u32).unwrap_or(u64::MAX);
    let step = |at: usize| DelayStep {
        from_us: at.checked_sub(1).map_or(0, edge),
        to_us: edge(at),
        count: counts[at],
    };
    (first..=last).map(step).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DelayHistogram, DelayStep};

    #[test]
    fn steps_double() {
        let delays = DelayHistogram::of(&[0.5, 2.0, 3.9, 4.0, 9.0]);
        let step = |from_us, to_us, count| DelayStep { from_us, to_us, count };
        assert_eq!(
            delays.steps,
            [step(0, 1, 1), step(1, 2, 0), step(2, 4, 2), step(4, 8, 1), step(8, 16, 1)]
        );
        assert_eq!((delays.count, delays.median_us, delays.most_us), (5, Some(3.9), Some(9.0)));
        assert_eq!(delays.rows()[2], ["2 to 4 us".to_owned(), "2".to_owned(), "#".repeat(40)]);
        assert_eq!(DelayHistogram::of(&[]).rows(), Vec::<Vec<String>>::new());
    }

    proptest! {
        #[test]
        fn each_time_is_in_one_step(times in prop::collection::vec(0.0f64..1e12, 0..40)) {
            let delays = DelayHistogram::of(&times);
            let counted: u64 = delays.steps.iter().map(|step| step.count).sum();
            prop_assert_eq!(counted, times.len() as u64);
            for step in &delays.steps {
                let is_in = |us: &&f64| **us >= step.from_us as f64 && **us < step.to_us as f64;
                prop_assert_eq!(step.count, times.iter().filter(is_in).count() as u64);
            }
        }
    }
}
