//! What may be wrong with the store, each with its path and its remedy.
//!
//! It must never name another library's words alone: what a person can do stands in the sentence.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the store cannot be used.
#[derive(Debug)]
pub struct StateFault {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub kind: StateFaultKind,
}

/// What is wrong with the store.
#[derive(Debug)]
pub enum StateFaultKind {
    /// The system refuses: not writable, full, failing.
    Io(io::Error),
    /// Another process has it open.
    Locked,
    /// Written by a newer version; the number is its format.
    Newer(u64),
    /// Not what was written.
    Damaged(String),
}

impl StateFault {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), kind: StateFaultKind::Io(error) }
    }

    pub(super) fn newer(path: &Path, format: u64) -> Self {
        Self { path: path.to_owned(), kind: StateFaultKind::Newer(format) }
    }

    pub(super) fn damaged(path: &Path, what: String) -> Self {
        Self { path: path.to_owned(), kind: StateFaultKind::Damaged(what) }
    }

    /// The file is closed: after a failed write, or because it was released.
    pub(super) fn closed(path: &Path) -> Self {
        Self::io(path, io::Error::other("it is closed"))
    }

    /// A fault while the file is opened: what is no store at all is damaged.
    pub(super) fn opening(path: &Path, error: redb::DatabaseError) -> Self {
        match error {
            redb::DatabaseError::Storage(redb::StorageError::Io(error)) if is_content(&error) => {
                Self::damaged(path, error.to_string())
            }
            redb::DatabaseError::UpgradeRequired(version) => {
                Self::damaged(path, format!("a file format of another time ({version})"))
            }
            redb::DatabaseError::RepairAborted => Self::damaged(path, "it cannot be repaired".to_owned()),
            other => Self::of(path, other.into()),
        }
    }

    pub(super) fn of(path: &Path, error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) if is_content(&error) => Self::damaged(path, error.to_string()),
            redb::Error::Io(error) => Self::io(path, error),
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => {
                Self { path: path.to_owned(), kind: StateFaultKind::Locked }
            }
            redb::Error::PreviousIo => Self::io(path, io::Error::other("it failed before")),
            other => Self::damaged(path, other.to_string()),
        }
    }
}

/// Whether an error is about what stands in the file, not about the disk.
fn is_content(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

impl fmt::Display for StateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            StateFaultKind::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let folder = self.path.parent().unwrap_or(&self.path).display();
                write!(f, "{path}: {error}; give it to the user the server runs as: chown -R USER {folder}")
            }
            StateFaultKind::Io(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                write!(f, "{path}: {error}; name a folder on a disk that can be written")
            }
            StateFaultKind::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
                write!(f, "{path}: {error}; make room on that disk")
            }
            StateFaultKind::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "{path}: {error}; the folder has to exist")
            }
            StateFaultKind::Io(error) => write!(f, "{path}: {error}"),
            StateFaultKind::Locked => {
                write!(f, "{path}: another process has it open; two servers need two state folders")
            }
            StateFaultKind::Newer(format) => write!(
                f,
                "{path}: written by a newer version (format {format}); start that one, or name another folder"
            ),
            StateFaultKind::Damaged(what) => write!(f, "{path}: damaged: {what}"),
        }
    }
}

impl std::error::Error for StateFault {}
