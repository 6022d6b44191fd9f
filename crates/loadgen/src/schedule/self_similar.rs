//! Self-similar arrivals in operational time: the sum of Pareto on-off sources.
//!
//! It owns the sources and their state. It must never know a rate: bursts are so many arrivals long, at any
//! rate.
//!
//! W. Willinger, M. S. Taqqu, R. Sherman and D. V. Wilson, "Self-similarity through high-variability:
//! statistical analysis of Ethernet LAN traffic at the source level", IEEE/ACM Transactions on Networking
//! 5(1), 1997: the sum of many sources that are on and off for times with `P(T > t) ~ t^-alpha`, 1 < alpha <
//! 2, is self-similar with
//!
//! ```text
//! H = (3 - alpha) / 2
//! ```
//!
//! That is a limit. So that it already holds for runs of seconds, the following is chosen, for N sources that
//! are on with probability p, so that the sum has the variance `sigma^2 = (1 - p) / (p N)` at mean 1:
//!
//! 1. **Periods** are Pareto: `P(T > t) = (t / shortest)^-alpha`. At the end of each a coin says whether the
//!    next is on (a renewal reward process: Taqqu and Levy 1986). Then the covariance of a source's state
//!    over a distance t is its variance times the chance that one period covers all of t, which beyond
//!    `shortest` is `(t / shortest)^(2H-2) / alpha`: a power law at once, and not in the limit only.
//! 2. **Start**: each source begins within a period, with the distribution of what is left of one. So the sum
//!    is stationary from time 0 on.
//! 3. **Gaps** between arrivals, at the rate of the sources that are on, are gamma distributed. Integrated
//!    twice, the covariance gives the variance of the arrivals in a time t, if they flowed like a liquid:
//!
//!    ```text
//!    V(t) = c t^(2H) - sigma^2 shortest F t + sigma^2 shortest^2 G      for t > shortest
//!    F = (2 / (2 - alpha) - alpha - 1) / alpha
//!    G = 2 / (alpha (3 - alpha)) + 2 (alpha - 1) / (3 alpha) - 1
//!    ```
//!
//!    Only the first term is wanted. Gaps with an index of dispersion I add `I t + (1 - I^2) / 6` (the second
//!    is the rounding to whole arrivals), so I is chosen to cancel the second term; and what is constant,
//!    too, where it is largest, see [`Shape`].
//! 4. **The shortest period** is the one for which gaps are about exponential (I = 1), but no longer than
//!    `2 / sigma`, which makes bursts larger than the rounding. For 32 sources that is 1.2 (H = 0.55) to 6.5
//!    (H = 0.7 and above) arrivals.
//!
//! So H is right in bins of ten arrivals and more. A run of 30 000 arrivals (30 s at 1000/s) is long enough
//! to estimate it to 0.02 (standard deviation), one of 100 000 to 0.012, one of 300 000 to 0.008.
//!
//! Nothing is truncated: a source may stay as it is for longer than the run. This is what self-similar means,
//! and it has a price: the mean rate of one run differs from the mean over all runs. Its standard deviation
//! for a run of m arrivals is `sigma (m / shortest)^(H-1) / sqrt(alpha H (2H - 1))`; for 32 sources and 30 s
//! at 1000/s about 1 % at H = 0.55, 6 % at 0.8 and 20 % at 0.95, where longer runs hardly help.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Gamma, OpenClosed01};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How much of the time a source is on. Traffic that was measured is off more than on.
const ON_PROBABILITY: f64 = 0.25;

/// The sum of all sources, from now on.
#[derive(Debug)]
pub(super) struct SelfSimilar {
    random: Xoshiro256PlusPlus,
    period: Period,
    gap: Gamma<f64>,
    /// For each source when its period ends, the earliest first.
    ends: BinaryHeap<Reverse<End>>,
    sources_on: u32,
    /// Arrivals a unit of time from each source that is on.
    rate_of_source: f64,
    now: f64,
}

/// The end of a period. The bits of a number that is not negative are in the order of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    at_bits: u64,
    on: bool,
}

impl SelfSimilar {
    /// `hurst` within 0.5 ... 1, one source or more.
    pub(super) fn new(hurst: f64, sources: u32, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let Shape { period, dispersion } = Shape::new(hurst, sources);
        let gap = Gamma::new(1.0 / dispersion, dispersion).expect("a dispersion is above 0");
        let first = |random: &mut Xoshiro256PlusPlus| End {
            on: random.random_bool(ON_PROBABILITY),
            at_bits: period.residual(random).to_bits(),
        };
        let ends: BinaryHeap<_> = (0..sources).map(|_| Reverse(first(&mut random))).collect();
        let sources_on = ends.iter().map(|end| u32::from(end.0.on)).sum();
        let rate_of_source = 1.0 / (ON_PROBABILITY * f64::from(sources));
        Self { random, period, gap, ends, sources_on, rate_of_source, now: 0.0 }
    }

    /// The next arrival; infinite when all sources are off for good.
    pub(super) fn next(&mut self) -> f64 {
        let mut gap = self.gap.sample(&mut self.random);
        loop {
            let rate = f64::from(self.sources_on) * self.rate_of_source;
            let Some(mut earliest) = self.ends.peek_mut() else { return f64::INFINITY };
            let End { at_bits, on } = earliest.0;
            let end = f64::from_bits(at_bits);
            let room = rate * (end - self.now);
            if gap <= room {
                self.now += gap / rate;
                return self.now;
            }
            if end.is_infinite() {
                return f64::INFINITY;
            }
            gap -= room;
            self.now = end;
            let next_on = self.random.random_bool(ON_PROBABILITY);
            self.sources_on = self.sources_on + u32::from(next_on) - u32::from(on);
            let next_end = end + self.period.draw(&mut self.random);
            *earliest = Reverse(End { at_bits: next_end.to_bits(), on: next_on });
        }
    }
}

/// What makes the variance of counts a power law.
#[derive(Debug)]
struct Shape {
    period: Period,
    /// Index of dispersion of the gaps: their variance, at mean 1.
    dispersion: f64,
}

/// The length, in arrivals, at which the constant part of the variance of counts is cancelled: what the
/// wavelet compares first in bins of ten. Longer lengths have so much more variance that it does not matter
/// there.
const CANCELLED_AT: f64 = 40.0;
/// That bin in shortest periods, where these are long: below, the count has not yet the variance of a power
/// law.
const CANCELLED_AT_PERIODS: f64 = 6.0;

impl Shape {
    fn new(hurst: f64, sources: u32) -> Self {
        let alpha = 3.0 - 2.0 * hurst;
        let variance = (1.0 - ON_PROBABILITY) / (ON_PROBABILITY * f64::from(sources));
        let linear = (2.0 / (2.0 - alpha) - alpha - 1.0) / alpha * variance;
        let shortest = (1.0 / linear).min(2.0 / variance.sqrt());
        let matched = linear * shortest;
        let of_periods = 2.0 / (alpha * (3.0 - alpha)) + 2.0 * (alpha - 1.0) / (3.0 * alpha) - 1.0;
        let constant = variance * shortest * shortest * of_periods + (1.0 - matched * matched) / 6.0;
        // The wavelet's energy at a length m is 4 V(m / 2) - V(m): three times a constant, m times a slope.
        let length = CANCELLED_AT.max(CANCELLED_AT_PERIODS * shortest);
        Self { period: Period { shortest, alpha }, dispersion: matched - 3.0 * constant / length }
    }
}

/// Pareto distributed: `P(T > t) = (t / shortest)^-alpha`.
#[derive(Debug, Clone, Copy)]
struct Period {
    shortest: f64,
    alpha: f64,
}

impl Period {
    /// A whole period.
    fn draw(self, random: &mut impl Rng) -> f64 {
        // The logarithm of a Pareto variable is exponential, which is drawn faster than a power is taken.
        let logarithm: f64 = Exp1.sample(random);
        self.shortest * (logarithm / self.alpha).exp()
    }

    /// What is left of the period that covers some moment: `P(R > t)` is the integral of `P(T > t)` from t on
    /// over the mean, which is `1 - t / mean` up to `shortest`, and `(t / shortest)^(1 - alpha) / alpha`
    /// beyond.
    fn residual(self, random: &mut impl Rng) -> f64 {
        let chance: f64 = OpenClosed01.sample(random);
        if chance * self.alpha > 1.0 {
            (1.0 - chance) * self.shortest * self.alpha / (self.alpha - 1.0)
        } else {
            self.shortest * (chance * self.alpha).powf(-1.0 / (self.alpha - 1.0))
        }
    }
}

#[cfg(test)]
mod tests;
