//! What decides a claim: two costs beside each other, and the verdict that follows from their ranges.
//!
//! It must never know a claim. A verdict needs the whole range: what chance may have done decides nothing.
use std::fmt;
use std::ops::Range;

use staunch_figures::statistics::Summary;

use crate::ranking::cost;
use crate::results::{AskedBy, Measured, Row};

/// What the data say of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The claim holds, over the whole range.
    Confirmed,
    /// The claim does not hold, over the whole range.
    Refuted,
    /// The range reaches both sides.
    NotSeparable,
    /// The plan has no rows for it.
    NotMeasured,
}

impl ClaimVerdict {
    /// Of a claim that says "always": one counter-example refutes it, one case that tells confirms it, and
    /// those that do not tell are no objection.
    pub fn of_cases(cases: impl IntoIterator<Item = Self>) -> Self {
        Self::strongest(cases, [Self::Refuted, Self::Confirmed, Self::NotSeparable])
    }

    /// Of several claims together: confirmed only if all of them are.
    pub fn of_parts(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::strongest(parts, [Self::Refuted, Self::NotMeasured, Self::NotSeparable])
    }

    /// The first of these that is there; of others the first; of none that nothing was measured.
    fn strongest(all: impl IntoIterator<Item = Self>, order: [Self; 3]) -> Self {
        let all: Vec<Self> = all.into_iter().collect();
        let found = order.into_iter().find(|verdict| all.contains(verdict));
        found.or_else(|| all.first().copied()).unwrap_or(Self::NotMeasured)
    }
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
            Self::NotSeparable => "not separable",
            Self::NotMeasured => "not measured",
        })
    }
}

/// A case of a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// What was compared.
    pub what: String,
    /// The figures that were compared.
    pub figures: Figures,
    /// What they say.
    pub verdict: ClaimVerdict,
}

/// What a verdict rests on.
#[derive(Debug, Clone, PartialEq)]
pub enum Figures {
    /// Seconds of the server for each connection, first and second.
    Costs(Summary, Summary),
    /// How well a straight line explains processor time over children (1: wholly).
    Line(f64),
    /// Shares of their processors that the client and the server used.
    Shares(f64, f64),
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Costs(first, second) => {
                let change = (second.median / first.median - 1.0) * 100.0;
                let [first, second] = [first, second].map(microseconds);
                let change = match change.round() as i64 {
                    0 => "the same to 1 %".to_owned(),
                    less @ ..0 => format!("{} % less", -less),
                    more => format!("{more} % more"),
                };
                write!(f, "{change}: {first}, then {second}")
            }
            Self::Line(r_squared) => write!(f, "a straight line explains {:.2} % of it", r_squared * 100.0),
            Self::Shares(client, server) => {
                write!(f, "client {:.0} % of its processors, server {:.0} %", client * 100.0, server * 100.0)
            }
        }
    }
}

/// A cost and its range: `12.3 us (12.1 to 12.9)`.
fn microseconds(cost: &Summary) -> String {
    let [median, low, high] = [cost.median, cost.low, cost.high].map(|s| format!("{:.1}", s * 1e6));
    if low == high { format!("{median} us") } else { format!("{median} us ({low} to {high})") }
}

/// Costs of two rows, or of two groups of them. The claim is that the second is so many times the first.
/// Nothing where one of them has no cost.
pub(crate) fn compare(
    what: String,
    first: &[&Measured],
    second: &[&Measured],
    times: &Range<f64>,
) -> Option<Evidence> {
    let (first, second) = (cost(first)?, cost(second)?);
    Some(Evidence { what, verdict: judge(&first, &second, times), figures: Figures::Costs(first, second) })
}

/// Whether the second is so many times the first.
pub(crate) fn judge(first: &Summary, second: &Summary, times: &Range<f64>) -> ClaimVerdict {
    let (low, high) = (second.low / first.high, second.high / first.low);
    if low > times.start && high < times.end {
        ClaimVerdict::Confirmed
    } else if high < times.start || low > times.end {
        ClaimVerdict::Refuted
    } else {
        ClaimVerdict::NotSeparable
    }
}

/// Rows that are the same but for one number; of each group the one with the least of it, with every other.
pub(crate) fn growing<'a>(
    rows: &[&'a Measured],
    is_same: impl Fn(&Row, &Row) -> bool,
    number: fn(&Row) -> usize,
) -> Vec<(&'a Measured, &'a Measured)> {
    let mut groups: Vec<Vec<&Measured>> = Vec::new();
    for one in rows.iter().copied() {
        match groups.iter_mut().find(|group| is_same(&group[0].row, &one.row)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let pairs = groups.iter_mut().flat_map(|group| {
        group.sort_by_key(|one| number(&one.row));
        let least = group[0];
        group[1..].iter().map(move |other| (least, *other)).collect::<Vec<_>>()
    });
    pairs.filter(|(least, other)| number(&least.row) < number(&other.row)).collect()
}

/// As [`compare`], of each group only the two with the least and the most.
pub(crate) fn extremes<'a>(
    rows: &[&'a Measured],
    is_same: impl Fn(&Row, &Row) -> bool,
    number: fn(&Row) -> usize,
) -> Vec<(&'a Measured, &'a Measured)> {
    let pairs = growing(rows, is_same, number);
    let is_last =
        |index: usize| pairs.get(index + 1).is_none_or(|next| !std::ptr::eq(next.0, pairs[index].0));
    (0..pairs.len()).filter(|index| is_last(*index)).map(|index| pairs[index]).collect()
}

/// What was asked in a row: `10 x 500, 4000 B, pool 2, asked by epoll`.
pub fn asked(row: &Row) -> String {
    words(row).into_iter().filter(|word| !word.is_empty()).collect::<Vec<String>>().join(", ")
}

/// What two rows have in common, and what the second has in place of the first:
/// `10 x 500, 4000 B: pool 2 instead of pool 20`.
pub(crate) fn difference(first: &Row, second: &Row) -> String {
    let (mut common, mut new, mut old) = (Vec::new(), Vec::new(), Vec::new());
    for (first, second) in words(first).into_iter().zip(words(second)) {
        match first == second {
            true if first.is_empty() => {}
            true => common.push(first),
            false => {
                old.push(first);
                new.push(second);
            }
        }
    }
    format!("{}: {} instead of {}", common.join(", "), new.join(", "), old.join(", "))
}

fn words(row: &Row) -> [String; 4] {
    let pool = if row.pool > 0 { format!("pool {}", row.pool) } else { String::new() };
    let asked_by = asked_by(row.client).to_owned();
    [format!("{} x {}", row.children, row.loops), format!("{} B", row.bytes), pool, asked_by]
}

/// The client that asked, if it was not the paper's.
pub fn asked_by(client: AskedBy) -> &'static str {
    match client {
        AskedBy::Processes => "",
        AskedBy::Threads => "asked by threads",
        AskedBy::Epoll => "asked by epoll",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: f64, high: f64) -> Summary {
        Summary { median: (low + high) / 2.0, low, high }
    }

    #[test]
    fn a_verdict_needs_the_whole_range() {
        let more = 1.0..f64::INFINITY;
        for (second, times, verdict) in [
            (range(12.0, 13.0), more.clone(), ClaimVerdict::Confirmed),
            (range(8.0, 9.0), more.clone(), ClaimVerdict::Refuted),
            (range(10.5, 13.0), more, ClaimVerdict::NotSeparable),
            (range(10.0, 11.0), 0.0..1.05, ClaimVerdict::NotSeparable),
            (range(7.2, 7.4), 0.6..0.75, ClaimVerdict::Confirmed),
            (range(8.5, 9.0), 0.6..0.75, ClaimVerdict::Refuted),
            (range(7.0, 9.0), 0.6..0.75, ClaimVerdict::NotSeparable),
        ] {
            assert_eq!(judge(&range(10.0, 11.0), &second, &times), verdict, "{second:?} {times:?}");
        }
    }

    #[test]
    fn one_counter_example_refutes_and_every_part_counts() {
        use ClaimVerdict::{Confirmed, NotMeasured, NotSeparable, Refuted};
        for (all, cases, parts) in [
            (vec![], NotMeasured, NotMeasured),
            (vec![Confirmed], Confirmed, Confirmed),
            (vec![Confirmed, NotSeparable], Confirmed, NotSeparable),
            (vec![NotSeparable, NotSeparable], NotSeparable, NotSeparable),
            (vec![Confirmed, Refuted, NotSeparable], Refuted, Refuted),
            (vec![Confirmed, NotMeasured], Confirmed, NotMeasured),
        ] {
            assert_eq!(ClaimVerdict::of_cases(all.clone()), cases, "{all:?}");
            assert_eq!(ClaimVerdict::of_parts(all.clone()), parts, "{all:?}");
        }
    }

    #[test]
    fn pairs_grow_within_a_group() {
        let rows: Vec<Measured> = [(10, 1), (1, 1), (100, 1), (7, 2), (1, 3), (2, 3)]
            .map(|(children, loops)| crate::made_up::measured("a", (children, loops, 4, 0), &[]))
            .into();
        let rows: Vec<&Measured> = rows.iter().collect();
        let is_same = |a: &Row, b: &Row| a.loops == b.loops;
        let numbers = |pairs: Vec<(&Measured, &Measured)>| -> Vec<(usize, usize)> {
            pairs.iter().map(|(a, b)| (a.row.children, b.row.children)).collect()
        };
        let children = |row: &Row| row.children;
        assert_eq!(numbers(growing(&rows, is_same, children)), [(1, 10), (1, 100), (1, 2)]);
        assert_eq!(numbers(extremes(&rows, is_same, children)), [(1, 100), (1, 2)]);
    }

    #[test]
    fn a_difference_names_what_is_the_same_once() {
        let row = |asked| crate::made_up::measured("a", asked, &[]).row;
        let of = |first, second| difference(&row(first), &row(second));
        assert_eq!(asked(&row((10, 500, 4000, 2))), "10 x 500, 4000 B, pool 2");
        let by_epoll = Row { client: AskedBy::Epoll, ..row((10, 500, 4000, 0)) };
        assert_eq!(asked(&by_epoll), "10 x 500, 4000 B, asked by epoll");
        assert_eq!(
            of((10, 500, 4000, 20), (10, 500, 4000, 2)),
            "10 x 500, 4000 B: pool 2 instead of pool 20"
        );
        assert_eq!(of((1, 5000, 4000, 0), (10, 500, 4000, 0)), "4000 B: 10 x 500 instead of 1 x 5000");
    }

    #[test]
    fn figures_are_said() {
        let says = |first, second| Figures::Costs(first, second).to_string();
        assert_eq!(
            says(range(10e-6, 12e-6), range(5.5e-6, 5.5e-6)),
            "50 % less: 11.0 us (10.0 to 12.0), then 5.5 us"
        );
        assert!(says(range(10e-6, 10e-6), range(12e-6, 12e-6)).starts_with("20 % more: "));
        assert!(says(range(10e-6, 10e-6), range(10.01e-6, 10.01e-6)).starts_with("the same to 1 %: "));
    }
}
