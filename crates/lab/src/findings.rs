//! The paper's six findings, tested one by one against what was measured here.
//!
//! It owns what each finding says, in our words, and which rows decide it. It must never measure, and
//! it never says more than the rows: a finding of which the plan lacks a row is not measured.
//!
//! The paper speaks of system time; here it is the processor time of the server, user and system together.
//! Their sum the kernel counts exactly, and in the paper's own table all but 1 % is system time.

mod claims;
pub mod comparison;

use std::ops::Range;

pub use self::claims::claims;
use crate::evidence::{ClaimVerdict, Evidence, Figures, compare, difference, extremes, growing};
use crate::ranking::{Question, as_the_paper_asked, cost};
use crate::results::{Measured, Results, Row};

/// A finding of the six.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperFinding {
    /// The model it is about.
    pub model: &'static str,
    /// What it says of, in a few words.
    pub title: &'static str,
    /// Its claims.
    pub parts: Vec<Part>,
}

impl PaperFinding {
    /// Confirmed if all of its claims are, refuted if one is.
    pub fn verdict(&self) -> ClaimVerdict {
        ClaimVerdict::of_parts(self.parts.iter().map(|part| part.verdict))
    }
}

/// A claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What is claimed.
    pub claim: String,
    /// What the data say of it.
    pub verdict: ClaimVerdict,
    /// The cases that decide it.
    pub evidence: Vec<Evidence>,
    /// Why it is otherwise today, if it is; empty where nothing is known.
    pub cause: &'static str,
}

impl Part {
    fn of(claim: &str, evidence: Vec<Evidence>, cause: &'static str) -> Self {
        let verdict = ClaimVerdict::of_cases(evidence.iter().map(|case| case.verdict));
        Self { claim: claim.to_owned(), verdict, evidence, cause }
    }
}

/// Costs more.
const MORE: Range<f64> = 1.0..f64::INFINITY;
/// Costs less.
const LESS: Range<f64> = 0.0..1.0;
/// Costs 30 to 40 % less.
const THIRD_LESS: Range<f64> = 0.6..0.7;
/// Costs a half to a third.
const HALF_TO_THIRD: Range<f64> = 1.0 / 3.0..0.5;
/// What the longest answer costs beside the shortest if sending is at most a quarter of it.
const QUARTER_FOR_BYTES: Range<f64> = 0.0..4.0 / 3.0;

/// A straight line must explain this much to be called one.
const LINE_R_SQUARED: f64 = 0.99;

/// Numbers of connections that differ by less than this are the same: scaled loops are whole numbers.
const SAME_TOTAL: f64 = 0.1;

const NO_SLEEP: &str = "\
    With one child the server sleeps after each connection until the child makes the next, and falling \
    asleep and waking up is a good part of what a connection costs. With more children the next \
    connection is there already (see the column of switches): that may save more than more clients cost.";
const SLEEP_HAS_ITS_PRICE: &str = "\
    What more children save is the sleep between two connections (see the column of switches). How much \
    that is depends on what a wake-up costs on the machine, and on how many children leave no time to \
    fall asleep.";
const FORK_HIDES_IT: &str = "\
    More children save the sleep between two connections, but beside the price of a fork that hardly \
    shows.";
const FORK_STAYS_DEAR: &str = "\
    A connection has become much cheaper since, a fork hardly: page tables are copied, and each child \
    takes its page faults anew (see the column of faults).";
const ONE_IS_WOKEN: &str = "\
    Linux wakes one waiter for each connection, the one that has waited longest. Those that sleep cost \
    memory, but no time.";

/// All six, in the paper's order.
pub fn findings(results: &Results) -> Vec<PaperFinding> {
    let rows = as_the_paper_asked(results);
    let of = |model: &str| Rows { model: model.to_owned(), of_model: of_model(&rows, model) };
    let [iterative, fork, prefork] = ["iterative", "fork", "prefork"].map(of);
    let [thread, prethread, handover] = ["thread", "prethread", "prethread-handover"].map(of);
    vec![
        PaperFinding {
            model: "iterative",
            title: "The iterative server",
            parts: vec![iterative.line(), iterative.third_less(), iterative.bytes()],
        },
        PaperFinding {
            model: "fork",
            title: "A process for each client",
            parts: vec![fork.same_total(LESS, "costs less when more children make it", FORK_HIDES_IT)],
        },
        PaperFinding {
            model: "prefork",
            title: "Pre-forked processes",
            parts: vec![
                prefork.same_loops(
                    "With the same pool a connection costs a little more when there are more children",
                ),
                prefork.pools("The fewer processes in the pool, the less a connection costs"),
                prefork.beside(
                    &fork,
                    HALF_TO_THIRD,
                    "It takes a half to a third of the time of a process for each client",
                ),
            ],
        },
        PaperFinding {
            model: "thread",
            title: "A thread for each client",
            parts: vec![
                thread.same_total(MORE, "costs more when more children make it", NO_SLEEP),
                thread.beside(&fork, LESS, "It is cheaper than a process for each client"),
            ],
        },
        PaperFinding {
            model: "prethread",
            title: "Pre-threaded, each accepts",
            parts: vec![
                prethread.pools("The fewer threads in the pool, the less a connection costs"),
                prethread.same_total(MORE, "costs more when more children make it", NO_SLEEP),
                prethread.beside(&thread, LESS, "It is cheaper than a thread for each client"),
            ],
        },
        PaperFinding {
            model: "prethread-handover",
            title: "Pre-threaded, the main thread accepts",
            parts: vec![
                handover.same_loops(
                    "When each child makes as many connections, more children make each of them dearer",
                ),
                handover.same_total(MORE, "costs more when more children make it", NO_SLEEP),
                handover.beside(
                    &prethread,
                    MORE,
                    "It is slightly dearer than the pool in which each accepts",
                ),
            ],
        },
    ]
}

/// The rows of one model.
struct Rows<'a> {
    model: String,
    of_model: Vec<&'a Measured>,
}

impl<'a> Rows<'a> {
    /// Costs of pairs, each the second in place of the first.
    fn cases(&self, pairs: &[(&Measured, &Measured)], times: &Range<f64>) -> Vec<Evidence> {
        let case = |(first, second): &(&Measured, &Measured)| {
            compare(difference(&first.row, &second.row), &[first], &[second], times)
        };
        pairs.iter().filter_map(case).collect()
    }

    /// As many connections by one child, or by as few as there were, and by more of them.
    fn totals(&self) -> Vec<(&'a Measured, &'a Measured)> {
        let total = |row: &Row| (row.children as u64 * row.loops) as f64;
        let is_same = |a: &Row, b: &Row| {
            (a.bytes, a.pool) == (b.bytes, b.pool) && (total(a) / total(b) - 1.0).abs() < SAME_TOTAL
        };
        growing(&self.of_model, is_same, |row| row.children)
    }

    fn same_total(&self, times: Range<f64>, claim: &str, cause: &'static str) -> Part {
        let claim = format!("The same number of connections {claim}");
        Part::of(&claim, self.cases(&self.totals(), &times), cause)
    }

    fn third_less(&self) -> Part {
        let claim = "The same number of connections costs 30 to 40 % less when more children make it";
        Part::of(claim, self.cases(&self.totals(), &THIRD_LESS), SLEEP_HAS_ITS_PRICE)
    }

    /// As many connections of each child.
    fn same_loops(&self, claim: &str) -> Part {
        let is_same = |a: &Row, b: &Row| (a.bytes, a.pool, a.loops) == (b.bytes, b.pool, b.loops);
        let pairs = extremes(&self.of_model, is_same, |row| row.children);
        Part::of(claim, self.cases(&pairs, &MORE), NO_SLEEP)
    }

    /// The smallest pool in place of the largest.
    fn pools(&self, claim: &str) -> Part {
        let is_same = |a: &Row, b: &Row| Question::of(a) == Question::of(b);
        let pairs: Vec<_> = extremes(&self.of_model, is_same, |row| row.pool)
            .into_iter()
            .map(|(least, most)| (most, least))
            .collect();
        Part::of(claim, self.cases(&pairs, &LESS), ONE_IS_WOKEN)
    }

    fn bytes(&self) -> Part {
        let is_same = |a: &Row, b: &Row| (a.children, a.loops, a.pool) == (b.children, b.loops, b.pool);
        let pairs = extremes(&self.of_model, is_same, |row| row.bytes);
        let claim =
            "Sending the answer is a small part of the cost: a quarter at most, of the longest answer";
        Part::of(claim, self.cases(&pairs, &QUARTER_FOR_BYTES), "")
    }

    /// This model in place of another one, on every question both were asked; pools count together.
    fn beside(&self, other: &Rows<'_>, times: Range<f64>, claim: &str) -> Part {
        let mut questions: Vec<Question> = Vec::new();
        let mut evidence = Vec::new();
        for question in self.of_model.iter().map(|one| Question::of(&one.row)) {
            if questions.contains(&question) {
                continue;
            }
            questions.push(question);
            let what = format!(
                "{} x {}, {} B: {} instead of {}",
                question.children, question.loops, question.bytes, self.model, other.model
            );
            evidence.extend(compare(what, &other.asked(question), &self.asked(question), &times));
        }
        let cause = if times == HALF_TO_THIRD { FORK_STAYS_DEAR } else { "" };
        Part::of(claim, evidence, cause)
    }

    fn asked(&self, question: Question) -> Vec<&'a Measured> {
        self.of_model.iter().copied().filter(|one| Question::of(&one.row) == question).collect()
    }

    /// Processor time over children, each with as many connections.
    fn line(&self) -> Part {
        let mut groups: Vec<Vec<&Measured>> = Vec::new();
        let key = |one: &Measured| (one.row.loops, one.row.bytes, one.row.pool);
        for one in &self.of_model {
            match groups.iter_mut().find(|group| key(group[0]) == key(one)) {
                Some(group) => group.push(one),
                None => groups.push(vec![one]),
            }
        }
        let claim = "Processor time grows in a straight line with the client's children";
        Part::of(claim, groups.iter().filter_map(|group| line(group)).collect(), "")
    }
}

/// Whether the processor time of these rows lies on a line over their children. Two points always do.
fn line(rows: &[&Measured]) -> Option<Evidence> {
    let points: Vec<(f64, f64)> = rows
        .iter()
        .filter_map(|one| {
            let connections = one.row.children as f64 * one.row.loops as f64;
            Some((one.row.children as f64, cost(&[one])?.median * connections))
        })
        .collect();
    let r_squared = r_squared(&points).filter(|_| points.len() > 2)?;
    let children: Vec<String> = rows.iter().map(|one| one.row.children.to_string()).collect();
    let what = format!("{} children x {}, {} B", children.join(", "), rows[0].row.loops, rows[0].row.bytes);
    let verdict = if r_squared >= LINE_R_SQUARED { ClaimVerdict::Confirmed } else { ClaimVerdict::Refuted };
    Some(Evidence { what, figures: Figures::Line(r_squared), verdict })
}

/// The share of the differences that a straight line explains.
fn r_squared(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let xx = sum(&|point| (point.0 - x).powi(2));
    let yy = sum(&|point| (point.1 - y).powi(2));
    let xy = sum(&|point| (point.0 - x) * (point.1 - y));
    (xx > 0.0 && yy > 0.0).then(|| xy * xy / (xx * yy))
}

fn of_model<'a>(rows: &[&'a Measured], model: &str) -> Vec<&'a Measured> {
    rows.iter().copied().filter(|one| one.row.model == model).collect()
}

#[cfg(test)]
mod tests;
