//! Rules of sources in C: an opening comment that says what the file owns, and the lengths.
//!
//! It must never try to understand C: a function begins where a line in column one opens a brace, and ends
//! with the next brace in column one. Our style makes that true.

use super::finding::Finding;
use super::lengths::{FUNCTION_LINES_MAX, long_file, long_lines};
use super::source::{Source, Tree};

/// Checks every C file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.files.iter().filter(|source| source.has_extension(&["c", "h"])) {
        findings.extend(long_lines(source));
        findings.extend(long_file(source));
        findings.extend(long_functions(source));
        if !opens_with_comment(source) {
            findings.push(Finding::at(&source.path, 1, "a file opens with a comment that says what it owns"));
        }
    }
    findings
}

fn opens_with_comment(source: &Source) -> bool {
    let first = source.text.lines().find(|line| !line.contains("SPDX-License-Identifier"));
    first.is_some_and(|line| line.starts_with("/*") || line.starts_with("//"))
}

fn long_functions(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut first = None;
    for (number, line) in source.lines() {
        if first.is_none() && opens_function(line) {
            first = Some(number);
        } else if line.starts_with('}') {
            let count = first.take().map_or(0, |start| number - start + 1);
            if count > FUNCTION_LINES_MAX {
                let message = format!("{count} lines; a function has at most {FUNCTION_LINES_MAX}");
                findings.push(Finding::at(&source.path, number + 1 - count, message));
            }
        }
    }
    findings
}

/// `{` alone (kernel style), or `type name(...) {`.
fn opens_function(line: &str) -> bool {
    let code = line.trim_end();
    code == "{"
        || (code.ends_with('{') && code.contains('(') && line.starts_with(|c: char| c.is_alphabetic()))
}
