//! Names of types with one meaning: a type that others can see stands in at most two crates.
//!
//! It owns the exceptions, each with its reason. It must never count a type that only its own file sees, nor
//! one of a test: their readers have the whole of their world on one screen.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::source::Tree;

/// In so many crates a name may stand.
const CRATES_MAX: usize = 2;

/// Names that may stand in more crates, each with its reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("Arguments", "what a command line says, of each command: the word of clap"),
    (
        "Control",
        "what may be told from outside while it works: an engine, a DOSTP node; the third is a datagram's",
    ),
    ("Entry", "a row of a table or a store, small and in its own file: of clients, of paths, of peers"),
    ("Fault", "what is wrong with what a crate was given, in words for people: each has one of its own"),
    ("Found", "what a search came to, beside the search: never seen far from it"),
    ("Kind", "which of a few kinds, beside what it is of, and named with it where it is used"),
    ("Memory", "bytes held: the account of an engine or of live data, and what the gate sees of the host"),
    ("Part", "one of those that a whole is made of: of a server, of outgoing bytes, of what a model found"),
    ("Peer", "the other end, the word of the protocols; the third is a part of the simulated network"),
    ("Piece", "a part of what is sent or written, in order: of a body, of a line of the log, of a send"),
    ("Plan", "what a program that runs something is to do: each has one, made from its arguments"),
    ("Publisher", "who publishes, the word of the field: over DOSTP, as the generator, to the server"),
    (
        "Queue",
        "the field's word for what waits: at a listening socket, before the loader, as the gate sees it",
    ),
    ("Reading", "what is being read, beside it: settings, the body of a request, answers of live data"),
    ("Refusal", "why something is not done: a request, an upgrade, a path, an operation of io_uring"),
    ("Request", "what is asked for: by HTTP, of live data, of the kernel by netlink"),
    ("Ring", "the word of the structure: of the kernel, of live data, of files not yet looked at"),
    ("Settings", "what may be set of an engine, of a gate, of a DOSTP node: none is used beside another"),
    ("Table", "slots by number, of each crate its own: the word of the structure, private to its floor"),
    (
        "Target",
        "what a request line, a redirect, a log and a connection each go to: the words of their fields",
    ),
    ("Wire", "what carries bytes: the word of the field, told apart by what they are bytes of"),
];

/// A type that others than its file can see.
struct Declared<'a> {
    name: &'a str,
    crate_name: &'a str,
    path: &'a str,
    line: usize,
}

/// Every place of a name that stands in too many crates.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut by_name: BTreeMap<&str, Vec<Declared<'_>>> = BTreeMap::new();
    for declared in declared(tree) {
        by_name.entry(declared.name).or_default().push(declared);
    }
    let mut findings = Vec::new();
    for (name, places) in by_name {
        let crates: BTreeSet<&str> = places.iter().map(|place| place.crate_name).collect();
        if crates.len() <= CRATES_MAX || EXCEPTIONS.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let crates = crates.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("`{name}` is a type of {crates}: say what it is of, or give a reason here");
        findings.extend(places.iter().map(|place| Finding::at(place.path, place.line, message.clone())));
    }
    findings
}

fn declared(tree: &Tree) -> impl Iterator<Item = Declared<'_>> {
    tree.rust().filter(|source| !source.is_test_file()).flat_map(|source| {
        let crate_name = source.path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
        crate_name.into_iter().flat_map(move |(crate_name, _)| {
            let lines = source.code_lines().filter(|(number, _)| !source.is_inner_test(*number));
            lines.filter_map(move |(line, text)| {
                Some(Declared { name: type_name(text)?, crate_name, path: &source.path, line })
            })
        })
    })
}

/// `Name` of a line such as `pub(crate) struct Name<'a> {`.
fn type_name(line: &str) -> Option<&str> {
    let behind = line.trim_start().strip_prefix("pub")?;
    let behind = match behind.strip_prefix('(') {
        Some(inside) => inside.split_once(')')?.1,
        None => behind,
    };
    let mut words = behind.strip_prefix(' ')?.split_whitespace();
    matches!(words.next()?, "struct" | "enum" | "trait" | "union").then_some(())?;
    let name = words.next()?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_others_see_are_found() {
        let cases = [
            ("pub struct Plan {", Some("Plan")),
            ("    pub(in crate::a) enum Way<'a> {", Some("Way")),
            ("pub(crate) trait Load: Sized {", Some("Load")),
            ("pub struct Share(u32);", Some("Share")),
            ("struct Plan {", None),
            ("pub fn plan() {", None),
            ("publish struct Plan", None),
        ];
        for (line, expected) in cases {
            assert_eq!(type_name(line), expected, "{line}");
        }
    }

    #[test]
    fn every_exception_has_a_reason_and_is_needed_once() {
        let names: BTreeSet<&str> = EXCEPTIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), EXCEPTIONS.len());
        assert!(EXCEPTIONS.iter().all(|(_, reason)| reason.len() > 20));
    }
}
