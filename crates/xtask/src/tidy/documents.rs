//! Rules about what must be written down: module documents, what a crate never does, reasons of limits.
//!
//! It must never judge how well something is written: that is for the reader of a change.

use super::finding::Finding;
use super::source::{Source, Tree};

/// Last words in the names of capacities. Facts of the world (an errno, the seconds of a day) end otherwise.
const CAPACITIES: &[&str] =
    &["MAX", "MIN", "LIMIT", "CAPACITY", "SIZE", "BYTES", "COUNT", "DEPTH", "LENGTH", "ENTRIES", "MS"];
/// A number up to this needs no reason: sizes of small tables, shifts, bases.
const PLAIN_NUMBER_MAX: u128 = 64;

/// Every Rust file opens with its own document.
pub(crate) fn module_docs(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| {
            Finding::at(&source.path, 1, "a file opens with `//! ` and says what it owns and never does")
        })
        .collect()
}

/// The root of every crate says what must never happen there.
pub(crate) fn nevers(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|source| is_crate_root(&source.path))
        .filter(|source| !opening_document(source).any(|line| line.contains("never")))
        .map(|source| Finding::at(&source.path, 1, "the root's document says what the crate must never do"))
        .collect()
}

/// A capacity has a comment that gives its reason, in `limits.rs` or elsewhere.
pub(crate) fn limits(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter(|source| !source.is_workshop()).flat_map(bare_limits).collect()
}

/// Whether the file is the root of one of our crates.
pub(crate) fn is_crate_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "src", "lib.rs" | "main.rs"] | ["tests", "lib.rs"])
}

fn opening_document(source: &Source) -> impl Iterator<Item = &str> {
    source.text.lines().take_while(|line| line.starts_with("//!"))
}

fn bare_limits(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.text.lines().collect();
    let is_bare = |number: usize| {
        let above = lines[..number - 1].iter().rev().find(|line| !line.trim_start().starts_with("#["));
        !above.is_some_and(|line| line.trim_start().starts_with("//"))
    };
    source
        .code_lines()
        .filter(|(number, line)| is_large_constant(line) && !source.is_test(*number) && is_bare(*number))
        .map(|(number, _)| {
            Finding::at(&source.path, number, "a limit needs a comment above it that gives its reason")
        })
        .collect()
}

/// A constant that is named as a capacity, of an integer type, with a number above [`PLAIN_NUMBER_MAX`] in
/// its value.
fn is_large_constant(line: &str) -> bool {
    let declared = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
    let Some(declared) = declared.trim_start_matches("pub ").strip_prefix("const ") else { return false };
    let Some((name_and_type, value)) = declared.split_once('=') else { return false };
    let Some((name, kind)) = name_and_type.split_once(':') else { return false };
    let is_capacity = name.trim().rsplit('_').next().is_some_and(|last| CAPACITIES.contains(&last));
    is_capacity && is_integer(kind.trim()) && numbers(value).any(|number| number > PLAIN_NUMBER_MAX)
}

/// `u64`, `i32`, `usize` and their like.
fn is_integer(kind: &str) -> bool {
    let width = kind.strip_prefix(['u', 'i']).unwrap_or("");
    width == "size" || width.parse::<u8>().is_ok()
}

fn numbers(value: &str) -> impl Iterator<Item = u128> {
    value.split(|c: char| !c.is_alphanumeric() && c != '_').filter_map(|word| {
        let digits = word.replace('_', "");
        match digits.strip_prefix("0x") {
            Some(hexadecimal) => u128::from_str_radix(hexadecimal, 16).ok(),
            None => digits.trim_end_matches(char::is_alphabetic).parse().ok(),
        }
    })
}
