//! The report as text: a table of bars, then the figures of each scenario.
//!
//! It owns columns and colours. Colour is used only when the caller says that there is a terminal.

use std::fmt::Write;

use super::figures::{Bar, Direction, Outcome, Report, Summary, Verdict};

const GREEN: &str = "32";
const RED: &str = "31;1";
const GREY: &str = "2";
const BOLD: &str = "1";

/// The whole report.
pub(super) fn text(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    let paint = |words: &str, code: &str| paint(words, code, colour);
    let _ =
        writeln!(text, "{}", paint(&format!("Staunch benchmark {} ({})", report.began, report.commit), BOLD));
    let machine: Vec<String> = report.machine.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let _ = writeln!(text, "{}\n{}", machine.join(", "), report.command);
    for outcome in &report.outcomes {
        let _ = writeln!(text, "\n{}  {}", paint(&outcome.name, BOLD), outcome.title);
        text.push_str(&figures(outcome, colour));
        if let Some(reason) = &outcome.skipped {
            let _ = writeln!(text, "  {} {reason}", paint("skipped:", GREY));
        }
        for error in &outcome.errors {
            let _ = writeln!(text, "  {} {error}", paint("ERROR", RED));
        }
    }
    let _ = writeln!(text, "\n{}", paint("Bars", BOLD));
    text.push_str(&bars(report, colour));
    text
}

/// One line a bar, then the count.
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
                [verdict, &outcome.name, &bar.server, &bar.promise, &limit, &measured].map(str::to_owned),
            );
        }
    }
    let mut text = columns(&rows, &codes, colour);
    let passed = codes.iter().filter(|code| **code == GREEN).count();
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

/// One line a server, one column a measure.
fn figures(outcome: &Outcome, colour: bool) -> String {
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
            Summary::of(outcome.samples(server, measure))
                .map_or_else(String::new, |summary| range_words(&summary))
        }));
        rows.push(row);
    }
    let codes: Vec<&str> = (0..rows.len()).map(|row| if row == 0 { GREY } else { "" }).collect();
    if rows.len() == 1 { String::new() } else { columns(&rows, &codes, colour) }
}

/// The verdict as a word and its colour.
pub(super) fn verdict_words(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Pass => ("pass", GREEN),
        Verdict::Missed => ("MISSED", RED),
        Verdict::NotMeasured => ("not measured", GREY),
    }
}

/// The limit with its sign.
pub(super) fn limit_words(bar: &Bar) -> String {
    let sign = if bar.direction == Direction::AtMost { "at most" } else { "at least" };
    format!("{sign} {} {}", number_words(bar.limit), bar.unit).trim_end().to_owned()
}

/// A measure with its unit, if it has one.
pub(super) fn heading(measure: &str, unit: &str) -> String {
    if unit.is_empty() { measure.to_owned() } else { format!("{measure}, {unit}") }
}

/// What a bar measured, with its range.
pub(super) fn measured_words(bar: &Bar) -> String {
    Summary::of(&bar.samples).map_or_else(|| "-".to_owned(), |summary| range_words(&summary))
}

/// `median (min to max)`, or the median alone when there is no range.
pub(super) fn range_words(summary: &Summary) -> String {
    let [min, median, max] = [summary.min, summary.median, summary.max].map(number_words);
    if min == max { median } else { format!("{median} ({min} to {max})") }
}

/// A number with about four digits that matter and blanks between thousands.
pub(super) fn number_words(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{number:.decimals$}");
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), ""), |(whole, fraction)| (whole, fraction));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        if index > 0 && left % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { grouped } else { format!("{grouped}.{fraction}") }
}

/// Rows in aligned columns; the whole first column is painted with the row's colour.
fn columns<R: AsRef<[String]>>(rows: &[R], codes: &[&str], colour: bool) -> String {
    let count = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.as_ref().get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (row, code) in rows.iter().zip(codes) {
        let header = row.as_ref().first().is_some_and(String::is_empty);
        for (index, (cell, width)) in row.as_ref().iter().zip(&widths).enumerate() {
            let padded = format!("{cell:<width$}");
            let painted = if index == 0 || header { paint(&padded, code, colour) } else { padded };
            let _ = write!(text, "  {painted}");
        }
        let kept = text.trim_end_matches(' ').len();
        text.truncate(kept);
        text.push('\n');
    }
    text
}

fn paint(words: &str, code: &str, colour: bool) -> String {
    if colour && !code.is_empty() { format!("\x1b[{code}m{words}\x1b[0m") } else { words.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let words = [0.0, 0.65, 5.4321, 43.21, 999.9, 44_402.98, 1_234_567.0].map(number_words);
        assert_eq!(words, ["0", "0.65", "5.43", "43.2", "1 000", "44 403", "1 234 567"]);
        assert_eq!(number_words(-1234.0), "-1 234");
    }

    #[test]
    fn columns_are_aligned_and_plain_without_colour() {
        let rows = [vec!["a".to_owned(), "bb".to_owned()], vec!["ccc".to_owned(), "d".to_owned()]];
        assert_eq!(columns(&rows, &[GREEN, RED], false), "  a    bb\n  ccc  d\n");
        assert!(columns(&rows, &[GREEN, RED], true).contains("\x1b[32ma  \x1b[0m"));
    }
}
