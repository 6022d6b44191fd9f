//! Methods of one type: a type with too many is several, in one.
//!
//! This rule owns the limit and the exceptions, each with its own limit and a reason. It must never count
//! methods of a trait, which has its own measure, nor what serves tests.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::source::{Source, Tree};

/// A type has so many methods of its own at most, in whichever files they stand.
const METHODS_MAX: usize = 60;

/// Types with more, by the file that declares them: how many they may have, and why.
const EXCEPTIONS: &[(&str, &str, usize, &str)] = &[
    (
        "crates/protocol/src/http2/session.rs",
        "Session",
        96,
        "frames, streams and bodies share their accounts; its streams are to become a part of their own",
    ),
    (
        "crates/server/src/live/worker.rs",
        "LiveWorker",
        94,
        "events of one handler for three kinds of readers; each kind is to become a part of its own",
    ),
];

/// A place where a type is declared.
struct Declared<'a> {
    name: &'a str,
    path: &'a str,
    line: usize,
}

/// Every type with too many methods, where it is declared.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let sources: Vec<&Source> = tree.rust().filter(|source| !source.is_workshop()).collect();
    let declared: Vec<Declared<'_>> = sources.iter().flat_map(|source| declared(source)).collect();
    let mut counts: BTreeMap<(&str, &str, usize), usize> = BTreeMap::new();
    for source in &sources {
        for (name, count) in counted(source) {
            if let Some(owner) = owner(&declared, name, &source.path) {
                *counts.entry((owner.path, owner.name, owner.line)).or_default() += count;
            }
        }
    }
    let over = counts.into_iter().filter(|((path, name, _), count)| *count > most(path, name));
    over.map(|((path, name, line), count)| {
        let most = most(path, name);
        let message = format!("`{name}` has {count} methods, at most {most}: move some to the parts it has");
        Finding::at(path, line, message)
    })
    .collect()
}

fn most(path: &str, name: &str) -> usize {
    let exception = EXCEPTIONS.iter().find(|(file, known, ..)| *file == path && *known == name);
    exception.map_or(METHODS_MAX, |(.., most, _)| *most)
}

/// The type of this name that is meant in a file: of its crate, and declared nearest to it.
fn owner<'d>(declared: &'d [Declared<'d>], name: &str, path: &str) -> Option<&'d Declared<'d>> {
    let crate_of = |path: &str| path.split_once("/src/").map(|(name, _)| name.to_owned());
    let shared = |other: &str| path.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let named = declared.iter().filter(|one| one.name == name && crate_of(one.path) == crate_of(path));
    named.max_by_key(|one| shared(one.path))
}

fn declared(source: &Source) -> impl Iterator<Item = Declared<'_>> {
    source.code_lines().filter(|(line, _)| !source.is_inner_test(*line)).filter_map(|(line, text)| {
        let text = without_visibility(text);
        let rest = ["struct ", "enum "].iter().find_map(|word| text.strip_prefix(word))?;
        Some(Declared { name: first_word(rest)?, path: &source.path, line })
    })
}

/// The types to which a file adds methods, and how many.
fn counted(source: &Source) -> Vec<(&str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    let mut is_inside = false;
    for (line, text) in source.code_lines() {
        if source.is_inner_test(line) || text.starts_with('}') {
            is_inside = false;
        } else if text.starts_with("impl") {
            let name = implemented(text);
            is_inside = name.is_some();
            found.extend(name.map(|name| (name, 0)));
        } else if is_inside && is_method(text) {
            found.last_mut().into_iter().for_each(|(_, count)| *count += 1);
        }
    }
    found
}

/// `Name` of `impl<I: Io> Name<I> {`; `None` for what implements a trait.
fn implemented(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0_usize;
        let end = rest.char_indices().find_map(|(at, c)| {
            match c {
                '<' => depth += 1,
                '>' if !rest[..at].ends_with('-') => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(at)
        })?;
        rest = &rest[end + 1..];
    }
    let is_trait = rest.split_whitespace().any(|word| word == "for");
    if is_trait { None } else { first_word(rest.trim_start()) }
}

/// Whether a function begins on this line, one step in.
fn is_method(line: &str) -> bool {
    let Some(text) = line.strip_prefix("    ").filter(|text| !text.starts_with(' ')) else { return false };
    let mut words = without_visibility(text).split_whitespace();
    words.find(|word| !matches!(*word, "const" | "async" | "unsafe")) == Some("fn")
}

/// A declaration behind its `pub`, `pub(crate)` and the like.
fn without_visibility(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("pub") else { return text };
    let behind = rest.strip_prefix('(').and_then(|inside| inside.split_once(')'));
    behind.map_or(rest, |(_, behind)| behind).trim_start()
}

fn first_word(text: &str) -> Option<&str> {
    let name = text.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_told_from_what_looks_like_one() {
        let cases = [
            ("    fn a(&self) {", true),
            ("    pub(in crate::a) const fn a() -> u8 {", true),
            ("    pub(crate) unsafe fn a() {", true),
            ("        fn inner() {", false),
            ("fn a() {", false),
            ("    take: fn(u8) -> u8,", false),
            ("    pub call: fn(),", false),
        ];
        for (line, expected) in cases {
            assert_eq!(is_method(line), expected, "{line}");
        }
    }

    #[test]
    fn types_are_told_from_traits() {
        let cases = [
            ("impl Uring {", Some("Uring")),
            ("impl<I: Io, H: Handler<Mail = M>> Worker<I, H> {", Some("Worker")),
            ("impl<F: Fn(u8) -> u8> Call<F> {", Some("Call")),
            ("impl Io for Uring {", None),
            ("impl<'a> From<&'a str> for Name<'a> {", None),
        ];
        for (line, expected) in cases {
            assert_eq!(implemented(line), expected, "{line}");
        }
    }

    #[test]
    fn one_of_two_names_is_the_nearest() {
        let file = |path: &str, text: &str| Source::new(path.to_owned(), text.to_owned());
        let (one, two) = (
            file("crates/a/src/one/session.rs", "pub struct Session {"),
            file("crates/a/src/two/session.rs", "struct Session;"),
        );
        let all: Vec<_> = declared(&one).chain(declared(&two)).collect();
        let path = |of: &str| owner(&all, "Session", of).map(|owner| owner.path);
        assert_eq!(path("crates/a/src/two/session/keys.rs"), Some("crates/a/src/two/session.rs"));
        assert_eq!(path("crates/b/src/two/session/keys.rs"), None);
    }

    #[test]
    fn every_exception_is_above_the_limit_and_has_a_reason() {
        assert!(EXCEPTIONS.iter().all(|(.., most, reason)| *most > METHODS_MAX && reason.len() > 20));
    }
}
