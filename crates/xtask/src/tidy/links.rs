//! Links in documents lead somewhere: every relative link of a Markdown file names a file or folder of the
//! tree.
//!
//! It must never ask the network: links to elsewhere are the reader's to judge.

use std::path::Path;

use super::finding::Finding;
use super::source::{Source, Tree};

/// Checks every Markdown file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let documents = tree.files.iter().filter(|source| source.has_extension(&["md"]));
    documents
        .filter(|source| !source.path.starts_with("site/"))
        .flat_map(|source| broken(tree, source))
        .collect()
}

fn broken(tree: &Tree, source: &Source) -> Vec<Finding> {
    let folder = tree.root.join(&source.path).parent().map_or_else(|| tree.root.clone(), Path::to_path_buf);
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        for target in targets(line).filter(|target| !folder.join(target).exists()) {
            findings.push(Finding::at(&source.path, number, format!("`{target}` is not there")));
        }
    }
    findings
}

/// Targets of `[text](target)` inside the tree, without the part behind `#`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|behind| behind.split(')').next())
        .map(|target| target.split('#').next().unwrap_or(target))
        .filter(|target| !target.is_empty() && !target.contains(':'))
}
