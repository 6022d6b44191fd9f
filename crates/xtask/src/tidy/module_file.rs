//! The style of modules: `name.rs` beside the folder `name`, never `name/mod.rs`.
//!
//! It must never look inside a file.

use super::finding::Finding;
use super::source::Tree;

/// Every `mod.rs`, but for those of tests, which cargo would take for tests of their own under another name.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let is_shared_by_tests = |path: &str| path.contains("/tests/");
    let files = tree.rust().filter(|source| source.path.ends_with("/mod.rs"));
    files
        .filter(|source| !is_shared_by_tests(&source.path))
        .map(|source| {
            let folder = source.path.trim_end_matches("/mod.rs");
            Finding::at(&source.path, 1, format!("this is `{folder}.rs` here, beside its folder"))
        })
        .collect()
}
