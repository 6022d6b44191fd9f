//! Findings for people: a table by groups.
//!
//! It owns columns and colours. It must never decide whether there is a terminal: it is told.

use std::fmt::Write as _;

use console::{Style, measure_text_width, pad_str};

use crate::examine::Summary;
use crate::finding::{Finding, State};

/// A column is no wider than this, or long values push everything to the right.
const COLUMN_WIDTH_MAX: usize = 44;

/// The table with a summary below. Reasons stand beneath what is not right; `width` is that of the terminal.
pub fn text(findings: &[Finding], width: usize, coloured: bool) -> String {
    let mut out = String::new();
    let shown: Vec<&Finding> = findings.iter().filter(|finding| finding.state != State::NotHere).collect();
    let column = |of: fn(&Finding) -> &str| {
        let widths = shown.iter().map(|finding| measure_text_width(of(finding)));
        widths.filter(|width| *width <= COLUMN_WIDTH_MAX).max().unwrap_or(0)
    };
    let widths = (column(|finding| &finding.name), column(|finding| &finding.value));
    let mut group = "";
    for finding in shown {
        if finding.group != group {
            group = finding.group;
            let _ = writeln!(out, "{}", Style::new().bold().force_styling(coloured).apply_to(group));
        }
        row(&mut out, finding, widths, width, coloured);
    }
    let absent: Vec<&str> =
        findings.iter().filter(|f| f.state == State::NotHere).map(|f| &f.name[..]).collect();
    if !absent.is_empty() {
        out.push_str("not on this host\n");
        wrapped(&mut out, &absent.join(", "), 2, width);
    }
    out.push('\n');
    out.push_str(&summary(findings));
    out
}

fn row(out: &mut String, finding: &Finding, widths: (usize, usize), width: usize, coloured: bool) {
    let state = pad_str(finding.state.name(), 8, console::Alignment::Left, None);
    let state = style(finding.state).force_styling(coloured).apply_to(state);
    let name = pad_str(&finding.name, widths.0, console::Alignment::Left, None);
    let mut line = format!("  {state} {name}  ");
    if finding.advice.is_empty() {
        line.push_str(&finding.value);
    } else {
        line.push_str(&pad_str(&finding.value, widths.1, console::Alignment::Left, None));
        let _ = write!(line, "  -> {}", finding.advice);
    }
    let _ = writeln!(out, "{}", line.trim_end());
    if matches!(finding.state, State::Matters | State::Advice) {
        wrapped(out, &finding.reason, 11, width);
    }
}

fn style(state: State) -> Style {
    match state {
        State::Matters => Style::new().red().bold(),
        State::Advice => Style::new().yellow(),
        State::Ok => Style::new().green(),
        State::Unknown | State::NotHere => Style::new().dim(),
    }
}

/// Breaks text at blanks, indented.
fn wrapped(out: &mut String, text: &str, indent: usize, width: usize) {
    let mut line = " ".repeat(indent);
    for word in text.split(' ') {
        if line.len() > indent && measure_text_width(&line) + 1 + measure_text_width(word) > width {
            let _ = writeln!(out, "{line}");
            line.truncate(indent);
        }
        if line.len() > indent {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}

fn summary(findings: &[Finding]) -> String {
    let summary = Summary::of(findings);
    let mut text = format!(
        "{} that matter, {} with advice, {} right, {} unknown, {} not here.\n",
        summary.matters, summary.advice, summary.ok, summary.unknown, summary.not_here
    );
    text.push_str("`staunch doctor --explain NAME` says more");
    match summary.settable {
        0 => text.push_str(".\n"),
        count => {
            let _ = writeln!(text, "; `staunch doctor --apply` would set {count} of them.");
        }
    }
    text
}
