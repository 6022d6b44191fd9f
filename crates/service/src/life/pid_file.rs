//! The PID file, and beside it what came of the last reload, for who has asked for it.
//!
//! It must never be a lock: one that a killed server left is written over. Who takes over writes it anew, so
//! at the end it is removed only by the process whose number it has. Nothing is written through a link.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What came of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadNote {
    /// The process that was asked.
    pub process: u32,
    /// Which of its reloads.
    pub number: u64,
    /// Whether the configuration is in use.
    pub is_applied: bool,
    /// What is to be said.
    pub text: String,
}

impl ReloadNote {
    /// The note beside a PID file, if one can be read there.
    pub fn beside(pid_file: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(note_name(pid_file)).ok()?).ok()
    }
}

fn note_name(pid_file: &Path) -> PathBuf {
    with_ending(pid_file, "reload")
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    name.into()
}

/// Writes a file in one step for whoever reads it. A link that has its place, or that of what is written
/// first, is replaced, not followed.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = with_ending(path, &std::process::id().to_string());
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(&beside)?.write_all(bytes)?;
    fs::rename(beside, path)
}

/// The file, if there is to be one.
#[derive(Debug, Clone)]
pub(super) struct PidFile {
    path: Option<PathBuf>,
    reloads: u64,
}

impl PidFile {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, reloads: 0 }
    }

    /// Writes the number of this process.
    ///
    /// # Errors
    /// A folder that is not there or may not be written to.
    pub(super) fn write(&self) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        write_whole(path, format!("{}\n", std::process::id()).as_bytes())
            .map_err(|error| format!("pid_file: cannot write {}: {error}", path.display()))
    }

    /// Notes beside it what came of a reload.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(super) fn note_reload(&mut self, is_applied: bool, text: &str) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        self.reloads += 1;
        let (process, number) = (std::process::id(), self.reloads);
        let note = ReloadNote { process, number, is_applied, text: text.to_owned() };
        let written = serde_json::to_vec(&note).map_err(io::Error::from);
        written
            .and_then(|note| write_whole(&note_name(path), &note))
            .map_err(|error| format!("pid_file: cannot write {}: {error}", note_name(path).display()))
    }

    /// Removes it, if it is still this process's.
    pub(super) fn remove(&self) {
        let Some(path) = &self.path else { return };
        let own = fs::read_to_string(path).is_ok_and(|text| text.trim() == std::process::id().to_string());
        if own {
            // What cannot be removed will be written over.
            let _ = fs::remove_file(path);
            let _ = fs::remove_file(note_name(path));
        }
    }
}

/// The file of a process that serves or is about to: when this is dropped it is removed, if it is still this
/// process's.
pub(crate) struct OwnPidFile(PidFile);

impl OwnPidFile {
    pub(super) fn new(file: PidFile) -> Self {
        Self(file)
    }

    pub(super) fn file(&self) -> PidFile {
        self.0.clone()
    }
}

impl Drop for OwnPidFile {
    fn drop(&mut self) {
        self.0.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_fails_removes_its_own_file_only() {
        let path = std::env::temp_dir().join(format!("staunch-own-pid-{}", std::process::id()));
        let file = PidFile::new(Some(path.clone()));
        file.write().unwrap();
        drop(OwnPidFile::new(file.clone()));
        assert!(!path.exists());
        fs::write(&path, "1\n").unwrap();
        drop(OwnPidFile::new(file));
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = std::env::temp_dir().join(format!("staunch-pid-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, other) = (folder.join("pid"), folder.join("other"));
        fs::write(&other, "precious").unwrap();
        let own = with_ending(&path, &std::process::id().to_string());
        for link in [&own, &path, &note_name(&path)] {
            std::os::unix::fs::symlink(&other, link).unwrap();
        }
        let mut file = PidFile::new(Some(path.clone()));
        file.write().unwrap();
        file.note_reload(false, "why").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
        assert!(!path.is_symlink() && !note_name(&path).is_symlink() && !own.exists());
        let note = ReloadNote::beside(&path).unwrap();
        assert_eq!((note.number, note.is_applied, &*note.text), (1, false, "why"));
        file.remove();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn it_is_written_over_and_removed_by_its_owner_only() {
        let path = std::env::temp_dir().join(format!("staunch-pid-{}", std::process::id()));
        fs::write(&path, "1\n").unwrap();
        let file = PidFile::new(Some(path.clone()));
        file.remove();
        assert!(path.exists(), "another process's file stays");
        file.write().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        file.remove();
        assert!(!path.exists());
        file.remove();
        let nowhere = PidFile::new(Some(path.join("deeper")));
        let error = nowhere.write().unwrap_err();
        assert!(error.starts_with("pid_file: cannot write ") && error.contains("No such file"), "{error}");
    }
}
