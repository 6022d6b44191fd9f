//! Clients whose handshake found no place try again: when those come in who do in the end.
//!
//! It owns the shares of the tries. It must never change how many come in: that is `flow.rs`.

use crate::patience::PatientQueue;

/// No client tries more often (Linux: `tcp_retries2`).
const RETRIES_MAX: u32 = 15;

/// Less than this is found by nobody, and tells no chance.
const FOUND_LEAST: f64 = 1e-12;
/// A crowd's timers go off together, when one free place is for one of them.
const TOGETHER: f64 = 0.5;

/// Of those who come in, how many by which try.
pub(crate) struct Tries {
    /// Seconds since the first try, and the share that comes in by this one.
    shares: Vec<(f64, f64)>,
}

impl Tries {
    /// `found` is the share of handshakes that are completed in the end, 0 to 1. Tries are made `retry_s`
    /// after the first, twice, four times as long after it, and so on while the client is patient, and when
    /// it leaves, for that knocks as well; 0 for one try alone. The first has the chance `y` of equation
    /// (13), `1 - (1-y) (1 - found y/2)^retries = found`.
    pub(crate) fn new(found: f64, retry_s: f64, patience_s: f64) -> Tries {
        let retries = (0..RETRIES_MAX).map(|turn| retry_s * 2_f64.powi(turn as i32));
        let retries = retries.take_while(|after_s| *after_s > 0.0 && *after_s < patience_s);
        let leaves = (retry_s > 0.0 && patience_s.is_finite()).then_some(patience_s);
        let after_s: Vec<f64> = std::iter::once(0.0).chain(retries).chain(leaves).collect();
        let found = found.max(FOUND_LEAST);
        let chance = first_chance(found, after_s.len() as i32 - 1);
        let later = TOGETHER * found * chance;
        let by = |turn: usize| match turn {
            0 => chance,
            _ => (1.0 - chance) * (1.0 - later).powi(turn as i32 - 1) * later,
        };
        let all: f64 = (0..after_s.len()).map(by).sum();
        Tries { shares: after_s.into_iter().enumerate().map(|(turn, s)| (s, by(turn) / all)).collect() }
    }

    /// Probability that somebody who comes in has his answer within `time_s` seconds of his first try.
    pub(crate) fn within(&self, queue: &PatientQueue, time_s: f64) -> f64 {
        let in_time = self.shares.iter().filter(|(after_s, _)| *after_s < time_s);
        in_time.map(|(after_s, share)| share * queue.within(time_s - after_s)).sum()
    }

    /// As [`PatientQueue::quantile`], since the first try.
    pub(crate) fn quantile(&self, queue: &PatientQueue, share: f64, patience_s: f64) -> Option<f64> {
        queue.quantile_of(|time_s| self.within(queue, time_s), share, patience_s)
    }

    /// Mean seconds from the first try to the one that comes in.
    pub(crate) fn mean_s(&self) -> f64 {
        self.shares.iter().map(|(after_s, share)| after_s * share).sum()
    }
}

/// y, by halving: more chance, more found.
fn first_chance(found: f64, retries: i32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let all = 1.0 - (1.0 - middle) * (1.0 - TOGETHER * found * middle).powi(retries);
        if all < found { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_in_did_so_by_one_of_the_tries() {
        let found = 0.6;
        let tries = Tries::new(found, 0.2, 1.0);
        assert_eq!(
            tries.shares.iter().map(|(after_s, _)| *after_s).collect::<Vec<f64>>(),
            [0.0, 0.2, 0.4, 0.8, 1.0]
        );
        let chance = found * tries.shares[0].1;
        let later = found * chance / 2.0;
        let mut left = 1.0 - chance;
        for (_, share) in &tries.shares[1..] {
            assert!((found * share - left * later).abs() < 1e-9);
            left *= 1.0 - later;
        }
        assert!((1.0 - left - found).abs() < 1e-9);
        let mean_s: f64 = tries.shares.iter().map(|(after_s, share)| after_s * share).sum();
        assert!((tries.mean_s() - mean_s).abs() < 1e-12 && mean_s > 0.1);
    }

    #[test]
    fn one_try_is_all_there_is() {
        for tries in [Tries::new(0.3, 0.0, 1.0), Tries::new(1.0, 0.2, 1.0), Tries::new(0.0, 0.2, 1.0)] {
            assert!((tries.shares[0].1 - 1.0).abs() < 1e-9 && tries.mean_s() < 1e-9);
        }
        // For ever is no endless list, and who never leaves does not knock by it.
        assert_eq!(Tries::new(0.5, 0.2, f64::INFINITY).shares.len(), 16);
    }
}
