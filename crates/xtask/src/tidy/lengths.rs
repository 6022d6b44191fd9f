//! Rules about length, of Rust lines, functions and files.
//!
//! It owns the three limits. It must never be lenient: what is too long has two subjects.

use super::finding::Finding;
use super::masking::{closing_brace, line_of};
use super::source::{Source, Tree};

/// A function fits on one screen. Shared with the C rules.
pub(crate) const FUNCTION_LINES_MAX: usize = 69;
/// A file is read in one sitting. Shared with the C rules.
pub(crate) const FILE_LINES_MAX: usize = 499;
/// Two files fit side by side. Shared with the C rules.
pub(crate) const LINE_CHARACTERS_MAX: usize = 110;

/// Functions, from the line of `fn` to the closing brace.
pub(crate) fn functions(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(long_functions).collect()
}

/// Files that are longer than they may be.
pub(crate) fn files(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter_map(long_file).collect()
}

/// Lines. A line is not too long by a URL in it, which cannot be broken.
pub(crate) fn lines(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(long_lines).collect()
}

/// The file is longer than it may be.
pub(crate) fn long_file(source: &Source) -> Option<Finding> {
    let count = source.text.lines().count();
    let message = || format!("{count} lines; a file has at most {FILE_LINES_MAX}: split it by concept");
    (count > FILE_LINES_MAX).then(|| Finding::at(&source.path, FILE_LINES_MAX + 1, message()))
}

/// The lines of a file that are longer than they may be.
pub(crate) fn long_lines(source: &Source) -> Vec<Finding> {
    let message = |count| format!("{count} characters; a line has at most {LINE_CHARACTERS_MAX}");
    source
        .lines()
        .map(|(number, line)| (number, without_urls(line)))
        .filter(|(_, count)| *count > LINE_CHARACTERS_MAX)
        .map(|(number, count)| Finding::at(&source.path, number, message(count)))
        .collect()
}

fn long_functions(source: &Source) -> Vec<Finding> {
    let code = &source.code;
    let mut findings = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        let begins_word = start == 0 || !code.as_bytes()[start - 1].is_ascii_alphanumeric();
        let Some(open) = body_start(code, start).filter(|_| begins_word) else { continue };
        let (first, last) = (line_of(code, start), line_of(code, closing_brace(code, open)));
        let count = last - first + 1;
        if count > FUNCTION_LINES_MAX {
            let message = format!("{count} lines; a function has at most {FUNCTION_LINES_MAX}");
            findings.push(Finding::at(&source.path, first, message));
        }
    }
    findings
}

/// The brace that opens the body of the function at `start`; `None` for a declaration or a function's type.
fn body_start(code: &str, start: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(offset),
            b';' | b'}' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Characters of the line when URLs count nothing.
fn without_urls(line: &str) -> usize {
    let is_url = |word: &&str| word.contains("https://") || word.contains("http://");
    let urls: usize = line.split_whitespace().filter(is_url).map(|word| word.chars().count()).sum();
    line.chars().count() - urls
}
