//! A disk that is soon full.

use std::path::PathBuf;
use std::process::Command;

/// A file system in memory of 64 KiB.
pub(crate) struct Disk {
    pub(crate) folder: PathBuf,
}

impl Disk {
    /// `None`, and a line that says so, where it may not be mounted.
    pub(crate) fn mount(folder: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=64k", "staunch-test"]).arg(&folder);
        let mounted = command.output().is_ok_and(|output| output.status.success());
        if !mounted {
            println!("skipped: a file system may not be mounted here");
        }
        mounted.then_some(Self { folder })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).output();
    }
}
