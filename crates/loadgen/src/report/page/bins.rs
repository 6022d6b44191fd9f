//! Steps joined until a plot has no more of them than it has room for.
//!
//! It must never hide a peak: what is joined is summed, or the largest is taken.

use std::ops::Range;

use crate::report::moments::Moments;

/// More points than these are nearer to each other than the eye can tell on a plot of this size.
const BINS_MAX: usize = 200;

/// Steps of a run in groups.
pub(crate) struct Bins {
    /// The end of each group in seconds.
    pub(crate) places: Vec<f64>,
    /// How many steps are joined to one, but for the last.
    pub(crate) joined: usize,
    groups: Vec<Range<usize>>,
    step_s: f64,
}

impl Bins {
    /// Of a run.
    pub(crate) fn new(moments: &Moments) -> Self {
        let joined = moments.len().div_ceil(BINS_MAX).max(1);
        let groups: Vec<Range<usize>> = (0..moments.len())
            .step_by(joined)
            .map(|start| start..(start + joined).min(moments.len()))
            .collect();
        let end = |group: &Range<usize>| moments.at_ms[group.end - 1] as f64 / 1e3;
        Self {
            places: groups.iter().map(end).collect(),
            joined,
            groups,
            step_s: moments.step_ms as f64 / 1e3,
        }
    }

    /// The last place in seconds.
    pub(crate) fn end(&self) -> f64 {
        self.places.last().copied().unwrap_or(0.0)
    }

    /// Counts, a second.
    pub(crate) fn rate(&self, column: &[u64]) -> Vec<Option<f64>> {
        let rate = |group: &Range<usize>| {
            column[group.clone()].iter().sum::<u64>() as f64 / (group.len() as f64 * self.step_s)
        };
        self.groups.iter().map(|group| Some(rate(group))).collect()
    }

    /// Sums that may be missing, a second.
    pub(crate) fn rate_or_none(&self, column: &[Option<f64>]) -> Vec<Option<f64>> {
        let sums = self.join(column, |values| values.iter().sum());
        let lengths = self.groups.iter().map(|group| group.len() as f64 * self.step_s);
        sums.into_iter().zip(lengths).map(|(sum, seconds)| Some(sum? / seconds)).collect()
    }

    /// The largest value of each bin.
    pub(crate) fn largest(&self, column: &[Option<f64>]) -> Vec<Option<f64>> {
        self.join(column, |values| values.iter().copied().fold(f64::MIN, f64::max))
    }

    /// The mean of each bin.
    pub(crate) fn mean(&self, column: &[Option<f64>]) -> Vec<Option<f64>> {
        self.join(column, |values| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// What is said below a plot whose points are the largest of several steps.
    pub(crate) fn note(&self) -> String {
        match self.joined {
            1 => String::new(),
            joined => format!("Each point is the largest of {joined} steps of {} ms.", self.step_s * 1e3),
        }
    }

    fn join(&self, column: &[Option<f64>], join: impl Fn(&[f64]) -> f64) -> Vec<Option<f64>> {
        let one = |group: &Range<usize>| {
            let values: Vec<f64> = column[group.clone()].iter().flatten().copied().collect();
            (!values.is_empty()).then(|| join(&values))
        };
        self.groups.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_steps_are_joined_and_nothing_is_lost() {
        let steps = 1_001u64;
        let moments =
            Moments { step_ms: 100, at_ms: (1..=steps).map(|at| at * 100).collect(), ..Moments::default() };
        let bins = Bins::new(&moments);
        assert!(bins.places.len() <= BINS_MAX && bins.joined == 6);
        assert_eq!(bins.end(), 100.1);
        let counts: Vec<u64> = (0..steps).collect();
        let rates = bins.rate(&counts);
        let sum: f64 = rates[..rates.len() - 1].iter().flatten().map(|rate| rate * 0.6).sum();
        let last = rates[rates.len() - 1].unwrap() * 0.1 * (steps as f64 % 6.0);
        assert!((sum + last - (steps * (steps - 1) / 2) as f64).abs() < 1e-6);
        let mut column = vec![None; steps as usize];
        column[8] = Some(5.0);
        column[9] = Some(1.0);
        assert_eq!(bins.largest(&column)[..2], [None, Some(5.0)]);
        assert_eq!(bins.mean(&column)[1], Some(3.0));
        assert!((bins.rate_or_none(&column)[1].unwrap() - 10.0).abs() < 1e-9);
        assert!(bins.note().contains("6 steps of 100 ms"));
    }

    #[test]
    fn a_short_run_stays_as_it_is() {
        let moments = Moments { step_ms: 100, at_ms: vec![100, 200], ..Moments::default() };
        let bins = Bins::new(&moments);
        assert_eq!(bins.rate(&[1, 2]), [Some(10.0), Some(20.0)]);
        assert_eq!(bins.note(), "");
        assert_eq!(Bins::new(&Moments::default()).end(), 0.0);
    }
}
