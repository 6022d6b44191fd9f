//! A run as Markdown, for a document: where and how, rankings, the paper beside ours, findings and claims.
//!
//! It must never say more than the page does; it has no plots.
use std::fmt::Write as _;

use crate::evidence::asked;
use crate::findings::{Part, claims, comparison, findings};
use crate::paper;
use crate::ranking::{ranking, spoken};
use crate::report::rows;
use crate::results::{Protocol, Results};

/// The whole text.
pub fn markdown(results: &Results) -> String {
    let mut text = format!(
        "# Server models: what was measured\n\nMade by a program from `bench/results/lab/lab.json`; \
         [server-models.md](server-models.md) explains it.\n\n\
         Plan {}, {}: {}.\n\nMeasured by `{}`.\n",
        results.plan,
        results.machine.began,
        rows::circumstances(results),
        results.command
    );
    for protocol in rows::PROTOCOLS {
        places(&mut text, results, protocol);
    }
    beside(&mut text, results);
    text.push_str("\n## The paper's six findings\n");
    let theirs = findings(&paper::as_results());
    for (number, (finding, own)) in (1..).zip(findings(results).iter().zip(&theirs)) {
        let _ = writeln!(text, "\n### {number}. {}: {}\n", finding.title, finding.verdict());
        for (part, own) in finding.parts.iter().zip(&own.parts) {
            claim(&mut text, part, &format!(" (the paper's own rows: {})", own.verdict));
        }
    }
    text.push_str("\n## What Staunch claims\n\n");
    claims(results).iter().for_each(|part| claim(&mut text, part, ""));
    spreads(&mut text, results);
    text.push_str("\n## Errors, and what was left behind\n\n");
    match rows::faults(results) {
        faults if faults.is_empty() => {
            let _ = writeln!(text, "{}", rows::faultless(results));
        }
        faults => faults.iter().for_each(|fault| _ = writeln!(text, "- {fault}")),
    }
    text
}

fn places(text: &mut String, results: &Results, protocol: Protocol) {
    let Some(ranking) = ranking(&spoken(results, protocol)) else { return };
    let _ = writeln!(
        text,
        "\n## {}\n\nProcessor time of the server for each answer; asked of all: {}.\n\n\
         | place | model | time | range |\n|---:|---|---:|---|",
        rows::spoken(protocol),
        rows::questions(&ranking)
    );
    for place in &ranking.places {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} to {} |",
            rows::place_words(place, &ranking.places),
            place.name,
            rows::time(place.summary.median),
            rows::time(place.summary.low),
            rows::time(place.summary.high)
        );
    }
}

/// The paper's table and ranking beside ours.
fn beside(text: &mut String, results: &Results) {
    text.push_str("\n## The paper beside ours\n\n");
    for sentence in rows::agreement(results).unwrap_or_default() {
        let _ = writeln!(text, "- {sentence}");
    }
    let measured = comparison::table(results).into_iter().filter_map(|(row, ours)| Some((row, ours?)));
    text.push_str("\n| model | asked | bytes | pool | paper | ours | paper / ours |\n");
    text.push_str("|---|---:|---:|---:|---:|---:|---:|\n");
    for (row, ours) in measured {
        let _ = writeln!(
            text,
            "| {} | {} x {} | {} | {} | {} | {} | {:.1} |",
            row.model,
            row.children,
            row.loops,
            row.bytes,
            if row.pool > 0 { row.pool.to_string() } else { String::new() },
            rows::time(row.cpu_s()),
            rows::time(ours.median),
            row.cpu_s() / ours.median
        );
    }
}

fn claim(text: &mut String, part: &Part, remark: &str) {
    let _ = writeln!(text, "- **{}**: {}{remark}", part.verdict, part.claim);
    for case in &part.evidence {
        let _ = writeln!(text, "  - {}: {}", case.what, case.figures);
    }
}

fn spreads(text: &mut String, results: &Results) {
    text.push_str(
        "\n## Who served how many\n\n| model | asked | processes or threads: least and most of one |\n",
    );
    text.push_str("|---|---|---|\n");
    for one in &results.rows {
        if let Some(spread) = rows::spread(one) {
            let _ = writeln!(text, "| {} | {} | {spread} |", one.row.model, asked(&one.row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn the_document_has_every_ranking_and_verdict() {
        let text = markdown(&made_up::results());
        for words in [
            "| 1 | iterative | 132 us | 130 us to 133 us |",
            "## HTTP, a connection for each child, kept alive",
            "- The paper's ranking: iterative;",
            "| fork | 10 x 500 | 4000 |  | 309 us | 309 us | 1.0 |",
            "### 2. A process for each client: confirmed",
            "- **refuted**: The same number of connections costs 30 to 40 % less",
            "- **confirmed**: Staunch's engine on epoll: less than every plain model",
            "| prefork | 10 x 500, 4000 B, pool 2 | 2: 49.9 % to 50.1 % |",
            "No connection failed",
        ] {
            assert!(text.contains(words), "no {words:?} in:\n{text}");
        }
    }
}
