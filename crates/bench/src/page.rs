//! The report as one HTML page that needs nothing else: the table of bars, then a plot of every measure.
//!
//! It owns the order of the page. All words from outside are escaped.
use std::fmt::Write;

use staunch_figures::bars::{Bar, bars};
use staunch_figures::plot::figure;
use staunch_figures::words::number;
use staunch_figures::{escape, page};

use crate::pressure;
use crate::report::{BarVerdict, Report, ScenarioOutcome};
use crate::setup::ServerKind;
use crate::terminal::{heading, limit_words, measured_words, verdict_words};

/// The whole page.
pub(super) fn html(report: &Report) -> String {
    let all = || report.outcomes.iter().flat_map(|outcome| &outcome.bars);
    let passed = all().filter(|bar| bar.verdict == BarVerdict::Pass).count();
    let mut body = format!(
        "<h1>Staunch benchmark</h1><p class=\"quiet\">{} UTC, commit {}, {} rounds of {} s, one worker on \
         CPU 0, load on others</p><p class=\"headline\"><strong>{passed} of {} bars passed.</strong> Figures \
         are medians, with smallest and largest round in parentheses.</p>",
        escape(&report.began),
        escape(&report.commit),
        report.rounds,
        report.seconds,
        all().count()
    );
    judged(&mut body, report);
    for outcome in &report.outcomes {
        scenario(&mut body, outcome);
    }
    body.push_str(&page::colophon(&report.command, report.machine.iter().chain(&report.versions).cloned()));
    page::whole(&format!("Staunch benchmark {}", report.began), "", &body)
}

fn judged(body: &mut String, report: &Report) {
    body.push_str("<div class=\"wide\"><table class=\"sentences\"><thead><tr><th>Result<th>Scenario");
    body.push_str("<th>Server<th>Promise<th>Bar<th>Measured</tr></thead><tbody>");
    for outcome in &report.outcomes {
        for bar in &outcome.bars {
            let class = match bar.verdict {
                BarVerdict::Pass => "pass",
                BarVerdict::Missed => "missed",
                BarVerdict::NotMeasured => "quiet",
            };
            let name = escape(&outcome.name);
            let _ = write!(
                body,
                "<tr><td class=\"{class}\">{}<td><a href=\"#{name}\">{name}</a><td>{}<td>{}<td>{}<td>{}</tr>",
                verdict_words(bar.verdict).0,
                escape(&bar.server),
                escape(&bar.promise),
                escape(&limit_words(bar)),
                measured_words(bar)
            );
        }
    }
    body.push_str("</tbody></table></div>");
}

fn scenario(body: &mut String, outcome: &ScenarioOutcome) {
    let (name, title) = (escape(&outcome.name), escape(&outcome.title));
    let _ = write!(body, "<section><h2 id=\"{name}\">{name}</h2><p class=\"quiet\">{title}</p>");
    for error in &outcome.errors {
        let _ = write!(body, "<p class=\"missed\">Error: {}</p>", escape(error));
    }
    for by in &outcome.disturbances {
        let _ = write!(body, "<p class=\"quiet\">Disturbed: {}</p>", escape(by));
    }
    if let Some(reason) = &outcome.skipped {
        let _ = write!(body, "<p class=\"quiet\">Skipped: {}</p>", escape(reason));
    }
    if let Some(plot) = pressure::plot(outcome) {
        body.push_str(&figure(&format!("{}-goodput", outcome.name), &plot));
    }
    for (measure, unit) in outcome.measures() {
        let words = heading(measure, unit);
        let _ = write!(body, "<h3>{}</h3>{}", escape(&words), measured(outcome, measure, unit));
    }
    if !outcome.notes.is_empty() {
        body.push_str("<details><summary>Commands and notes</summary>");
        for note in &outcome.notes {
            let _ = write!(body, "<p><code>{}</code></p>", escape(note));
        }
        body.push_str("</details>");
    }
    body.push_str("</section>");
}

/// A bar to each server of one measure.
fn measured(outcome: &ScenarioOutcome, measure: &str, unit: &str) -> String {
    let of_measure = outcome.figures.iter().filter(|figure| figure.measure == measure);
    let bar = |server: &'_ str| {
        let spread = outcome.spread(server, measure)?;
        Some((spread, format!("{} {unit}", number(spread.median)).trim_end().to_owned()))
    };
    let all: Vec<Bar<'_>> = of_measure
        .filter_map(|figure| {
            let (spread, words) = bar(&figure.server)?;
            Some(Bar { name: &figure.server, class: class(&figure.server), spread, words })
        })
        .collect();
    bars(measure, &all)
}

/// The colour of a server: ours, the floor, or a peer.
fn class(server: &str) -> &'static str {
    if server.starts_with("staunch") {
        "ours"
    } else if server == ServerKind::Floor.name() {
        "floor"
    } else {
        "peer"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_outside_cannot_become_markup() {
        let mut outcome = ScenarioOutcome::new("name", "<b>title</b>");
        outcome.errors.push("<script>\"".to_owned());
        outcome.add("nginx", "cost", "us", 9.5);
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
        assert!(page.contains(">9.50 us</text>"));
    }
}
