//! Clients whose handshake found no place try again: when those come in who do in the end.
//!
//! It owns the shares of the tries. It must never change how many come in: that is `flow.rs`.

use crate::patience::Queue;

/// No client tries more often (Linux: `tcp_retries2`).
const RETRIES_MAX: u32 = 15;

/// Less than this is found by nobody, and tells no chance.
const FOUND_LEAST: f64 = 1e-12;
/// Chance of a later try, of that of the first: at a first one a place was free a moment ago, for the SYN has
/// found it; and a crowd's timers go off together, when one free place is for one of them.
const LATER_CHANCE: f64 = 0.5;

/// Of those who come in, how many by which try.
pub(crate) struct Tries {
    /// Seconds since the first try, and the share that comes in by this one.
    shares: Vec<(f64, f64)>,
}

impl Tries {
    /// `found` is the share of handshakes that are completed in the end, 0 to 1. Tries are made `retry_s`
    /// after the first, twice, four times as long after it, and so on while the client is patient; 0 for one
    /// try alone. The first has the chance `y` of equation (13), `1 - (1-y) (1-y/2)^retries = found`.
    pub(crate) fn new(found: f64, retry_s: f64, patience_s: f64) -> Tries {
        let retries = (0..RETRIES_MAX).map(|turn| retry_s * 2_f64.powi(turn as i32));
        let retries = retries.take_while(|after_s| *after_s > 0.0 && *after_s < patience_s);
        let after_s: Vec<f64> = std::iter::once(0.0).chain(retries).collect();
        let chance = first_chance(found.max(FOUND_LEAST), after_s.len() as i32 - 1);
        let later = LATER_CHANCE * chance;
        let by = |turn: usize| match turn {
            0 => chance,
            _ => (1.0 - chance) * (1.0 - later).powi(turn as i32 - 1) * later,
        };
        let all: f64 = (0..after_s.len()).map(by).sum();
        Tries { shares: after_s.into_iter().enumerate().map(|(turn, s)| (s, by(turn) / all)).collect() }
    }

    /// Probability that somebody who comes in has his answer within `time_s` seconds of his first try.
    pub(crate) fn within(&self, queue: &Queue, time_s: f64) -> f64 {
        let in_time = self.shares.iter().filter(|(after_s, _)| *after_s < time_s);
        in_time.map(|(after_s, share)| share * queue.within(time_s - after_s)).sum()
    }

    /// As [`Queue::quantile`], since the first try.
    pub(crate) fn quantile(&self, queue: &Queue, share: f64, patience_s: f64) -> Option<f64> {
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
        let all = 1.0 - (1.0 - middle) * (1.0 - LATER_CHANCE * middle).powi(retries);
        if all < found { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_in_did_so_by_one_of_the_tries() {
        // Of 128 half come in at once, then a quarter each time: 101 in all.
        let tries = Tries::new(101.0 / 128.0, 0.2, 1.0);
        let expected = [(0.0, 64.0), (0.2, 16.0), (0.4, 12.0), (0.8, 9.0)];
        for ((after_s, share), (expected_s, parts)) in tries.shares.iter().zip(expected) {
            assert!((after_s - expected_s).abs() < 1e-12 && (share - parts / 101.0).abs() < 1e-12);
        }
        assert_eq!(tries.shares.len(), 4);
        assert!((tries.mean_s() - (3.2 + 4.8 + 7.2) / 101.0).abs() < 1e-12);
    }

    #[test]
    fn one_try_is_all_there_is() {
        for tries in [Tries::new(0.3, 0.0, 1.0), Tries::new(1.0, 0.2, 1.0), Tries::new(0.3, 0.2, 0.1)] {
            assert!((tries.shares[0].1 - 1.0).abs() < 1e-12 && tries.mean_s() < 1e-12);
        }
        // When hardly anybody comes in later tries are alike, and for ever is no endless list.
        let tries = Tries::new(0.0, 0.2, f64::INFINITY);
        assert_eq!(tries.shares.len(), 16);
        assert!(tries.shares[1..].iter().all(|(_, share)| (share - 1.0 / 17.0).abs() < 1e-9));
    }
}
