//! The house is tidy, and the checker is not blind: every rule reports its canary.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::source::Tree;
use super::{RULES, check};

fn canaries() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("canaries")
}

fn findings(root: &Path) -> Vec<super::Finding> {
    check(&Tree::read(root).expect("the tree can be read"))
}

#[test]
fn the_house_is_tidy() {
    let found = findings(&crate::root());
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), lines.join("\n"));
}

/// A canary is reported by its own rule and no other, at the places its file `expected` lists.
#[test]
fn every_canary_is_reported() {
    for rule in RULES {
        let folder = canaries().join(rule.name);
        assert!(folder.is_dir(), "the rule `{}` has no canary", rule.name);
        let found = findings(&folder);
        let rules: BTreeSet<&str> = found.iter().map(|finding| finding.rule).collect();
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(rules, BTreeSet::from([rule.name]), "of canary `{}`:\n{}", rule.name, lines.join("\n"));
        let expected = fs::read_to_string(folder.join("expected")).expect("a canary says what it expects");
        let places: Vec<String> =
            found.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect();
        assert_eq!(places, expected.lines().collect::<Vec<_>>(), "of canary `{}`", rule.name);
    }
}

/// What looks like a breach and is none.
#[test]
fn the_clean_canary_is_silent() {
    let found = findings(&canaries().join("clean"));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn no_canary_is_left_over() {
    let known: BTreeSet<String> =
        RULES.iter().map(|rule| rule.name.to_owned()).chain(["clean".to_owned()]).collect();
    let folders = fs::read_dir(canaries()).expect("canaries").filter_map(Result::ok);
    let present: BTreeSet<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(present, known);
}

#[test]
fn a_finding_reads_like_a_compilers() {
    let finding = super::Finding::at("crates/a/src/b.rs", 7, "too long").of("line-length");
    assert_eq!(finding.to_string(), "crates/a/src/b.rs:7: line-length: too long");
}
