//! The folder that becomes the package.
//!
//! It owns the folder and deletes it at the end. It must never follow a link or keep a mode of the tree:
//! modes are given.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::running::succeed;

/// The folder.
pub(crate) struct Stage {
    folder: PathBuf,
    date: u64,
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What is left would be in the way of nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Stage {
    /// A new empty folder whose files will be of this date, in seconds of Unix.
    pub(crate) fn new(folder: &Path, date: u64) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { folder: folder.into(), date })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn date(&self) -> u64 {
        self.date
    }

    /// Where a file of the package stands.
    pub(crate) fn path(&self, to: &str) -> PathBuf {
        self.folder.join(to)
    }

    /// Copies a file.
    pub(crate) fn copy(&self, from: &Path, to: &str, mode: u32) -> Result<(), String> {
        let bytes = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
        self.write(to, mode, &bytes)
    }

    /// Copies a file and compresses it, as Debian wants of documents.
    pub(crate) fn copy_compressed(&self, from: &Path, to: &str) -> Result<(), String> {
        self.copy(from, to, 0o644)?;
        self.compress(&self.path(to))
    }

    /// Writes a text.
    pub(crate) fn text(&self, to: &str, mode: u32, text: &str) -> Result<(), String> {
        self.write(to, mode, text.as_bytes())
    }

    /// Makes a folder with nothing in it.
    pub(crate) fn empty_folder(&self, to: &str) -> Result<(), String> {
        let path = self.path(to);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&self, target: &str, to: &str) -> Result<(), String> {
        let path = self.path(to);
        let parent = path.parent().unwrap_or(&self.folder);
        let made = fs::create_dir_all(parent).and_then(|()| std::os::unix::fs::symlink(target, &path));
        made.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Moves each manual page of a folder, such as `staunch.1`, into that of its section, and compresses it.
    pub(crate) fn sort_manual(&self, folder: &str) -> Result<(), String> {
        for path in files(&self.path(folder))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let section = name.rsplit('.').next().unwrap_or_default();
            self.copy_compressed(&path, &format!("{folder}/man{section}/{name}"))?;
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// What is installed, in KiB.
    pub(crate) fn size_kib(&self) -> Result<u64, String> {
        let mut size = 0;
        for path in files(&self.folder)? {
            size +=
                fs::symlink_metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?.len();
        }
        Ok(size.div_ceil(1024))
    }

    /// Modes of folders, and one date for all.
    pub(crate) fn seal(&self) -> Result<(), String> {
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(self.date);
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            set_mode(&folder, 0o755)?;
            for path in entries(&folder)?.into_iter().filter(|path| !path.is_symlink()) {
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let dated = File::options()
                        .append(true)
                        .open(&path)
                        .and_then(|file| file.set_times(FileTimes::new().set_modified(date)));
                    dated.map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
        }
        Ok(())
    }

    fn write(&self, to: &str, mode: u32, bytes: &[u8]) -> Result<(), String> {
        let path = self.path(to);
        let written =
            fs::create_dir_all(path.parent().unwrap_or(&self.folder)).and_then(|()| fs::write(&path, bytes));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
        set_mode(&path, mode)
    }

    fn compress(&self, path: &Path) -> Result<(), String> {
        set_mode(path, 0o644)?;
        succeed(Command::new("gzip").args(["--best", "--no-name"]).arg(path))
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// Every file beneath a folder.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() { all.extend(files(&path)?) } else { all.push(path) }
    }
    Ok(all)
}
