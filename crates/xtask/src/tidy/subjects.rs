//! First words of comments: a comment says first what it is about.
//!
//! The rule owns the words with which no comment begins. It must never judge a line that continues a comment:
//! there the subject is known.

use super::finding::Finding;
use super::source::{Source, Tree};

/// Words that leave the reader to search for what is meant.
const FIRST_WORDS: &[&str] =
    &["The same", "It", "Who", "Whoever", "Nobody", "Somebody", "One", "See the module's text"];
/// Marks that a comment on lines of its own begins with, the longest first.
const MARKS: &[&str] = &["///", "//!", "//"];

/// Comments whose first words are no subject.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(bare_subjects).collect()
}

fn bare_subjects(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut mark_before: Option<&str> = None;
    for (number, line) in source.lines() {
        let found = comment(line);
        if let Some((mark, text)) = found
            && mark_before != Some(mark)
            && let Some(words) = FIRST_WORDS.iter().find(|words| begins_with(text, words))
        {
            let message = format!("a comment begins with its subject, and `{words}` names none");
            findings.push(Finding::at(&source.path, number, message));
        }
        mark_before = found.map(|(mark, _)| mark);
    }
    findings
}

/// The mark and the text of a line that is a comment.
fn comment(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    MARKS.iter().find_map(|mark| Some((*mark, line.strip_prefix(mark)?.trim_start())))
}

/// Whether the text begins with these words, the last of them whole.
fn begins_with(text: &str, words: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(continues))
}
