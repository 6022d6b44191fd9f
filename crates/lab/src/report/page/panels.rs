//! Small plots, one a model: cost as one thing grows, and how connections were spread.
//!
//! It must never draw a line between rows that differ in more than what grows and in loops.
use staunch_figures::plot::{Axis, Plot, Series, Shape, figure};
use staunch_figures::statistics::{Summary, median};
use staunch_figures::words;

use crate::ranking::cost;
use crate::report::rows::{PROTOCOLS, shares};
use crate::results::{AskedBy, Measured, Protocol, Results, Row};
use crate::statistics::mean_costs;

/// The classes of lines, in their order. A panel with more lines could not be read.
const CLASSES: [&str; 4] = ["in_time", "wrong_answer", "timed_out", "refused"];

/// Of the spread: places along the axis, each a part of the pool.
const PLACES: usize = 20;

pub(super) const SPREAD_TITLE: &str = "Who served how many";
pub(super) const SPREAD_NOTE: &str = "\
Processes or threads of each pool, from the busiest (0 %) to the idlest (100 %), and how many connections \
each took; 100 is an even share. Where the line falls steeply a few did most of the work. Once the kernel \
woke every process for each connection, and who came first was chance: the thundering herd.";

/// What grows along the axis.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Over {
    Children,
    Pool,
    Bytes,
}

impl Over {
    fn name(self) -> &'static str {
        match self {
            Self::Children => "children",
            Self::Pool => "pool",
            Self::Bytes => "bytes",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Children => "What an answer costs as children grow",
            Self::Pool => "What an answer costs as the pool grows",
            Self::Bytes => "What an answer costs as the answer grows",
        }
    }

    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Children => {
                "Across: children of the client, logarithmic; each has one connection at a time. Upright: \
                 microseconds of the server's processors for each answer. The dashed line is the cheapest of \
                 all models asked the same as the first line. Each panel has its own height: \
                 read the figures at its edge."
            }
            Self::Pool => {
                "Across: processes or threads made in advance, logarithmic. Upright: microseconds of the \
                 server's processors for each answer."
            }
            Self::Bytes => {
                "Across: bytes of an answer, logarithmic. Upright: microseconds of the server's processors \
                 for each answer. The dashed line is the cheapest of all models asked the same as the first \
                 line."
            }
        }
    }

    fn of(self, row: &Row) -> usize {
        match self {
            Self::Children => row.children,
            Self::Pool => row.pool,
            Self::Bytes => row.bytes,
        }
    }

    /// All that must be the same along a line, 0 for what grows. Loops do not matter to a mean.
    fn key(self, row: &Row) -> Key {
        let unless = |over, number| if self == over { 0 } else { number };
        Key {
            protocol: row.protocol,
            children: unless(Self::Children, row.children),
            pool: unless(Self::Pool, row.pool),
            bytes: unless(Self::Bytes, row.bytes),
            client: row.client,
        }
    }
}

/// What is the same along a line.
#[derive(Clone, Copy, PartialEq)]
struct Key {
    protocol: Protocol,
    children: usize,
    pool: usize,
    bytes: usize,
    client: AskedBy,
}

/// The rows of one line.
struct Line<'a> {
    key: Key,
    rows: Vec<&'a Measured>,
    places: Vec<usize>,
}

/// A panel for each model of which two places were measured.
pub(super) fn panels(results: &Results, over: Over) -> String {
    models(results).into_iter().filter_map(|model| panel(results, over, model)).collect()
}

fn models(results: &Results) -> Vec<&str> {
    let mut models: Vec<&str> = Vec::new();
    for one in &results.rows {
        if !models.contains(&&*one.row.model) {
            models.push(&one.row.model);
        }
    }
    models
}

fn panel(results: &Results, over: Over, model: &str) -> Option<String> {
    let lines = lines(results, over, model);
    let mut places: Vec<usize> = lines.iter().flat_map(|line| line.places.iter().copied()).collect();
    places.sort_unstable();
    places.dedup();
    let mut series = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let costs: Vec<Option<Summary>> = places.iter().map(|place| at(&line.rows, over, *place)).collect();
        series.push(Series {
            class: class(number, &lines),
            label: label(&line.key, &lines),
            values: costs.iter().map(|cost| cost.map(|cost| cost.median * 1e6)).collect(),
            shape: Shape::Range(
                costs.iter().map(|cost| cost.map(|cost| (cost.low * 1e6, cost.high * 1e6))).collect(),
            ),
        });
    }
    let first = lines.first()?.key;
    if over != Over::Pool {
        let cheapest = places.iter().map(|place| cheapest(results, over, &first, *place)).collect();
        series.insert(0, Series::dashed("unsent", "cheapest model", cheapest));
    }
    let y = Axis::linear(0.0, highest(&series), true, "us", words::short);
    let said = if over == Over::Bytes { words::short_bytes } else { words::short };
    let places: Vec<f64> = places.into_iter().map(|place| place as f64).collect();
    let x = Axis::fitted(places.iter().copied(), over.name(), said);
    let plot = Plot { title: model.to_owned(), note: String::new(), x, y, places, series };
    Some(figure(&format!("{}-{model}", over.name()), &plot))
}

/// The largest value, be it the end of a range.
fn highest(series: &[Series]) -> f64 {
    let ends = series.iter().flat_map(|one| match &one.shape {
        Shape::Range(ranges) => ranges.iter().flatten().map(|(_, high)| *high).collect(),
        _ => one.values.iter().flatten().copied().collect::<Vec<f64>>(),
    });
    ends.fold(0.0, f64::max)
}

/// The lines with the most places, at most one a class.
fn lines<'a>(results: &'a Results, over: Over, model: &str) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let is_drawn =
        |one: &&Measured| one.row.model == model && over.of(&one.row) > 0 && !mean_costs(&[one]).is_empty();
    for one in results.rows.iter().filter(is_drawn) {
        let (key, place) = (over.key(&one.row), over.of(&one.row));
        let known = lines.iter_mut().find(|line| line.key == key);
        match known {
            Some(line) => {
                line.rows.push(one);
                if !line.places.contains(&place) {
                    line.places.push(place);
                }
            }
            None => lines.push(Line { key, rows: vec![one], places: vec![place] }),
        }
    }
    lines.retain(|line| line.places.len() > 1);
    lines.sort_by_key(|line| std::cmp::Reverse(line.places.len()));
    lines.truncate(CLASSES.len());
    lines
}

fn at(rows: &[&Measured], over: Over, place: usize) -> Option<Summary> {
    cost(&rows.iter().copied().filter(|one| over.of(&one.row) == place).collect::<Vec<_>>())
}

/// The least of all models at a place of a line, whatever their pools.
fn cheapest(results: &Results, over: Over, key: &Key, place: usize) -> Option<f64> {
    let is_same = |one: &&Measured| {
        let its = over.key(&one.row);
        (its.protocol, its.children, its.bytes, its.client)
            == (key.protocol, key.children, key.bytes, key.client)
            && over.of(&one.row) == place
    };
    let cpu = |one: &Measured| {
        median(&mean_costs(&[one]).iter().map(|cost| cost.cpu_s * 1e6).collect::<Vec<f64>>())
    };
    results.rows.iter().filter(is_same).filter_map(cpu).min_by(f64::total_cmp)
}

/// A colour for each way to speak, the same in all panels, where that is what tells lines apart.
fn class(number: usize, lines: &[Line<'_>]) -> &'static str {
    let protocol = lines[number].key.protocol;
    let is_alone =
        |line: &Line<'_>| lines.iter().filter(|other| other.key.protocol == line.key.protocol).count() == 1;
    let spoken = PROTOCOLS.iter().position(|one| *one == protocol).unwrap_or(0);
    CLASSES[if lines.iter().all(is_alone) { spoken } else { number }]
}

/// What tells this line from the others of its panel.
fn label(key: &Key, lines: &[Line<'_>]) -> String {
    let differs = |of: fn(&Key) -> usize| lines.iter().any(|line| of(&line.key) != of(key));
    let mut words = Vec::new();
    if lines.iter().any(|line| line.key.protocol != key.protocol) || key.protocol != Protocol::Paper {
        words.push(match key.protocol {
            Protocol::Paper => "paper".to_owned(),
            Protocol::Http => "HTTP".to_owned(),
            Protocol::KeepAlive => "keep-alive".to_owned(),
        });
    }
    if differs(|key| key.children) {
        words.push(format!("{} children", key.children));
    }
    if differs(|key| key.pool) || key.pool > 0 {
        words.push(format!("pool {}", key.pool));
    }
    if differs(|key| key.bytes) {
        words.push(words::short_bytes(key.bytes as f64));
    }
    if lines.iter().any(|line| line.key.protocol == key.protocol && line.key.client != key.client) {
        words.push(match key.client {
            AskedBy::Processes => "by processes".to_owned(),
            AskedBy::Threads => "by threads".to_owned(),
            AskedBy::Epoll => "by epoll".to_owned(),
        });
    }
    if words.is_empty() { "this model".to_owned() } else { words.join(", ") }
}

/// A panel for each model that counted the connections of its processes or threads.
pub(super) fn spread(results: &Results) -> String {
    models(results).into_iter().filter_map(|model| spread_of(results, model)).collect()
}

fn spread_of(results: &Results, model: &str) -> Option<String> {
    let mut rows: Vec<(&Row, Vec<f64>)> = results
        .rows
        .iter()
        .filter(|one| one.row.model == model && one.row.protocol != Protocol::KeepAlive)
        .filter_map(|one| Some((&one.row, shares(one)?)))
        .collect();
    // Of each size the row with the most connections, and of the sizes the largest.
    rows.sort_by_key(|(row, shares)| (std::cmp::Reverse(shares.len()), connections_reversed(row)));
    rows.dedup_by_key(|(_, shares)| shares.len());
    rows.truncate(CLASSES.len() - 1);
    let places: Vec<f64> = (0..=PLACES).map(|place| place as f64 * 100.0 / PLACES as f64).collect();
    let mut series = vec![Series::dashed("unsent", "even", vec![Some(100.0); places.len()])];
    for ((row, shares), class) in rows.iter().zip(CLASSES) {
        let last = (shares.len() - 1) as f64;
        let even = shares.iter().sum::<f64>() / shares.len() as f64;
        let share = |place: &f64| Some(shares[(place / 100.0 * last).round() as usize] / even * 100.0);
        let label = format!("{} for {} children", shares.len(), row.children);
        series.push(Series::line(class, &label, places.iter().map(share).collect()));
    }
    if series.len() == 1 {
        return None;
    }
    let most = highest(&series);
    // None at 0: it would stand on the one of the upright axis.
    let ticks = [25.0, 50.0, 75.0, 100.0].into_iter().map(|place| (place, percent(place)));
    let plot = Plot {
        title: model.to_owned(),
        note: String::new(),
        x: Axis::ticked(0.0, 100.0, ticks.collect(), "part of the pool, the busiest first", percent),
        y: Axis::linear(0.0, most, true, "% of an even share", words::short),
        places,
        series,
    };
    Some(figure(&format!("spread-{model}"), &plot))
}

fn connections_reversed(row: &Row) -> std::cmp::Reverse<u64> {
    std::cmp::Reverse(row.children as u64 * row.loops)
}

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn a_line_joins_rows_that_differ_in_what_grows_alone() {
        let results = made_up::results();
        let of = |over, model| lines(&results, over, model);
        let iterative = of(Over::Children, "iterative");
        assert_eq!(iterative.len(), 1);
        assert_eq!(iterative[0].places, [1, 2, 4, 10, 15]);
        assert_eq!(iterative[0].rows.len(), 6, "both numbers of loops of one child");
        let prefork: Vec<(usize, Vec<usize>)> =
            of(Over::Children, "prefork").iter().map(|line| (line.key.pool, line.places.clone())).collect();
        assert_eq!(prefork, [(15, vec![1, 10]), (2, vec![10, 100])]);
        let pools: Vec<Vec<usize>> =
            of(Over::Pool, "prefork").iter().map(|line| line.places.clone()).collect();
        assert_eq!(pools, [vec![100, 2, 20], vec![15, 2]]);
        assert!(of(Over::Pool, "iterative").is_empty());
        assert_eq!(of(Over::Bytes, "iterative")[0].places.len(), 3);
    }

    #[test]
    fn lines_are_told_apart_by_what_differs() {
        let results = made_up::results();
        let labels = |over, model| {
            let lines = lines(&results, over, model);
            lines.iter().map(|line| label(&line.key, &lines)).collect::<Vec<String>>()
        };
        assert_eq!(labels(Over::Children, "iterative"), ["this model"]);
        assert_eq!(labels(Over::Children, "prefork"), ["pool 15", "pool 2"]);
        assert_eq!(labels(Over::Pool, "prefork"), ["100 children", "10 children"]);
        assert_eq!(labels(Over::Children, "staunch-epoll"), ["HTTP", "keep-alive"]);
    }

    #[test]
    fn the_cheapest_is_of_all_models() {
        let results = made_up::results();
        let key = Over::Children.key(&results.rows[0].row);
        let cheapest = cheapest(&results, Over::Children, &key, 100).expect("a model with 100 children");
        assert!((cheapest - 116.6).abs() < 0.1, "{cheapest}");
    }
}
