//! Tables of the page: the paper beside ours, findings with what decides them, every row.
//!
//! It must never put words from outside into markup as they are.
use std::fmt::Write as _;

use staunch_figures::escape;
use staunch_figures::{page, words};

use crate::evidence::{ClaimVerdict, asked};
use crate::findings::{Part, claims, comparison, findings as tested};
use crate::paper;
use crate::report::rows as said;
use crate::results::{Measured, Results};

/// The paper's table and ranking beside ours.
pub(super) fn paper(body: &mut String, results: &Results) {
    let _ = write!(
        body,
        "<h2>The paper beside ours</h2><p class=\"quiet\">{}. It compared six models with the \
         same client.</p>",
        escape(paper::SOURCE)
    );
    match said::agreement(results) {
        Some(sentences) => {
            for words in sentences {
                let _ = write!(body, "<p>{}</p>", with_units(&words));
            }
        }
        None => body.push_str("<p>No two of its models were asked the same here.</p>"),
    }
    let both = comparison::table(results);
    if both.iter().any(|(_, ours)| ours.is_some()) {
        body.push_str("<h3>Row by row: processor time of the server for each connection</h3>");
        let head = ["model", "asked", "bytes", "pool", "paper", "ours", "paper / ours"];
        let rows = both.into_iter().map(|(row, ours)| {
            vec![
                row.model.to_owned(),
                format!("{} x {}", row.children, words::count(row.loops)),
                words::count(row.bytes as u64),
                if row.pool > 0 { row.pool.to_string() } else { String::new() },
                said::time(row.cpu_s()),
                ours.map_or_else(|| "-".to_owned(), |ours| said::time(ours.median)),
                ours.map_or_else(|| "-".to_owned(), |ours| format!("{:.1}", row.cpu_s() / ours.median)),
            ]
        });
        body.push_str(&page::table(&head, rows));
    }
    body.push_str("<h3>Where the paper is silent, or contradicts itself</h3><ul>");
    for remark in paper::REMARKS {
        let _ = write!(body, "<li>{}", escape(remark));
    }
    body.push_str("</ul>");
}

/// The paper's six findings, then what this project claims.
pub(super) fn findings(body: &mut String, results: &Results) {
    body.push_str(
        "<h2>The paper's six findings</h2><p class=\"quiet\">Each claim is tested on the rows that can \
         decide it. It is confirmed or refuted only if the whole range says so; one counter-example refutes \
         it. A finding is confirmed if all of its claims are. What the paper's own rows say of its claim \
         stands behind it.</p>",
    );
    let theirs = tested(&paper::as_results());
    for (number, (finding, own)) in (1..).zip(tested(results).iter().zip(&theirs)) {
        let _ = write!(body, "<h3>{number}. {}: {}</h3>", finding.title, verdict(finding.verdict()));
        for (part, own) in finding.parts.iter().zip(&own.parts) {
            claim(body, part, &format!("the paper's own rows: {}", own.verdict));
        }
    }
    body.push_str("<h2>What Staunch claims</h2>");
    claims(results).iter().for_each(|part| claim(body, part, ""));
}

fn claim(body: &mut String, part: &Part, remark: &str) {
    let _ = write!(body, "<p class=\"part\">{}<span>{}", verdict(part.verdict), escape(&part.claim));
    if !remark.is_empty() {
        let _ = write!(body, " <span class=\"quiet\">({})</span>", escape(remark));
    }
    body.push_str("</span></p><ul class=\"evidence\">");
    for case in &part.evidence {
        let _ = write!(
            body,
            "<li>{}: <span class=\"quiet\">{}</span>",
            escape(&case.what),
            with_units(&case.figures.to_string())
        );
    }
    if part.verdict == ClaimVerdict::Refuted && !part.cause.is_empty() {
        let _ = write!(body, "<li>{}", escape(part.cause));
    }
    body.push_str("</ul>");
}

/// Words in which no line ends between a number and its unit.
fn with_units(words: &str) -> String {
    let words = escape(words).replace(" %", "\u{a0}%").replace(" us", "\u{a0}us");
    words.replace("% less", "%\u{a0}less").replace("% more", "%\u{a0}more")
}

fn verdict(verdict: ClaimVerdict) -> String {
    let class = match verdict {
        ClaimVerdict::Confirmed => "pass",
        ClaimVerdict::Refuted => "missed",
        ClaimVerdict::NotSeparable | ClaimVerdict::NotMeasured => "quiet",
    };
    format!("<span class=\"{class}\">{verdict}</span>")
}

/// Connections of each child or thread, in figures.
pub(super) fn spread(body: &mut String, results: &Results) {
    let of_row = |one: &Measured| Some(vec![one.row.model.clone(), asked(&one.row), said::spread(one)?]);
    let rows: Vec<Vec<String>> = results.rows.iter().filter_map(of_row).collect();
    if !rows.is_empty() {
        let head = ["model", "asked", "how many: the least of one, and the most"];
        let _ = write!(body, "<details><summary>In figures</summary>{}</details>", page::table(&head, rows));
    }
}

pub(super) fn faults(body: &mut String, results: &Results) {
    let faults = said::faults(results);
    if faults.is_empty() {
        let _ = write!(body, "<p>{}</p>", escape(&said::faultless(results)));
        return;
    }
    body.push_str("<ul id=\"faults\" class=\"missed\">");
    for fault in faults {
        let _ = write!(body, "<li>{}", escape(&fault));
    }
    body.push_str("</ul>");
}

/// Every row with its figures.
pub(super) fn rows(body: &mut String, results: &Results) {
    body.push_str(
        "<h2>All rows</h2><p class=\"quiet\">Medians of the rounds; \"CPU each\", switches and faults are \
         for each answer, \"least\" and \"most\" the ends of the range. Memory is the most that all \
         processes had resident together: pages they share count in each.</p>",
    );
    for protocol in said::PROTOCOLS {
        let of_protocol = crate::ranking::spoken(results, protocol);
        if of_protocol.is_empty() {
            continue;
        }
        let table = page::table(&said::HEADER, of_protocol.iter().map(|one| said::cells(one)));
        let _ = write!(body, "<details><summary>{}</summary>{table}</details>", said::spoken(protocol));
    }
}
