//! The report as one HTML page that needs nothing else: the table of bars, then a plot of every measure.
//!
//! It owns markup and colours. All words from outside are escaped.

use std::fmt::Write;

use super::figures::{Outcome, Report, Verdict};
use super::plot;
use super::terminal::{heading as measure_heading, limit_words, measured_words, verdict_words};

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub(super) fn html(report: &Report) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    let _ =
        write!(page, "<title>Staunch benchmark {}</title><style>{STYLE}</style></head><body>", report.began);
    heading(&mut page, report);
    bars(&mut page, report);
    for outcome in &report.outcomes {
        scenario(&mut page, outcome);
    }
    machine(&mut page, report);
    page.push_str("</body></html>\n");
    page
}

fn heading(page: &mut String, report: &Report) {
    let all = || report.outcomes.iter().flat_map(|outcome| &outcome.bars);
    let passed = all().filter(|bar| bar.verdict == Verdict::Pass).count();
    let _ = write!(
        page,
        "<h1>Staunch benchmark</h1><p class=\"quiet\">{} UTC, commit {}, {} rounds of {} s, one worker on \
         CPU 0, load on others</p><p><strong>{passed} of {} bars passed.</strong> Figures are medians, with \
         smallest and largest round in parentheses.</p>",
        escape(&report.began),
        escape(&report.commit),
        report.rounds,
        report.seconds,
        all().count()
    );
}

fn bars(page: &mut String, report: &Report) {
    page.push_str("<div class=\"wide\"><table><thead><tr><th>Result<th>Scenario<th>Server<th>Promise");
    page.push_str("<th>Bar<th>Measured</tr></thead><tbody>");
    for outcome in &report.outcomes {
        for bar in &outcome.bars {
            let class = match bar.verdict {
                Verdict::Pass => "pass",
                Verdict::Missed => "missed",
                Verdict::NotMeasured => "absent",
            };
            let (name, server, promise) = (escape(&outcome.name), escape(&bar.server), escape(&bar.promise));
            let _ = write!(
                page,
                "<tr><td class=\"{class}\">{}<td><a href=\"#{name}\">{name}</a><td>{server}<td>{promise}\
                 <td class=\"number\">{}<td class=\"number\">{}</tr>",
                verdict_words(bar.verdict).0,
                escape(&limit_words(bar)),
                measured_words(bar)
            );
        }
    }
    page.push_str("</tbody></table></div>");
}

fn scenario(page: &mut String, outcome: &Outcome) {
    let (name, title) = (escape(&outcome.name), escape(&outcome.title));
    let _ = write!(page, "<section><h2 id=\"{name}\">{name}</h2><p class=\"quiet\">{title}</p>");
    for error in &outcome.errors {
        let _ = write!(page, "<p class=\"error\">Error: {}</p>", escape(error));
    }
    if let Some(reason) = &outcome.skipped {
        let _ = write!(page, "<p class=\"absent\">Skipped: {}</p>", escape(reason));
    }
    for (measure, unit) in outcome.measures() {
        let words = escape(&measure_heading(measure, unit));
        let _ = write!(page, "<h3>{words}</h3>{}", plot::bars(outcome, measure, unit));
    }
    if !outcome.notes.is_empty() {
        page.push_str("<details><summary>Commands and notes</summary>");
        for note in &outcome.notes {
            let _ = write!(page, "<p><code>{}</code></p>", escape(note));
        }
        page.push_str("</details>");
    }
    page.push_str("</section>");
}

fn machine(page: &mut String, report: &Report) {
    let _ = write!(page, "<h2>Machine and versions</h2><p><code>{}</code></p><dl>", escape(&report.command));
    for (name, value) in report.machine.iter().chain(&report.versions) {
        let _ = write!(page, "<dt>{}<dd>{}", escape(name), escape(value));
    }
    page.push_str("</dl>");
}

/// Words as they may stand in a page.
pub(crate) fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_outside_cannot_become_markup() {
        let mut outcome = Outcome::new("name", "<b>title</b>");
        outcome.errors.push("<script>\"".to_owned());
        let outcome = outcome.skip("<i>no reason</i>");
        let report = Report {
            began: "2026-11-20 10:00".to_owned(),
            commit: "0123456789".to_owned(),
            command: "cargo xtask bench".to_owned(),
            machine: vec![("CPU".to_owned(), "a & b".to_owned())],
            versions: Vec::new(),
            rounds: 5,
            seconds: 4,
            outcomes: vec![outcome],
        };
        let page = html(&report);
        assert!(!page.contains("<script") && !page.contains("<b>") && !page.contains("<i>"));
        assert!(page.contains("a &amp; b") && page.contains("&lt;script&gt;&quot;"));
    }
}
