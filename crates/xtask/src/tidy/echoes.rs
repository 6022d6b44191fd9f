//! Docs that only repeat a name: `/// The limit.` above `limit`.
//!
//! The rule owns what counts as a repetition. It must never judge a longer doc, nor one with code in it,
//! which says how a name is spelled elsewhere.

use super::finding::Finding;
use super::source::{Source, Tree};

/// A longer doc says something.
const WORDS_MAX: usize = 3;
/// Words that say nothing by themselves.
const FILLERS: &[&str] = &[
    "a", "all", "an", "as", "at", "by", "each", "for", "in", "is", "it", "its", "of", "on", "the", "this",
    "to",
];
/// Words of Rust before the name of what is declared.
const KEYWORDS: &[&str] = &[
    "async", "const", "enum", "extern", "fn", "mod", "static", "struct", "trait", "type", "union", "unsafe",
];

/// Short docs without a word that the name does not have.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(echoes).collect()
}

fn echoes(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let is_doc = |index: usize| lines[index].starts_with("///");
    let is_single = |index: usize| {
        is_doc(index)
            && !index.checked_sub(1).is_some_and(is_doc)
            && lines.get(index + 1).is_some_and(|line| !line.starts_with("///"))
    };
    (0..lines.len())
        .filter(|index| is_single(*index) && is_echo(lines[*index], declared_below(&lines[index + 1..])))
        .map(|index| {
            Finding::at(
                &source.path,
                index + 1,
                "a doc says more than the name it stands above, or is left out",
            )
        })
        .collect()
}

/// The name of what is declared in the first line that is no attribute.
fn declared_below<'a>(lines: &[&'a str]) -> &'a str {
    let line = lines.iter().find(|line| !line.starts_with('#')).copied().unwrap_or_default();
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    let is_before_name = |word: &&str| KEYWORDS.contains(word) || ["pub", "crate", "super"].contains(word);
    words.find(|word| !is_before_name(word)).unwrap_or_default()
}

fn is_echo(doc: &str, name: &str) -> bool {
    let words: Vec<&str> =
        doc.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let said = words_of_name(name);
    let adds_nothing = |word: &str| {
        let word = word.to_lowercase();
        FILLERS.contains(&&word[..]) || said.iter().any(|one| singular(one) == singular(&word))
    };
    !doc.contains('`') && words.len() <= WORDS_MAX && words.iter().all(|word| adds_nothing(word))
}

/// The words of a name in snake case or camel case, in small letters.
fn words_of_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        let starts_word = c == '_' || (c.is_uppercase() && name.contains(char::is_lowercase));
        if starts_word {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && c != '_'
        {
            word.extend(c.to_lowercase());
        }
    }
    words
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}
