//! Costs of an answer, and models in the order of their costs.
//!
//! It must never tell models apart that chance alone may have parted.
use staunch_figures::statistics::Summary;

use crate::results::{Measured, Round};

/// Where a model stands among others.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank {
    /// The model.
    pub name: String,
    /// Its cost.
    pub summary: Summary,
    /// The place: 1, and as many as are smaller for certain, whose whole range lies below this one.
    pub place: usize,
}

/// Models in order: by place, and within a place by median.
///
/// Two in the same place cannot be told apart: their ranges overlap. Ranges of different places may overlap
/// as well, where one is wide.
pub fn rank(entries: &[(&str, Summary)]) -> Vec<Rank> {
    let place_of = |&(name, summary): &(&str, Summary)| {
        let surely_before = entries.iter().filter(|(_, other)| other.high < summary.low).count();
        Rank { name: name.to_owned(), summary, place: 1 + surely_before }
    };
    let mut places: Vec<Rank> = entries.iter().map(place_of).collect();
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

/// The mean cost over rows, a value per round: the paper's measure of a model. Each row counts the same,
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
