//! A comparison as a table for people, and as JSON for programs.
//!
//! It must never show a difference without its interval.
use staunch_figures::style::{BAD, CARE, GOOD, LOUD, paint};
use staunch_figures::table::{Align, lines, wrap};
use staunch_figures::words;

use super::{Comparison, Difference, RUNS_MIN, Row};
use crate::report::layout;

/// As a table, notes below it, in lines of at most `width` characters as far as the table allows.
pub fn text(comparison: &Comparison, colour: bool, width: usize) -> String {
    let mut text = vec![
        format!("A  {}", words::harmless(&comparison.a)),
        format!("B  {}", words::harmless(&comparison.b)),
        String::new(),
    ];
    let header = ["", "A", "B", "difference", "95 % interval", ""].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = [header].into_iter().chain(comparison.rows.iter().map(cells)).collect();
    let aligns = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right];
    for (index, line) in lines(&rows, &aligns).iter().enumerate() {
        let code = index.checked_sub(1).map_or(LOUD, |row| code(&comparison.rows[row]));
        text.push(paint(line, code, colour && !code.is_empty()));
    }
    text.push(String::new());
    text.extend(wrap(&format!("Method: {}.", comparison.method), width));
    for note in &comparison.notes {
        let wrapped = wrap(&format!("NOTE: {}", words::harmless(note)), width);
        text.extend(wrapped.iter().map(|line| paint(line, CARE, colour)));
    }
    let tolerance = words::number(comparison.tolerance_percent);
    text.push(if !comparison.judged && !comparison.failed {
        let words = format!(
            "Too few runs to tell: give at least {RUNS_MIN} each, such as A1.json,A2.json,A3.json; \
             --judge-single-runs judges these two"
        );
        wrap(&words, width).iter().map(|line| paint(line, CARE, colour)).collect::<Vec<String>>().join("\n")
    } else if comparison.failed {
        paint(&format!("FAILED: worse by more than {tolerance} %"), BAD, colour)
    } else {
        paint(&format!("Passed: nothing is worse by more than {tolerance} %"), GOOD, colour)
    });
    text.push(String::new());
    text.join("\n")
}

/// Writes a comparison in JSON.
pub fn json(comparison: &Comparison) -> String {
    layout::write(comparison)
}

fn cells(row: &Row) -> Vec<String> {
    let percent = |value: f64| format!("{value:+.1} %");
    vec![
        row.metric.clone(),
        words::number(row.a),
        words::number(row.b),
        percent(row.difference_percent),
        row.low_percent
            .zip(row.high_percent)
            .map_or_else(|| "-".to_owned(), |(low, high)| format!("{} to {}", percent(low), percent(high))),
        match (row.verdict, row.failed) {
            (Difference::Better, _) => "better".to_owned(),
            (Difference::Worse, true) => "WORSE".to_owned(),
            (Difference::Worse, false) => "worse, tolerated".to_owned(),
            (Difference::NotSeparable, _) if row.low_percent.is_none() => String::new(),
            (Difference::NotSeparable, _) => "not separable".to_owned(),
        },
    ]
}

fn code(row: &Row) -> &'static str {
    match row.verdict {
        Difference::Better => GOOD,
        Difference::Worse if row.failed => BAD,
        Difference::Worse => CARE,
        Difference::NotSeparable => "",
    }
}
