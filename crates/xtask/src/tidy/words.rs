//! Words that must not stay: marks of unfinished work, and paths of the machine a file was written on.
//!
//! It must never look into files that are not written by hand (the licence, the lock file).

use std::env;

use super::finding::Finding;
use super::source::{Source, Tree};

/// Marks of unfinished work, searched in text, comments included. Put together so that this file has none.
const MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
/// Calls that say so in code.
const CALLS: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore"];
/// Files in which work is done, where a mark would be one.
const CODE: &[&str] = &["rs", "c", "h", "py", "mjs", "js", "sh", "pl", "lua", "toml"];
/// Folders of one machine and not of another.
const MACHINE_FOLDERS: &[&str] = &[
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "tmp/"),
    concat!("/", "work/"),
    concat!("/", "Users/"),
];
const NOT_BY_HAND: &[&str] = &["LICENSE", "Cargo.lock"];

/// Marks and calls of unfinished work.
pub(crate) fn leftovers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.files.iter().filter(|source| source.has_extension(CODE)) {
        for (number, line) in source.lines() {
            if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
                findings.push(Finding::at(
                    &source.path,
                    number,
                    format!("`{mark}`: finish it, or file an issue"),
                ));
            }
        }
        for (number, line) in source.code_lines() {
            if let Some(call) = CALLS.iter().find(|call| line.contains(**call)) {
                findings.push(Finding::at(&source.path, number, format!("`{call}` must not stay")));
            }
        }
    }
    findings
}

/// Paths that exist on one machine: the usual places, and this very tree and home.
pub(crate) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut folders: Vec<String> = MACHINE_FOLDERS.iter().map(|folder| (*folder).to_owned()).collect();
    let deep = |path: &String| path.matches('/').count() > 1;
    folders.extend([tree.root.to_string_lossy().into_owned()].into_iter().filter(deep));
    folders.extend(env::var("HOME").ok().filter(deep));
    let by_hand = |source: &&Source| !NOT_BY_HAND.contains(&source.path.as_str());
    tree.files.iter().filter(by_hand).flat_map(|source| paths_in(source, &folders)).collect()
}

fn paths_in(source: &Source, folders: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        if let Some(folder) = folders.iter().find(|folder| has_path(line, folder)) {
            findings.push(Finding::at(&source.path, number, format!("`{folder}` is a path of one machine")));
        }
    }
    findings
}

/// Whether the word stands there, not as a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        !line[..start].ends_with(is_letter) && !line[start + word.len()..].starts_with(is_letter)
    })
}

/// Whether an absolute path begins with the folder: what stands before it is no part of a path or URL.
fn has_path(line: &str, folder: &str) -> bool {
    let continues =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '}' | ')' | '%' | '~' | '$');
    line.match_indices(folder).any(|(start, _)| !line[..start].ends_with(continues))
}
