//! Rules about `.wire` files: one conversation a file, named by its class, none twice.
//!
//! It must never parse a conversation: the runner does, with line numbers of its own.

use std::collections::HashMap;

use super::finding::Finding;
use super::source::{Source, Tree};

/// Basic, complex, hostile ("foul"), regression.
const CLASSES: &[char] = &['b', 'c', 'f', 'p', 'r'];
/// Digits of a conversation's number.
const NUMBER_DIGITS: usize = 5;

/// Checks every `.wire` file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut by_text: HashMap<&str, &Source> = HashMap::new();
    let mut by_number: HashMap<&str, &Source> = HashMap::new();
    for source in tree.files.iter().filter(|source| source.has_extension(&["wire"])) {
        let name = source.path.rsplit('/').next().unwrap_or(&source.path);
        let Some(number) = class_and_number(name) else {
            let message = "the name is a class (b c f r), five digits and words: `b00001-get-a-file.wire`";
            findings.push(Finding::at(&source.path, 1, message));
            continue;
        };
        if let Some(first) = by_number.insert(number, source) {
            findings.push(Finding::at(&source.path, 1, format!("the number is taken by {}", first.path)));
        }
        if let Some(first) = by_text.insert(&source.text, source) {
            findings.push(Finding::at(&source.path, 1, format!("the same conversation as {}", first.path)));
        }
    }
    findings
}

/// `b00001` of `b00001-get-a-file.wire`; `None` if the name has another form.
fn class_and_number(name: &str) -> Option<&str> {
    let (number, words) = name.strip_suffix(".wire")?.split_once('-')?;
    let digits = number.strip_prefix(CLASSES)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = digits.len() == NUMBER_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    (good && !words.is_empty() && words.chars().all(plain)).then_some(number)
}
