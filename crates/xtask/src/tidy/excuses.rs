//! Excuses: a comment `tidy: allow(rule): reason` on the line, or on the line before it, covers one finding.
//!
//! It owns which rules can be excused at all. It must never accept an excuse without a reason.

use super::finding::Finding;
use super::source::{Source, Tree};

/// Rules with honest exceptions. Lengths of functions and files, arrows, circles and the like have none.
const EXCUSABLE: &[&str] = &["clock", "machine-path", "line-length", "leftover", "limit"];
const MARK: &str = "tidy: allow(";

/// Whether an excuse with a reason stands at the finding.
pub(crate) fn is_excused(tree: &Tree, finding: &Finding) -> bool {
    let Some(source) = tree.file(&finding.path) else { return false };
    EXCUSABLE.contains(&finding.rule)
        && source
            .lines()
            .filter(|(number, _)| *number == finding.line || *number + 1 == finding.line)
            .filter_map(|(_, line)| excuse(line))
            .any(|(rule, reason)| rule == finding.rule && !reason.is_empty())
}

/// Excuses that are none: for a rule that has no exceptions, or without a reason.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().filter(|source| !source.path.contains("xtask/src/tidy")).flat_map(bad_excuses).collect()
}

fn bad_excuses(source: &Source) -> Vec<Finding> {
    let bad = |(number, line)| {
        let (rule, reason) = excuse(line)?;
        if !EXCUSABLE.contains(&rule) {
            return Some(Finding::at(&source.path, number, format!("the rule `{rule}` has no exceptions")));
        }
        reason.is_empty().then(|| Finding::at(&source.path, number, "an excuse needs a reason after `): `"))
    };
    source.lines().filter_map(bad).collect()
}

/// The rule and the reason of the excuse on a line.
fn excuse(line: &str) -> Option<(&str, &str)> {
    let (_, behind) = line.split_once(MARK)?;
    let (rule, reason) = behind.split_once(')')?;
    Some((rule, reason.trim_start_matches(':').trim()))
}
