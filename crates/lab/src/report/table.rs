//! A run as text for a terminal: every row, the rankings, the paper beside ours, findings and claims.
//!
//! It must never colour where nobody sees colours, nor hide a failed connection.
use std::fmt::Write as _;

use staunch_figures::style::{BAD, CARE, GOOD, LOUD, QUIET, paint};
use staunch_figures::table::{Align, lines, wrap};

use crate::evidence::ClaimVerdict;
use crate::findings::{Part, claims, comparison, findings};
use crate::ranking::{ranking, spoken};
use crate::report::rows;
use crate::results::{Measured, Protocol, Results};

/// Sentences are broken at this width.
const WIDTH: usize = 110;

/// The whole text, with `colour` for a terminal that shows it.
pub fn table(results: &Results, colour: bool) -> String {
    let mut text = String::new();
    let title = format!("Plan {}: {}", results.plan, rows::circumstances(results));
    let _ = writeln!(text, "{}", paint(&title, LOUD, colour));
    for protocol in rows::PROTOCOLS {
        section(&mut text, results, protocol, colour);
    }
    spreads(&mut text, results, colour);
    paper(&mut text, results, colour);
    heading(&mut text, "The paper's six findings", colour);
    for (number, finding) in (1..).zip(findings(results)) {
        let title = format!("{number}. {}", finding.title);
        let _ = writeln!(text, "  {}  {title}", verdict(finding.verdict(), colour));
        finding.parts.iter().for_each(|one| part(&mut text, one, colour));
    }
    heading(&mut text, "What Staunch claims", colour);
    claims(results).iter().for_each(|one| part(&mut text, one, colour));
    heading(&mut text, "Errors, and what was left behind", colour);
    let faults = rows::faults(results);
    if faults.is_empty() {
        sentence(&mut text, &paint(&rows::faultless(results), GOOD, colour));
    }
    for fault in faults {
        let _ = writeln!(text, "  {}", paint(&fault, BAD, colour));
    }
    text
}

fn heading(text: &mut String, words: &str, colour: bool) {
    let _ = writeln!(text, "\n{}", paint(words, LOUD, colour));
}

fn sentence(text: &mut String, words: &str) {
    for line in wrap(words, WIDTH) {
        let _ = writeln!(text, "  {line}");
    }
}

/// Rows and ranking of one way to speak.
fn section(text: &mut String, results: &Results, protocol: Protocol, colour: bool) {
    let of_protocol = spoken(results, protocol);
    if of_protocol.is_empty() {
        return;
    }
    heading(text, rows::spoken(protocol), colour);
    let mut cells = vec![rows::HEADER.map(str::to_owned).to_vec()];
    cells.extend(of_protocol.iter().map(|one| rows::cells(one)));
    let mut aligns = [Align::Right; rows::HEADER.len()];
    aligns[0] = Align::Left;
    for (number, line) in lines(&cells, &aligns).iter().enumerate() {
        let code = match number {
            0 => QUIET,
            _ if is_faulty(of_protocol[number - 1]) => BAD,
            _ => "",
        };
        let line = if code.is_empty() { line.clone() } else { paint(line, code, colour) };
        let _ = writeln!(text, "  {line}");
    }
    let Some(ranking) = ranking(&of_protocol) else { return };
    let title = format!("\n  By mean processor time for each answer; asked: {}", rows::questions(&ranking));
    let _ = writeln!(text, "{}", paint(&title, QUIET, colour));
    let mut cells = Vec::new();
    for place in &ranking.places {
        let number = rows::place_words(place, &ranking.places);
        cells.push(vec![number, place.name.clone(), rows::cost_words(&place.summary)]);
    }
    for line in lines(&cells, &[Align::Right]) {
        let _ = writeln!(text, "  {line}");
    }
}

fn is_faulty(measured: &Measured) -> bool {
    let is_faulty = |round: &crate::results::Round| round.client.failed() > 0 || !round.leaks.is_empty();
    measured.rounds.is_empty() || measured.rounds.iter().any(is_faulty)
}

/// Connections of each child or thread.
fn spreads(text: &mut String, results: &Results, colour: bool) {
    let cells: Vec<Vec<String>> = results
        .rows
        .iter()
        .filter_map(|one| {
            let asked = crate::evidence::asked(&one.row);
            Some(vec![one.row.model.clone(), asked, rows::spread(one)?])
        })
        .collect();
    if cells.is_empty() {
        return;
    }
    heading(text, "Connections of each child or thread: how many, the least of one and the most", colour);
    for line in lines(&cells, &[]) {
        let _ = writeln!(text, "  {line}");
    }
}

/// The paper's table and ranking beside ours.
fn paper(text: &mut String, results: &Results, colour: bool) {
    let both = comparison::table(results);
    if both.iter().all(|(_, ours)| ours.is_none()) {
        return;
    }
    heading(text, "Dong (2012) beside ours: processor time of the server for each connection", colour);
    let head = ["model", "asked", "bytes", "pool", "paper", "ours", "least", "most", "paper / ours"];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    for (row, ours) in both {
        let mut line = vec![row.model.to_owned(), format!("{} x {}", row.children, row.loops)];
        let pool = if row.pool > 0 { row.pool.to_string() } else { String::new() };
        line.extend([row.bytes.to_string(), pool, rows::time(row.cpu_s())]);
        if let Some(ours) = ours {
            line.extend([ours.median, ours.low, ours.high].map(rows::time));
            line.push(format!("{:.1}", row.cpu_s() / ours.median));
        }
        cells.push(line);
    }
    let mut aligns = [Align::Right; 9];
    aligns[0] = Align::Left;
    for (number, line) in lines(&cells, &aligns).iter().enumerate() {
        let line = if number == 0 { paint(line, QUIET, colour) } else { line.clone() };
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    for words in rows::agreement(results).unwrap_or_default() {
        sentence(text, &words);
    }
}

fn part(text: &mut String, part: &Part, colour: bool) {
    let _ = writeln!(text, "  {}    {}", verdict(part.verdict, colour), part.claim);
    let cells: Vec<Vec<String>> =
        part.evidence.iter().map(|case| vec![case.what.clone(), case.figures.to_string()]).collect();
    for line in lines(&cells, &[]) {
        let _ = writeln!(text, "                       {}", paint(&line, QUIET, colour));
    }
    if !part.cause.is_empty() && part.verdict == ClaimVerdict::Refuted {
        for line in wrap(part.cause, WIDTH - 21) {
            let _ = writeln!(text, "                       {line}");
        }
    }
}

/// A verdict, as wide as the longest.
fn verdict(verdict: ClaimVerdict, colour: bool) -> String {
    let code = match verdict {
        ClaimVerdict::Confirmed => GOOD,
        ClaimVerdict::Refuted => BAD,
        ClaimVerdict::NotSeparable => CARE,
        ClaimVerdict::NotMeasured => QUIET,
    };
    paint(&format!("{:<13}", verdict.to_string()), code, colour)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn the_text_has_every_row_and_every_section() {
        let results = made_up::results();
        let text = table(&results, false);
        let rows = text.lines().filter(|line| line.starts_with("  iterative  ")).count();
        // Each in the table, and beside the paper's.
        assert_eq!(rows, 2 * 8, "{text}");
        for words in [
            "The paper's protocol, a connection for each answer",
            "HTTP, a connection for each child, kept alive",
            "  1  iterative           132 us (130 us to 133 us)",
            "  prefork             1 x 5000, 4000 B, pool 15 ",
            "  15: 6.5 % to 6.8 %",
            "The paper's ranking: iterative; prethread-handover = prethread; thread; prefork; fork.",
            "  refuted        1. The iterative server",
            "  confirmed        Staunch's engine on epoll: less than every plain model, with keep-alive",
            "No connection failed, and nothing was left behind",
        ] {
            assert!(text.contains(words), "no {words:?} in:\n{text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn colours_are_for_those_who_see_them_and_faults_are_shown() {
        let mut results = made_up::results();
        results.rows[0].rounds[0].leaks.push("a process is left".into());
        let text = table(&results, true);
        assert!(text.contains("\u{1b}[31;1m") && text.contains("round 1: a process is left"));
        assert!(!text.contains("nothing was left behind"));
    }

    #[test]
    fn a_run_without_rows_has_a_text() {
        let nothing = Results { rows: Vec::new(), ..made_up::results() };
        let text = table(&nothing, false);
        assert!(text.contains("not measured") && !text.contains("NaN"), "{text}");
    }
}
