//! Lines for people: a failed write must not end a program.
//!
//! `println!` and its kin panic when nobody takes what they print, and wait for who does not read. They stand
//! in tests, examples, chores, build scripts and the laboratory's models. It must never allow them in what
//! serves, nor in commands.

use super::finding::Finding;
use super::source::{Source, Tree};

const MACROS: &[&str] = &["println!", "eprintln!", "print!", "eprint!"];
/// Models are plain programs, and say nothing where they are measured. The simulation is a module of tests.
const PLAIN: &[&str] = &["crates/lab/src/models/", "crates/loadgen/src/simulation.rs"];

/// Printing that can panic.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let is_plain = |source: &Source| {
        source.path.ends_with("build.rs") || PLAIN.iter().any(|plain| source.path.starts_with(plain))
    };
    let mut findings = Vec::new();
    for source in tree.rust().filter(|source| !is_plain(source)) {
        for (number, line) in source.code_lines().filter(|(number, _)| !source.is_test(*number)) {
            if let Some(name) = MACROS.iter().find(|name| calls(line, name)) {
                let message = format!(
                    "`{name}` panics when it cannot write: commands print by crates/program/src/output.rs, \
                     a server says its lines by `LineQueue`"
                );
                findings.push(Finding::at(&source.path, number, message));
            }
        }
    }
    findings
}

fn calls(line: &str, name: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(start, _)| !line[..start].ends_with(is_letter))
}
