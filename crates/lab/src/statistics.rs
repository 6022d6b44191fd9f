//! What a few rounds tell: medians with the range that chance leaves them, and who is really before whom.
//!
//! It must never read a clock or draw its own chance: the same numbers give the same words, always.

use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::results::{Measured, Round};

/// Rounds drawn anew for one range: its ends are then those of the next seed to within a percent or two.
const RESAMPLE_COUNT: usize = 2_000;

/// The seed of every range: a file that is read again says the same.
const SEED: u64 = 2012;

/// Of the medians drawn anew, so many lie below the range, and as many above it.
const TAIL: f64 = 0.025;

/// A median, and where it may as well lie (95 %, by bootstrap).
///
/// Few rounds cannot tell more than their extremes: up to five of them the range goes from the smallest to
/// the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The value in the middle, or between the two there.
    pub median: f64,
    /// The lower end of the range.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Summary {
    /// Of numbers that were measured, in any order; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        Self::with_seed(values, SEED)
    }

    /// The same, with another seed.
    pub fn with_seed(values: &[f64], seed: u64) -> Option<Self> {
        let median = median(values)?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut drawn = vec![0.0; values.len()];
        let mut medians = Vec::with_capacity(RESAMPLE_COUNT);
        for _ in 0..RESAMPLE_COUNT {
            drawn.fill_with(|| values[random.random_range(0..values.len())]);
            medians.extend(self::median(&drawn));
        }
        let low = quantile(&medians, TAIL)?.min(median);
        let high = quantile(&medians, 1.0 - TAIL)?.max(median);
        Some(Self { median, low, high })
    }

    /// Whether chance alone may be what tells them apart.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The value in the middle, or between the two there; `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The first quartile and the third.
pub fn quartiles(values: &[f64]) -> Option<(f64, f64)> {
    Some((quantile(values, 0.25)?, quantile(values, 0.75)?))
}

/// The value that this part of all lies below; between two of them in proportion.
fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = part * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    if below == above { Some(below) } else { Some(below + (above - below) * place.fract()) }
}

/// Where somebody stands among others.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Who.
    pub name: String,
    /// With what.
    pub summary: Summary,
    /// One more than the number of those that are smaller for certain: their whole range lies below this one.
    pub place: usize,
}

/// Who is before whom: by place, and within a place by median.
///
/// Two in the same place cannot be told apart: their ranges overlap. Ranges of different places may overlap
/// as well, where one is wide.
pub fn rank(entries: &[(&str, Summary)]) -> Vec<Place> {
    let place_of = |&(name, summary): &(&str, Summary)| {
        let surely_before = entries.iter().filter(|(_, other)| other.high < summary.low).count();
        Place { name: name.to_owned(), summary, place: 1 + surely_before }
    };
    let mut places: Vec<Place> = entries.iter().map(place_of).collect();
    places.sort_by(|a, b| a.place.cmp(&b.place).then(a.summary.median.total_cmp(&b.summary.median)));
    places
}

/// What a connection costs, or with keep-alive a request, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Processor time of the server, user and system.
    pub cpu_s: f64,
    /// Time that passed, for all children together: the inverse of the rate.
    pub wall_s: f64,
}

/// The cost of one round; `None` if nothing was answered.
pub fn cost(round: &Round) -> Option<Cost> {
    let answered = Some(round.client.answered).filter(|answered| *answered > 0)? as f64;
    let cpu_s = (round.server.user_s + round.server.system_s) / answered;
    Some(Cost { cpu_s, wall_s: round.client.wall_s / answered })
}

/// The mean cost over rows, a value a round: the paper's measure of a model. Each row counts the same,
/// however many loops it has. Rounds that some row lacks, or in which it was answered nothing, are left out.
pub fn mean_costs(rows: &[&Measured]) -> Vec<Cost> {
    let rounds = rows.iter().map(|row| row.rounds.len()).min().unwrap_or(0);
    let of_round = |index: usize| -> Option<Cost> {
        let costs: Vec<Cost> = rows.iter().map(|row| cost(&row.rounds[index])).collect::<Option<_>>()?;
        let mean = |of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>() / costs.len() as f64;
        Some(Cost { cpu_s: mean(|cost| cost.cpu_s), wall_s: mean(|cost| cost.wall_s) })
    };
    (0..rounds).filter_map(of_round).collect()
}

#[cfg(test)]
mod tests;
