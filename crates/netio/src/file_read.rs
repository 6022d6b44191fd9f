//! Reads parts of files into memory, for who cannot give them to the kernel as they are: they are sealed
//! before they are sent.
//!
//! It owns the list of what other threads have read ahead. It must never wait for a disk, and never give
//! bytes of another version than the one that was announced. Order of calls: `read`; after
//! [`FileRead::Cold`] `warm`, and `read` again when its token comes out of `take`, to which the waker calls.
//! What comes with the token is given to that `read` in an [`Ahead`].

use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::io::Errno;

use crate::file_send::{Missing, PIECE_BYTES, read};
use crate::file_stamp::has_changed;
use crate::outgoing::FilePart;
use crate::wake::Waker;
use crate::warming::{self, ColdRead, Warmed};

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

/// What other threads have read of a part, from the place on that is read next.
#[derive(Debug, Default)]
pub struct Ahead {
    /// Pages were warmed, and nothing of them was read yet.
    warmed: bool,
    /// Only other threads read the file: nothing tells whether a read would wait, or pages were cold again
    /// once they were warmed.
    is_blind: bool,
    read: Option<Result<Vec<u8>, i32>>,
}

impl Ahead {
    /// Memory that it takes.
    pub fn held_bytes(&self) -> usize {
        match &self.read {
            Some(Ok(bytes)) => bytes.capacity(),
            _ => 0,
        }
    }

    /// Nothing is known of what is read next: another part.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// What was asked for is there.
    pub fn note(&mut self, warmed: WarmedPart) {
        self.warmed = warmed.read.is_none();
        self.read = warmed.read;
    }

    fn miss(&mut self, why: Missing) -> FileRead {
        self.is_blind |= why == Missing::Unknown || self.warmed;
        FileRead::Cold
    }

    /// Takes what another thread has read.
    fn take(&mut self, bytes: &mut [u8]) -> FileRead {
        match &mut self.read {
            None => FileRead::Cold,
            Some(Err(errno)) => FileRead::Failed(*errno),
            Some(Ok(read)) => {
                let count = read.len().min(bytes.len());
                bytes[..count].copy_from_slice(&read[..count]);
                if count < read.len() {
                    read.drain(..count);
                } else {
                    self.read = None;
                }
                FileRead::Read(count)
            }
        }
    }
}

/// What came of [`FileReader::warm`].
#[derive(Debug)]
pub struct WarmedPart {
    /// The token that was given.
    pub token: u64,
    read: Option<Result<Vec<u8>, i32>>,
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

    /// Reads on behind the first `done_bytes` of a part.
    pub fn read(&self, part: &FilePart, done_bytes: u64, ahead: &mut Ahead, bytes: &mut [u8]) -> FileRead {
        let left = part.length_bytes.saturating_sub(done_bytes);
        let wanted = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if ahead.is_blind {
            return ahead.take(&mut bytes[..wanted]);
        }
        let offset = part.offset_bytes + done_bytes;
        let stale = FileRead::Failed(Errno::STALE.raw_os_error());
        match read(part.file.as_fd(), &mut bytes[..wanted], offset) {
            Ok(Err(why)) => ahead.miss(why),
            Ok(Ok(0)) => stale,
            // In this order: a writer changes the stamp before it changes a byte.
            Ok(Ok(count)) => match has_changed(part) {
                Ok(false) => {
                    ahead.warmed = false;
                    FileRead::Read(count)
                }
                Ok(true) => stale,
                Err(errno) => FileRead::Failed(errno.raw_os_error()),
            },
            Err(Errno::INTR) => FileRead::Cold,
            Err(errno) => FileRead::Failed(errno.raw_os_error()),
        }
    }

    /// Has the next bytes read by a thread that may wait; `token` comes out of [`Self::take`] then. `false`
    /// if the threads have too much to do: `read` again a little later.
    pub fn warm(&self, part: &FilePart, done_bytes: u64, ahead: &Ahead, token: u64) -> bool {
        let left = part.length_bytes.saturating_sub(done_bytes);
        let offset = part.offset_bytes + done_bytes;
        let (bytes, wanted) =
            if ahead.is_blind { (PIECE_BYTES, ColdRead::Bytes) } else { (WINDOW_BYTES, ColdRead::Pages) };
        warming::ask(&self.warmed, token, part, (offset, left.min(bytes)), wanted)
    }

    /// What was read ahead since the last call.
    pub fn take(&self) -> Vec<WarmedPart> {
        self.warmed.take().into_iter().map(|done| WarmedPart { token: done.token, read: done.read }).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::file_stamp::stamp;

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
        let first = reader.read(&part, 0, &mut Ahead::default(), &mut bytes);
        assert_eq!((first, &bytes), (FileRead::Read(4), b"2345"));
        let last = reader.read(&part, 4, &mut Ahead::default(), &mut bytes);
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
        assert_eq!(reader.read(&part, 0, &mut Ahead::default(), &mut [0; 4]), stale);
        std::fs::remove_file(path).expect("a file of ours");
    }
}
