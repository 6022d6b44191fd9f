//! Names that say nothing: a file with one of these becomes the drawer where everything is put.
//!
//! It must never look at names inside a file other than those of modules.

use super::finding::Finding;
use super::source::Tree;

const EMPTY_NAMES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "misc", "types", "core", "stuff"];
/// Files of these kinds are ours to name; others (a site's content, a tool's configuration) may have reasons.
const CODE: &[&str] = &["rs", "c", "h", "py", "mjs", "sh", "pl", "lua"];

/// Checks names of code files, of the folders above them, and of modules.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.files.iter().filter(|source| source.has_extension(CODE)) {
        let stem = source.path.rsplit_once('.').map_or(&source.path[..], |(stem, _)| stem);
        if let Some(name) = stem.split('/').find(|part| EMPTY_NAMES.contains(part)) {
            findings.push(Finding::at(
                &source.path,
                1,
                format!("`{name}` says nothing: name it by its concept"),
            ));
        }
        for (number, line) in source.code_lines() {
            if let Some(name) = module_name(line).filter(|name| EMPTY_NAMES.contains(name)) {
                findings.push(Finding::at(&source.path, number, format!("a module `{name}` says nothing")));
            }
        }
    }
    findings
}

/// `name` of a line `mod name;`, `pub mod name {` and the like.
fn module_name(line: &str) -> Option<&str> {
    let (before, behind) = line.split_once("mod ")?;
    let visible = before.trim().is_empty() || before.trim().starts_with("pub");
    visible.then(|| behind.split([';', ' ', '{']).next().unwrap_or(behind))
}
