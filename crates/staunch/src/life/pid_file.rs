//! The PID file.
//!
//! It must never be a lock: one that a killed server left is written over. Who takes over writes it anew, so
//! at the end it is removed only by the process whose number it has.

use std::fs;
use std::path::{Path, PathBuf};

/// The file, if there is to be one.
#[derive(Debug, Clone)]
pub(super) struct PidFile(Option<PathBuf>);

impl PidFile {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self(path)
    }

    /// Writes the number of this process, in one step for whoever reads it.
    ///
    /// # Errors
    /// A folder that is not there or may not be written to.
    pub(super) fn write(&self) -> Result<(), String> {
        let Some(path) = &self.0 else { return Ok(()) };
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let beside = Path::new(&name);
        fs::write(beside, format!("{}\n", std::process::id()))
            .and_then(|()| fs::rename(beside, path))
            .map_err(|error| format!("pid_file: cannot write {}: {error}", path.display()))
    }

    /// Removes it, if it is still this process's.
    pub(super) fn remove(&self) {
        let Some(path) = &self.0 else { return };
        let own = fs::read_to_string(path).is_ok_and(|text| text.trim() == std::process::id().to_string());
        if own {
            // What cannot be removed will be written over.
            let _ = fs::remove_file(path);
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
