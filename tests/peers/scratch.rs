//! A file of a test's own.
//!
//! It must never outlive its test.

use std::fs;
use std::path::PathBuf;

/// A file of this test's own, gone when it is over.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("staunch-peers-{}-{name}", std::process::id())))
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("a path of text")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
