//! Stamps of files: by them a file is known for the version that was announced.
//!
//! It must never read content.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::Stat;
use rustix::io::Errno;

use crate::outgoing::{FilePart, FileStamp};

/// Reads the stamp of an open file.
///
/// # Errors
/// Those of fstat(2).
pub fn stamp(file: impl AsFd) -> io::Result<FileStamp> {
    Ok(stamp_of(&rustix::fs::fstat(file)?))
}

/// Whether the file is another version than the one announced.
pub(crate) fn has_changed(part: &FilePart) -> Result<bool, Errno> {
    let status = rustix::fs::fstat(&*part.file)?;
    let mut now = stamp_of(&status);
    if status.st_nlink == 0 {
        now.changed_ns = part.stamp.changed_ns;
    }
    Ok(now != part.stamp)
}

fn stamp_of(status: &Stat) -> FileStamp {
    let nanoseconds = |seconds: i128, rest: i128| seconds * 1_000_000_000 + rest;
    FileStamp {
        device: status.st_dev,
        inode: status.st_ino,
        size_bytes: status.st_size as u64,
        modified_ns: nanoseconds(status.st_mtime.into(), status.st_mtime_nsec.into()),
        changed_ns: nanoseconds(status.st_ctime.into(), status.st_ctime_nsec.into()),
    }
}
