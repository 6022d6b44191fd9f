//! Arrivals in operational time, in which one is due a unit on average.
//!
//! It must never know a rate. Each share takes its points alone: threads share nothing.

use std::sync::Arc;

use rand::SeedableRng;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::arrivals::Arrivals;
use super::self_similar::SelfSimilar;
use super::share::Share;

/// The points of one share, from now on.
#[derive(Debug)]
pub(super) enum Points {
    Constant {
        next: u64,
        step: u64,
    },
    /// A point a unit and all `parts` together: a gap is `parts` units long on average.
    Poisson {
        random: Xoshiro256PlusPlus,
        now: f64,
        parts: f64,
    },
    SelfSimilar {
        all: Box<SelfSimilar>,
        /// How many points of other shares come before the next.
        skip: u32,
        parts: u32,
    },
    Trace {
        times: Arc<[u64]>,
        next: usize,
        step: usize,
    },
}

impl Points {
    /// Of arrivals that were checked.
    pub(super) fn new(arrivals: &Arrivals, seed: u64, share: Share) -> Self {
        let Share { part, parts } = share;
        match arrivals {
            Arrivals::Constant => Self::Constant { next: part.into(), step: parts.into() },
            Arrivals::Poisson => {
                // All shares draw from a single stream of numbers, each from a stretch of 2^128: none
                // overlap.
                let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
                (0..part).for_each(|_| random.jump());
                Self::Poisson { random, now: 0.0, parts: parts.into() }
            }
            Arrivals::SelfSimilar { hurst, sources } => {
                let all = Box::new(SelfSimilar::new(*hurst, *sources, seed));
                Self::SelfSimilar { all, skip: part, parts }
            }
            Arrivals::Trace(times) => {
                Self::Trace { times: Arc::clone(times), next: part as usize, step: parts as usize }
            }
        }
    }

    /// The next point; infinite when there is none.
    pub(super) fn next(&mut self) -> f64 {
        match self {
            Self::Constant { next, step } => {
                let point = *next as f64;
                *next += *step;
                point
            }
            Self::Poisson { random, now, parts } => {
                let gap: f64 = Exp1.sample(random);
                *now += gap * *parts;
                *now
            }
            Self::SelfSimilar { all, skip, parts } => {
                for _ in 0..*skip {
                    all.next();
                }
                *skip = *parts - 1;
                all.next()
            }
            Self::Trace { times, next, step } => {
                let point = times.get(*next).map_or(f64::INFINITY, |time_ns| *time_ns as f64);
                *next = next.saturating_add(*step);
                point
            }
        }
    }
}
