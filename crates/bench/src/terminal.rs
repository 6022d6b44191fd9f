//! The report as text: a table of bars, then the figures of each scenario.
//!
//! It owns columns and colours. Colour is used only when the caller says that there is a terminal.
use std::fmt::Write;

use staunch_figures::statistics::Spread;
use staunch_figures::style::{BAD, GOOD, LOUD, QUIET, paint};
use staunch_figures::table::lines;
use staunch_figures::words::number;

use crate::report::{Bar, BarVerdict, Direction, Report, ScenarioOutcome};

/// The whole report.
pub(super) fn text(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    let paint = |words: &str, code: &str| paint(words, code, colour);
    let _ =
        writeln!(text, "{}", paint(&format!("Staunch benchmark {} ({})", report.began, report.commit), LOUD));
    let machine: Vec<String> = report.machine.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let _ = writeln!(text, "{}\n{}", machine.join(", "), report.command);
    for outcome in &report.outcomes {
        let _ = writeln!(text, "\n{}  {}", paint(&outcome.name, LOUD), outcome.title);
        text.push_str(&figures(outcome, colour));
        if let Some(reason) = &outcome.skipped {
            let _ = writeln!(text, "  {} {reason}", paint("skipped:", QUIET));
        }
        for by in &outcome.disturbances {
            let _ = writeln!(text, "  {} {by}", paint("disturbed:", QUIET));
        }
        for error in &outcome.errors {
            let _ = writeln!(text, "  {} {error}", paint("ERROR", BAD));
        }
    }
    let _ = writeln!(text, "\n{}", paint("Bars", LOUD));
    text.push_str(&bars(report, colour));
    text
}

/// A line per bar, then the count.
fn bars(report: &Report, colour: bool) -> String {
    let mut rows = Vec::new();
    let mut codes = Vec::new();
    for outcome in &report.outcomes {
        for bar in &outcome.bars {
            let (verdict, code) = verdict_words(bar.verdict);
            codes.push(code);
            let measured = measured_words(bar);
            let limit = limit_words(bar);
            rows.push(
                [verdict, &outcome.name, &bar.server, &bar.promise, &limit, &measured]
                    .map(str::to_owned)
                    .to_vec(),
            );
        }
    }
    let mut text = columns(&rows, &codes, colour);
    let passed = codes.iter().filter(|code| **code == GOOD).count();
    let failed = report.outcomes.iter().filter(|outcome| !outcome.errors.is_empty()).count();
    let _ = write!(text, "  {passed} of {} bars passed", rows.len());
    let skipped = report.outcomes.iter().filter(|outcome| outcome.skipped.is_some()).count();
    for (count, words) in [(failed, "with errors"), (skipped, "skipped")] {
        if count > 0 {
            let _ = write!(text, ", {count} scenarios {words}");
        }
    }
    text.push('\n');
    text
}

/// A line per server, a column per measure.
fn figures(outcome: &ScenarioOutcome, colour: bool) -> String {
    let measures = outcome.measures();
    let mut header = vec![String::new()];
    header.extend(measures.iter().map(|(measure, unit)| heading(measure, unit)));
    let mut rows = vec![header];
    let mut servers: Vec<&str> = Vec::new();
    for figure in &outcome.figures {
        if !servers.contains(&figure.server.as_str()) {
            servers.push(&figure.server);
        }
    }
    for server in servers {
        let mut row = vec![server.to_owned()];
        row.extend(measures.iter().map(|(measure, _)| {
            outcome.spread(server, measure).map_or_else(String::new, |spread| spread.text(number))
        }));
        rows.push(row);
    }
    let codes: Vec<&str> = (0..rows.len()).map(|row| if row == 0 { QUIET } else { "" }).collect();
    if rows.len() == 1 { String::new() } else { columns(&rows, &codes, colour) }
}

/// The verdict as a word and its colour.
pub(super) fn verdict_words(verdict: BarVerdict) -> (&'static str, &'static str) {
    match verdict {
        BarVerdict::Pass => ("pass", GOOD),
        BarVerdict::Missed => ("MISSED", BAD),
        BarVerdict::NotMeasured => ("not measured", QUIET),
    }
}

/// The limit with its sign.
pub(super) fn limit_words(bar: &Bar) -> String {
    let sign = if bar.direction == Direction::AtMost { "at most" } else { "at least" };
    format!("{sign} {} {}", number(bar.limit), bar.unit).trim_end().to_owned()
}

/// A measure with its unit, if it has one.
pub(super) fn heading(measure: &str, unit: &str) -> String {
    if unit.is_empty() { measure.to_owned() } else { format!("{measure}, {unit}") }
}

/// What a bar measured, with its range.
pub(super) fn measured_words(bar: &Bar) -> String {
    Spread::of(&bar.samples).map_or_else(|| "-".to_owned(), |spread| spread.text(number))
}

/// The first cell of a row in its colour, or the whole row where that cell is empty: the heads of columns.
fn columns(rows: &[Vec<String>], codes: &[&str], colour: bool) -> String {
    let mut text = String::new();
    for ((line, row), code) in lines(rows, &[]).iter().zip(rows).zip(codes) {
        let painted = match row.first().filter(|name| !name.is_empty()) {
            _ if code.is_empty() => line.clone(),
            None => paint(line, code, colour),
            Some(name) => paint(name, code, colour) + &line[name.len()..],
        };
        let _ = writeln!(text, "  {painted}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_plain_without_colour() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", "bb"]), row(["ccc", "d"]), row(["", "e"])];
        assert_eq!(columns(&rows, &[GOOD, BAD, QUIET], false), "  a    bb\n  ccc  d\n       e\n");
        assert!(columns(&rows, &[GOOD, BAD, ""], true).contains("  \x1b[32ma\x1b[0m    bb\n"));
    }
}
