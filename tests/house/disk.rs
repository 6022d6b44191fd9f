//! A file system of a test's own, such as one that is soon full.
//!
//! It must never outlive its test: it is unmounted, whatever happens.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::skipping::skip;

/// A file system in memory.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Mounts one with these options, such as `size=64k`; none, and a line that says so, where that is not
    /// allowed.
    ///
    /// # Panics
    /// When the folder cannot be made; when `CI` is true and nothing can be mounted.
    pub fn mount(folder: PathBuf, options: &str) -> Option<Self> {
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "staunch-test"]).arg(&folder);
        let is_mounted = command.output().is_ok_and(|output| output.status.success());
        if !is_mounted {
            skip("a file system may not be mounted here");
        }
        is_mounted.then_some(Self { folder })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).output();
    }
}
