//! Which model is before which, by mean time for each connection.
//!
//! Models are compared on questions that all of them were asked: so many children, loops and bytes. Of models
//! with a pool count the sizes that all of them had at that question, together; where they have none in
//! common, all sizes count. It must never compare models that were asked different things.
use staunch_figures::statistics::Summary;

use crate::results::{AskedBy, Measured, Protocol, Results, Row};
use crate::statistics::{Rank, mean_costs, rank};

/// What the client asked, whatever answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// How it spoke.
    pub protocol: Protocol,
    /// Children of the client, each with connections of its own.
    pub children: usize,
    /// Connections or requests of each.
    pub loops: u64,
    /// Bytes of each answer.
    pub bytes: usize,
    /// What its children are.
    pub client: AskedBy,
}

impl Question {
    /// What was asked in this row.
    pub fn of(row: &Row) -> Self {
        let Row { protocol, children, loops, bytes, client, .. } = *row;
        Self { protocol, children, loops, bytes, client }
    }
}

/// Models in the order of their cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// What all of them were asked.
    pub questions: Vec<Question>,
    /// Cheapest first, in seconds of the server's processors for each connection.
    pub places: Vec<Rank>,
}

/// The models of these rows on the questions that most of them share. Nothing if no two were asked the same.
pub fn ranking(rows: &[&Measured]) -> Option<Ranking> {
    let answered: Vec<&Measured> = rows.iter().copied().filter(|row| cost(&[row]).is_some()).collect();
    let of = |question: Question| -> Vec<&str> {
        distinct(answered.iter().filter(|one| Question::of(&one.row) == question).map(|one| &*one.row.model))
    };
    let all = distinct(answered.iter().map(|one| Question::of(&one.row)));
    // The first of those with the most models: `max_by_key` would take the last.
    let models = all.iter().map(|question| of(*question)).rev().max_by_key(Vec::len)?;
    if models.len() < 2 {
        return None;
    }
    let is_asked_of_all = |question: &Question| {
        let asked = of(*question);
        models.iter().all(|model| asked.contains(model))
    };
    let questions: Vec<Question> = all.into_iter().filter(is_asked_of_all).collect();
    let pools: Vec<Vec<usize>> =
        questions.iter().map(|question| common_pools(&answered, &models, *question)).collect();
    let cost_of = |model: &&str| {
        let is_one = |one: &&&Measured| {
            let number = questions.iter().position(|question| *question == Question::of(&one.row));
            let has_pool = |number: usize| one.row.pool == 0 || pools[number].contains(&one.row.pool);
            one.row.model == *model && number.is_some_and(has_pool)
        };
        cost(&answered.iter().filter(is_one).copied().collect::<Vec<_>>())
    };
    let entries: Vec<(&str, Summary)> =
        models.iter().filter_map(|model| Some((*model, cost_of(model)?))).collect();
    Some(Ranking { questions, places: rank(&entries) })
}

/// The sizes of pools that every model with a pool had at a question; if there is none, all sizes.
fn common_pools(rows: &[&Measured], models: &[&str], question: Question) -> Vec<usize> {
    let of = |model: &str| -> Vec<usize> {
        let is_one = |one: &&&Measured| {
            one.row.model == model && one.row.pool > 0 && Question::of(&one.row) == question
        };
        rows.iter().filter(is_one).map(|one| one.row.pool).collect()
    };
    let pools: Vec<Vec<usize>> =
        models.iter().map(|model| of(model)).filter(|pools| !pools.is_empty()).collect();
    let all = distinct(pools.iter().flatten().copied());
    let common: Vec<usize> =
        all.iter().copied().filter(|pool| pools.iter().all(|of| of.contains(pool))).collect();
    if common.is_empty() { all } else { common }
}

/// The rows of one protocol.
pub fn spoken(results: &Results, protocol: Protocol) -> Vec<&Measured> {
    results.rows.iter().filter(|one| one.row.protocol == protocol).collect()
}

/// The rows that the paper's client asked by the paper's protocol.
pub fn as_the_paper_asked(results: &Results) -> Vec<&Measured> {
    spoken(results, Protocol::Paper).into_iter().filter(|one| one.row.client == AskedBy::Processes).collect()
}

/// Processor time of the server for each connection, in seconds; the mean of several rows, each of the same
/// weight. Nothing if nothing was answered.
pub fn cost(rows: &[&Measured]) -> Option<Summary> {
    let costs: Vec<f64> = mean_costs(rows).iter().map(|cost| cost.cpu_s).collect();
    Summary::of(&costs)
}

/// Each once, in the order of their first appearance.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::measured;

    fn names(ranking: &Ranking) -> Vec<(&str, usize)> {
        ranking.places.iter().map(|place| (place.name.as_str(), place.place)).collect()
    }

    #[test]
    fn models_are_compared_on_what_all_were_asked() {
        let rows = [
            measured("fork", (10, 500, 4000, 0), &[200.0, 201.0, 202.0]),
            measured("iterative", (10, 500, 4000, 0), &[30.0, 31.0, 32.0]),
            // What only one was asked does not count, be it ever so cheap.
            measured("fork", (1, 500, 4, 0), &[1.0, 1.0, 1.0]),
            // Two sizes of a pool count together, but not a third that others had not.
            measured("prefork", (10, 500, 4000, 2), &[30.0, 30.0, 30.0]),
            measured("prefork", (10, 500, 4000, 20), &[33.0, 33.0, 33.0]),
            measured("prefork", (10, 500, 4000, 500), &[99.0, 99.0, 99.0]),
            measured("prethread", (10, 500, 4000, 2), &[40.0, 40.0, 40.0]),
            measured("prethread", (10, 500, 4000, 20), &[60.0, 60.0, 60.0]),
        ];
        let ranking = ranking(&rows.iter().collect::<Vec<_>>()).expect("a ranking");
        assert_eq!(ranking.questions.len(), 1);
        assert_eq!(names(&ranking), [("iterative", 1), ("prefork", 1), ("prethread", 3), ("fork", 4)]);
        assert!((ranking.places[1].summary.median - 31.5e-6).abs() < 1e-12, "{ranking:?}");
    }

    #[test]
    fn nothing_is_compared_with_nothing() {
        assert_eq!(ranking(&[]), None);
        let alone = measured("fork", (1, 1, 1, 0), &[1.0]);
        assert_eq!(ranking(&[&alone]), None);
        let (a, b) = (measured("a", (1, 1, 1, 0), &[1.0]), measured("b", (1, 2, 1, 0), &[1.0]));
        assert_eq!(ranking(&[&a, &b]), None);
        let silent = measured("b", (1, 1, 1, 0), &[]);
        assert_eq!(ranking(&[&a, &silent]), None);
        let mut otherwise = measured("b", (1, 1, 1, 0), &[1.0]);
        otherwise.row.client = AskedBy::Epoll;
        assert_eq!(ranking(&[&a, &otherwise]), None);
    }
}
