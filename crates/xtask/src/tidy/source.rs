//! The source tree, read once.
//!
//! It owns which files are looked at and what kind each is. It must never judge one.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::masking;

/// Folders that hold nothing written by hand, or what is wrong on purpose.
const SKIPPED_FOLDERS: &[&str] =
    &["target", "canaries", "results", "runs", "corpus", "artifacts", "node_modules", "venv"];
/// Folders with a leading dot that are ours.
const DOT_FOLDERS: &[&str] = &[".ci", ".cargo", ".github"];

/// All files of the house.
pub(crate) struct Tree {
    /// The top folder.
    pub(crate) root: PathBuf,
    /// Every text file, sorted by path.
    pub(crate) files: Vec<Source>,
}

pub(crate) struct Source {
    /// Path below the top, with `/`.
    pub(crate) path: String,
    /// The file as it stands.
    pub(crate) text: String,
    /// Rust only: the same lines and columns with comments, strings and characters blanked out.
    pub(crate) code: String,
    /// Rust only: for every line, whether it is compiled for tests alone.
    test_lines: Vec<bool>,
}

impl Tree {
    /// Reads all text files below `root`. Files that are not UTF-8 are left out.
    ///
    /// # Errors
    /// When a folder or file cannot be read.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        read_folder(root, root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root: root.to_path_buf(), files })
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|source| source.has_extension(&["rs"]))
    }

    /// The file at this path.
    pub(crate) fn file(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|source| source.path == path)
    }
}

impl Source {
    /// A file with this content.
    pub(crate) fn new(path: String, text: String) -> Self {
        let code = if path.ends_with(".rs") { masking::mask(&text) } else { String::new() };
        let test_lines = masking::test_lines(&code);
        Self { path, text, code, test_lines }
    }

    /// Whether the name ends in one of these.
    pub(crate) fn has_extension(&self, extensions: &[&str]) -> bool {
        Path::new(&self.path).extension().is_some_and(|end| extensions.iter().any(|one| end == *one))
    }

    /// Lines with their numbers, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Lines of code with their numbers, counted from 1.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Whether the whole file serves tests, examples or chores: it never runs in a server.
    pub(crate) fn is_workshop(&self) -> bool {
        const FOLDERS: &[&str] = &["tests", "examples", "fuzz", "xtask"];
        let is_measurement =
            ["crates/bench/", "crates/counted/"].iter().any(|room| self.path.starts_with(room));
        is_measurement || self.is_test_file() || self.path.split('/').any(|part| FOLDERS.contains(&part))
    }

    /// Whether the file is a module of tests beside the one it tests.
    pub(crate) fn is_test_file(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// Whether a line (counted from 1) serves tests alone.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.is_workshop() || self.is_inner_test(line)
    }

    /// Whether a line (counted from 1) stands under `#[cfg(test)]`.
    pub(crate) fn is_inner_test(&self, line: usize) -> bool {
        self.test_lines.get(line.wrapping_sub(1)).copied().unwrap_or(false)
    }
}

fn read_folder(root: &Path, folder: &Path, files: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type()?;
        if kind.is_dir() && is_ours(&name) {
            read_folder(root, &path, files)?;
        } else if kind.is_file()
            && name != ".git"
            && let Ok(text) = String::from_utf8(fs::read(&path)?)
        {
            let below = path.strip_prefix(root).unwrap_or(&path);
            files.push(Source::new(below.to_string_lossy().into_owned(), text));
        }
    }
    Ok(())
}

fn is_ours(folder: &str) -> bool {
    !SKIPPED_FOLDERS.contains(&folder) && (!folder.starts_with('.') || DOT_FOLDERS.contains(&folder))
}
