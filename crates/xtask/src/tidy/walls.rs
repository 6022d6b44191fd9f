//! Rules that keep things in their room: unsafe code, clocks.
//!
//! It owns which room may do what. It must never grow a list of files: an exception stands in the file
//! itself, as an excuse with its reason.

use super::documents::is_crate_root;
use super::finding::Finding;
use super::source::{Source, Tree};

/// The one crate with unsafe code.
const UNSAFE_ROOM: &str = "crates/netio/";
/// The one file that reads a clock.
const CLOCK_FILE: &str = "crates/netio/src/clock.rs";
const CLOCKS: &[&str] = &["Instant::now", "SystemTime::now", "thread::sleep"];

/// Unsafe code stands in one crate; every other forbids it to itself.
pub(crate) fn unsafe_code(tree: &Tree) -> Vec<Finding> {
    let outside =
        |source: &&Source| !source.path.starts_with(UNSAFE_ROOM) && !source.path.starts_with("fuzz/");
    let mut findings = Vec::new();
    for source in tree.rust().filter(outside) {
        if is_crate_root(&source.path) && !source.code.contains("#![forbid(unsafe_code)]") {
            findings.push(Finding::at(&source.path, 1, "`#![forbid(unsafe_code)]` is missing"));
        }
        let unsafe_lines = source.code_lines().filter(|(_, line)| words(line).any(|word| word == "unsafe"));
        let message = format!("unsafe code stands in {UNSAFE_ROOM} only");
        findings.extend(unsafe_lines.map(|(number, _)| Finding::at(&source.path, number, message.clone())));
    }
    findings
}

/// Time is an argument: one file reads the clock, and nothing sleeps.
pub(crate) fn clocks(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.rust().filter(|source| source.path != CLOCK_FILE) {
        for (number, line) in source.code_lines().filter(|(number, _)| !source.is_test(*number)) {
            if let Some(call) = CLOCKS.iter().find(|call| line.contains(**call)) {
                let message = format!("`{call}`: time is an argument; only {CLOCK_FILE} reads a clock");
                findings.push(Finding::at(&source.path, number, message));
            }
        }
    }
    findings
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}
