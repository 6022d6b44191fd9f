//! Reads parts of files into memory, for who cannot give them to the kernel as they are: they are sealed
//! before they are sent.
//!
//! It owns the list of what another thread has read ahead. It must never wait for a disk, and never give
//! bytes of another version than the one that was announced. Order of calls: `read`; after
//! [`FileRead::Cold`] `warm`, and `read` again when its token comes out of `take`, to which the waker calls.

use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::io::Errno;

use crate::file_send::{has_changed, read};
use crate::outgoing::FilePart;
use crate::wake::Waker;
use crate::warming::{self, Warmed};

/// How much is read ahead at a time.
const WINDOW_BYTES: u64 = 1024 * 1024;

/// What came of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRead {
    /// So many bytes, at least one.
    Read(usize),
    /// They are not in memory: reading them would wait for a disk.
    Cold,
    /// The `errno` of the call that failed, or ESTALE: the file has changed.
    Failed(i32),
}

/// Reads for one worker.
#[derive(Debug)]
pub struct FileReader {
    warmed: Arc<Warmed>,
}

impl FileReader {
    /// A reader whose worker is woken by this waker.
    pub fn new(waker: Waker) -> Self {
        Self { warmed: Warmed::new(waker) }
    }

    /// Reads on behind the first `done_bytes` of a part. `is_warmed`: they were read ahead just now, so no
    /// disk is waited for in any case.
    pub fn read(&self, part: &FilePart, done_bytes: u64, is_warmed: bool, bytes: &mut [u8]) -> FileRead {
        let left = part.length_bytes.saturating_sub(done_bytes);
        let wanted = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let offset = part.offset_bytes + done_bytes;
        let stale = FileRead::Failed(Errno::STALE.raw_os_error());
        match read(part.file.as_fd(), &mut bytes[..wanted], offset, is_warmed) {
            Ok(None) => FileRead::Cold,
            Ok(Some(0)) => stale,
            // In this order: a writer changes the stamp before it changes a byte.
            Ok(Some(count)) => match has_changed(part) {
                Ok(false) => FileRead::Read(count),
                Ok(true) => stale,
                Err(errno) => FileRead::Failed(errno.raw_os_error()),
            },
            Err(Errno::INTR) => FileRead::Cold,
            Err(errno) => FileRead::Failed(errno.raw_os_error()),
        }
    }

    /// Has the next bytes read by a thread that may wait; `token` comes out of [`Self::take`] then. `false`
    /// if the thread has too much to do: `read` again a little later.
    pub fn warm(&self, part: &FilePart, done_bytes: u64, token: u64) -> bool {
        let left = part.length_bytes.saturating_sub(done_bytes);
        let offset = part.offset_bytes + done_bytes;
        warming::warm(&self.warmed, token, &part.file, offset, left.min(WINDOW_BYTES))
    }

    /// Tokens of what was read ahead since the last call.
    pub fn take(&self) -> Vec<u64> {
        self.warmed.take()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::file_send::stamp;

    fn part(name: &str, content: &[u8]) -> (std::path::PathBuf, FilePart) {
        let path = std::env::temp_dir().join(format!("staunch-file-read-{name}-{}", std::process::id()));
        std::fs::write(&path, content).expect("a file");
        let file = std::fs::File::open(&path).expect("a file");
        let stamp = stamp(&file).expect("a stamp");
        let length_bytes = content.len() as u64;
        (path, FilePart { file: Arc::new(file.into()), offset_bytes: 0, length_bytes, stamp })
    }

    #[test]
    fn a_part_is_read_piece_by_piece_and_not_beyond_its_end() {
        let (path, mut part) = part("pieces", b"0123456789");
        (part.offset_bytes, part.length_bytes) = (2, 6);
        let reader = FileReader::new(Waker::new().expect("a waker"));
        let mut bytes = [0; 4];
        let first = reader.read(&part, 0, false, &mut bytes);
        assert_eq!((first, &bytes), (FileRead::Read(4), b"2345"));
        let last = reader.read(&part, 4, true, &mut bytes);
        assert_eq!((last, &bytes[..2]), (FileRead::Read(2), &b"67"[..]));
        std::fs::remove_file(path).expect("a file of ours");
    }

    #[test]
    fn a_file_that_has_changed_is_told() {
        let (path, part) = part("changed", b"0123456789");
        let reader = FileReader::new(Waker::new().expect("a waker"));
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("a file");
        file.write_all(b"more").expect("room");
        let stale = FileRead::Failed(Errno::STALE.raw_os_error());
        assert_eq!(reader.read(&part, 0, false, &mut [0; 4]), stale);
        std::fs::remove_file(path).expect("a file of ours");
    }
}
