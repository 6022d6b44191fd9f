//! A test program, as it is run: all of its tests, or a part of them.

use std::path::PathBuf;

/// A test program.
pub(super) struct Suite {
    /// That of its file, behind the package's unless that is `tests`; for tests inside: `lib` or `bin`.
    pub(super) name: String,
    pub(super) program: PathBuf,
    /// The folder of its package, in which it runs.
    pub(super) folder: PathBuf,
    /// What chooses its tests, if not all are meant.
    pub(super) words: Vec<String>,
}
