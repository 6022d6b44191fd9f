//! Headings of doc comments: each stands alone on its line.
//!
//! The rule owns how text that was glued to a heading is told from a title. It must never look into examples
//! of code, where a line may begin with `#`.

use super::finding::Finding;
use super::source::{Source, Tree};

/// Titles that rustdoc knows, which nothing follows.
const KNOWN: &[&str] = &["Errors", "Panics", "Safety", "Examples"];
/// A title is a few words. A line that was filled up with the text behind it is longer.
const TITLE_LENGTH_MAX: usize = 60;

/// Headings with text behind them.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(glued_headings).collect()
}

fn glued_headings(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_code = false;
    for (number, line) in source.lines() {
        let line = line.trim_start();
        let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_code = false;
            continue;
        };
        if text.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if !is_code && title(text).is_some_and(is_glued) {
            findings.push(Finding::at(
                &source.path,
                number,
                "a heading stands alone, and text begins below it",
            ));
        }
    }
    findings
}

/// The title of a line of a doc comment that is a heading.
fn title(text: &str) -> Option<&str> {
    let text = text.trim();
    let title = text.trim_start_matches('#');
    (title.len() < text.len()).then(|| title.strip_prefix(' ')).flatten()
}

fn is_glued(title: &str) -> bool {
    let known = KNOWN.iter().find_map(|known| title.strip_prefix(known));
    title.len() > TITLE_LENGTH_MAX || known.is_some_and(|rest| rest.starts_with(' '))
}
