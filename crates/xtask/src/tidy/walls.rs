//! Rules that keep things in their room: unsafe code, clocks.
//!
//! It owns which room may do what. It must never grow a list of files beyond the one that stands here: an
//! exception stands in the file itself, as an excuse with its reason.

use super::documents::is_crate_root;
use super::finding::Finding;
use super::source::Tree;

/// The one crate with unsafe code.
const UNSAFE_ROOM: &str = "crates/netio/";
/// The laboratory's models show the raw system calls a server is made of, which a safe wrapper would hide.
/// Only there, and where its processes are told to end; the rest of that crate denies it to itself.
const UNSAFE_SHOWN: &[&str] = &["crates/lab/src/models/", "crates/lab/src/syscall.rs"];
/// A library that stands in for the C library's functions speaks C: pointers in, pointers out.
const UNSAFE_SHIM: &str = "crates/dostp_shim/";
/// The root of the crate with them: what is forbidden there could not be allowed below.
const UNSAFE_SHOWN_ROOT: &str = "crates/lab/src/lib.rs";
/// The one file that reads a clock.
const CLOCK_FILE: &str = "crates/netio/src/clock.rs";
const CLOCKS: &[&str] = &["Instant::now", "SystemTime::now", "thread::sleep"];

/// Unsafe code stands in one crate, in the library that stands in for C's sockets, and in the models of the
/// laboratory; every other crate forbids it to itself.
pub(crate) fn unsafe_code(tree: &Tree) -> Vec<Finding> {
    let inside = |path: &str| {
        let mut rooms = [UNSAFE_ROOM, UNSAFE_SHIM, "fuzz/"].into_iter().chain(UNSAFE_SHOWN.iter().copied());
        rooms.any(|room| path.starts_with(room))
    };
    let mut findings = Vec::new();
    for source in tree.rust().filter(|source| !inside(&source.path)) {
        let level = if source.path == UNSAFE_SHOWN_ROOT { "deny" } else { "forbid" };
        let attribute = format!("#![{level}(unsafe_code)]");
        if is_crate_root(&source.path) && !source.code.contains(&attribute) {
            findings.push(Finding::at(&source.path, 1, format!("`{attribute}` is missing")));
        }
        let unsafe_lines = source.code_lines().filter(|(_, line)| words(line).any(|word| word == "unsafe"));
        let message = format!("unsafe code stands in {UNSAFE_ROOM} only, and in the laboratory's models");
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
