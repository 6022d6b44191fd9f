//! How long a run still takes, from what it took so far.
//!
//! It must never be taken for a measurement.

use crate::results::Row;

/// What starting and ending a server takes, in connections that could be made meanwhile.
const START_CONNECTIONS: u64 = 500;

/// The steps of a run.
#[derive(Debug)]
pub(super) struct RoundPace {
    /// Connections of each row, and what the start is worth.
    weights: Vec<u64>,
    /// What each row took last.
    took_s: Vec<Option<f64>>,
    rounds: u64,
    done: u64,
}

impl RoundPace {
    pub(super) fn new(rows: &[Row], rounds: u64) -> Self {
        let weight = |row: &Row| (row.children as u64).saturating_mul(row.loops) + START_CONNECTIONS;
        Self { weights: rows.iter().map(weight).collect(), took_s: vec![None; rows.len()], rounds, done: 0 }
    }

    /// Steps done, and all.
    pub(super) fn steps(&self) -> (u64, u64) {
        (self.done, self.weights.len() as u64 * self.rounds)
    }

    /// A step was done.
    pub(super) fn did(&mut self, row: usize, took_s: f64) {
        self.took_s[row] = Some(took_s);
        self.done += 1;
    }

    /// Seconds that are left: a row takes what it took, and one that was not measured yet as long for each
    /// connection as the others took.
    pub(super) fn left_s(&self) -> Option<f64> {
        let pairs = || self.weights.iter().zip(&self.took_s);
        let known = pairs().filter_map(|(weight, took_s)| Some((*weight, (*took_s)?)));
        let (weight, took_s) = known.fold((0, 0.0), |sum, (weight, took_s)| (sum.0 + weight, sum.1 + took_s));
        if weight == 0 {
            return None;
        }
        let expected_s = |(weight_of, took): (&u64, &Option<f64>)| {
            took.unwrap_or(*weight_of as f64 * took_s / weight as f64)
        };
        let (rows, done) = (self.weights.len() as u64, self.done);
        let times_left = |index: usize| {
            let times_done = done / rows + u64::from((index as u64) < done % rows);
            self.rounds.saturating_sub(times_done)
        };
        Some(pairs().map(expected_s).enumerate().map(|(index, s)| s * times_left(index) as f64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(loops: u64) -> Row {
        crate::made_up::measured("poll", (1, loops, 1, 0), &[]).row
    }

    #[test]
    fn what_is_left_is_reckoned_from_what_was_done() {
        let mut pace = RoundPace::new(&[row(500), row(1500)], 2);
        assert_eq!((pace.steps(), pace.left_s()), ((0, 4), None));
        pace.did(0, 1.0);
        assert_eq!((pace.steps(), pace.left_s()), ((1, 4), Some(1.0 + 2.0 * 2.0)));
        pace.did(1, 5.0);
        assert_eq!(pace.left_s(), Some(6.0));
        pace.did(0, 2.0);
        assert_eq!(pace.left_s(), Some(5.0));
        pace.did(1, 5.0);
        assert_eq!((pace.steps(), pace.left_s()), ((4, 4), Some(0.0)));
    }
}
