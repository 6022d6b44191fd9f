//! A recorded host, unpacked into a folder of its own.
//!
//! A recording is a text: `== PATH` begins a file, the lines behind it are its content, `#` above the first
//! is a comment. It must never be written back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use staunch_tests::process::{self, Finished};
use staunch_tests::tree::Tree;

/// The recordings and the exit code that each asks for.
pub(crate) const HOSTS: &[(&str, i32)] =
    &[("tiny-vm", 0), ("container", 3), ("big-server", 0), ("ancient", 3)];

/// A recorded host.
pub(crate) struct Host {
    tree: Tree,
}

impl Host {
    /// Unpacks `hosts/NAME.host`.
    pub(crate) fn new(name: &str) -> Self {
        let host = Self { tree: Tree::new().expect("a folder") };
        let path = folder().join(format!("{name}.host"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for file in text.split("\n== ").skip(1) {
            let (path, content) = file.split_once('\n').unwrap_or((file, ""));
            host.write(path, content);
        }
        host
    }

    pub(crate) fn root(&self) -> &Path {
        self.tree.root()
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Every file below `folder`.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.root().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files
    }

    /// `staunch doctor` on it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(process::binary());
        command.arg("doctor").arg("--root").arg(self.root());
        command
    }

    pub(crate) fn doctor(&self, arguments: &[&str]) -> Finished {
        process::finish(self.command().args(arguments))
    }
}

/// Where recordings stand.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("doctor/hosts")
}
