//! The bytes of a file, read whole between two equal stamps, or the open file.
//!
//! It must never give bytes of which it is not known that they are one version of the file.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use staunch_engine::FileStamp;

use crate::content::entry::{Common, Representation};
use crate::content::negotiate::Encoding;
use crate::content::path::{Opened, stamp_of};
use crate::content::prepare;
use crate::limits::{READ_TRIES_MAX, STAMP_STEP_MS};
use crate::problem::Problem;

/// A file's bytes, or the file.
pub(crate) enum FileSource {
    Read(Vec<u8>, FileStamp),
    Open(OwnedFd, FileStamp),
}

impl FileSource {
    pub(crate) fn stamp(&self) -> &FileStamp {
        match self {
            Self::Read(_, stamp) | Self::Open(_, stamp) => stamp,
        }
    }

    pub(crate) fn representation(self, common: &Common<'_>, encoding: Option<Encoding>) -> Representation {
        match self {
            Self::Read(bytes, _) => prepare::held(common, encoding, &bytes),
            Self::Open(file, stamp) => prepare::in_file(common, encoding, Arc::new(file), stamp),
        }
    }
}

/// Reads a file if it is small enough to be held and stays still.
pub(crate) fn source_of(opened: Opened, held_file_bytes_max: u64) -> Result<FileSource, Problem> {
    let mut stamp = opened.stamp;
    for _ in 0..READ_TRIES_MAX {
        if stamp.size_bytes > held_file_bytes_max {
            break;
        }
        match read_still(&opened.file, &stamp).map_err(|_| Problem::Failed)? {
            Ok(bytes) => return Ok(FileSource::Read(bytes, stamp)),
            Err(after) => stamp = after,
        }
    }
    Ok(FileSource::Open(opened.file, stamp))
}

/// Reads a file whole that is what the stamp says before and afterwards; else tells what it is now.
pub(crate) fn read_still(file: &OwnedFd, stamp: &FileStamp) -> Result<Result<Vec<u8>, FileStamp>, Errno> {
    let bytes = read_once(file, stamp)?;
    wait_for_next_stamp(stamp);
    let after = stamp_of(file)?;
    Ok(bytes.filter(|_| after == *stamp).ok_or(after))
}

/// Reads as many bytes as the stamp says there are; `None` if there are more or fewer.
pub(crate) fn read_once(file: &OwnedFd, stamp: &FileStamp) -> Result<Option<Vec<u8>>, Errno> {
    // A byte more than the stamp says is read, so that a file which has grown shows it.
    let mut bytes = vec![0; stamp.size_bytes as usize + 1];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::pread(file, &mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            // A read of the right length that had room for more has met the end.
            Ok(count) if (filled + count) as u64 == stamp.size_bytes => {
                filled += count;
                break;
            }
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(filled);
    Ok((filled as u64 == stamp.size_bytes).then_some(bytes))
}

/// Two changes within one step of the file system's clock leave the same stamp. A file that has just changed
/// is looked at again when the next change would show.
fn wait_for_next_stamp(stamp: &FileStamp) {
    let now_ns = since_1970().as_nanos() as i128;
    let step_ns = i128::from(STAMP_STEP_MS) * 1_000_000;
    let age_ns = now_ns - stamp.changed_ns;
    if (0..step_ns).contains(&age_ns) {
        // tidy: allow(clock): a loader thread waits for the file system's clock; no worker does.
        std::thread::sleep(Duration::from_nanos((step_ns - age_ns) as u64));
    }
}

pub(crate) fn since_1970() -> Duration {
    // tidy: allow(clock): times of files are compared with the time of day, off the workers.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
