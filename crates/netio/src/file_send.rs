//! Sends part of a file to a socket without ever blocking on a disk and without ever making a changed file
//! look whole.
//!
//! It owns where one such sending stands; the descriptors belong to others. Order of calls: `step` until
//! `Done` or `Failed`; after `WouldBlock` the next step waits for room in the socket, after `Draining` a time
//! of at most [`DRAIN_RETRY_MS_MAX`], after `Cold` for what `warm` asked for.
//!
//! Rule 1: a large part goes by sendfile(2), which hands the file's own pages to the socket. What is
//! rewritten while it waits there reaches the peer rewritten. So the last bytes are held back until the peer
//! has every page before them, and are sent only if the file's stamp is still the one that was announced: a
//! body that is mixed is never complete. (On one machine the peer's queue shares those pages too, until the
//! peer has read them: there the promise is for a peer that reads.) Rule 2: small parts and the tail go
//! through memory, the stamp compared between reading and sending. Rule 3: before pages are used they are
//! probed, and a cold one is left to the warming threads. Where nothing tells whether a read would wait (a
//! file system without RWF_NOWAIT that does not live in memory: overlayfs, FUSE, NFS), and where pages are
//! cold again once they were warmed, those threads read the bytes themselves, and look at the stamp: neither
//! the file nor its stamp is touched here then. Rule 4: replacing a file by rename(2), as every
//! careful deployment does, ends nothing: the old version is sent to its end. Unlinking it changes its change
//! time and nothing else, and leaves it without a name. Rule 5: a peer that is gone raises SIGPIPE in
//! sendfile(2); the process has to ignore it, as every Rust program does from its start.

use std::cell::RefCell;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::SendFlags;

use crate::file_stamp::has_changed;
use crate::outgoing::FilePart;
use crate::socket::bytes_unacknowledged;
use crate::warming::{self, ColdRead, Warmed};

/// How much one step moves by sendfile(2): whole pages that fit into one segment of 64 KiB with its headers.
/// A step of more ends in a small segment of its own, and each segment may have to wake the peer: steps of
/// 256 KiB cost twice the processor time, 0.34 against 0.15 s a GiB.
const STEP_BYTES_MAX: u64 = 60 * 1024;

/// How much is looked at ahead of the steps, for cold pages and for a change.
const WINDOW_BYTES: u64 = 1024 * 1024;

/// How much goes through memory at a time.
pub(crate) const PIECE_BYTES: u64 = 64 * 1024;

/// The end of a large part that goes through memory. Longer than what is held back, because a peer is slow
/// (40 ms) to acknowledge bytes after which nothing comes.
const TAIL_BYTES: u64 = 192 * 1024;

/// What is held back of the tail until the peer has acknowledged every page.
const HELD_BACK_BYTES: u64 = 4 * 1024;

/// Parts up to this length go through memory as a whole: cheaper than waiting for the peer to acknowledge.
const COPIED_BYTES_MAX: u64 = 256 * 1024;

const _: () = assert!(HELD_BACK_BYTES < TAIL_BYTES && TAIL_BYTES < COPIED_BYTES_MAX);

/// After `Draining` the step is to be tried again after 1 ms, then 2, 4 and so on up to this: a near peer
/// costs no time, and thousands of slow ones cost no processor.
pub(crate) const DRAIN_RETRY_MS_MAX: u64 = 100;

/// What one step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStep {
    /// Some bytes were taken; call again.
    Progress,
    /// The socket is full; call again when there is room.
    WouldBlock,
    /// The last bytes wait until the peer has acknowledged the rest; call again within
    /// [`DRAIN_RETRY_MS_MAX`].
    Draining,
    /// The next bytes are not in memory; call `warm`, and `step` again when it is done.
    Cold,
    /// Everything was taken.
    Done,
    /// The sending cannot go on: ESTALE if the file has changed, else the `errno` of the call that failed.
    Failed(i32),
}

/// Where the sending of one [`FilePart`] stands. `default()` is the start.
#[derive(Debug, Default)]
pub(crate) struct FileSend {
    sent_bytes: u64,
    /// Pages were warmed, and nothing of them was used yet.
    warmed: bool,
    /// Only the warming threads read the file.
    is_blind: bool,
    /// What they have read, from the present place on.
    ahead: Option<Result<Vec<u8>, i32>>,
    /// Up to here, by the count of `sent_bytes`, pages were found in memory and the file unchanged.
    vetted_bytes: u64,
    /// Pages of the file may still wait in the socket's queue, before this many bytes that passed through
    /// memory.
    pages_queued: bool,
    copied_bytes: u64,
    /// The file system cannot do sendfile(2).
    copies: bool,
}

impl FileSend {
    /// Moves at most 64 KiB of `part` to `socket`, both the same in every call.
    pub(crate) fn step(&mut self, socket: BorrowedFd<'_>, part: &FilePart) -> FileStep {
        let left = part.length_bytes - self.sent_bytes;
        if left == 0 {
            return FileStep::Done;
        }
        if self.is_blind {
            return self.pass_on(socket, left).unwrap_or_else(|errno| self.stop_for(errno));
        }
        let copies = self.copies || part.length_bytes <= COPIED_BYTES_MAX || left <= TAIL_BYTES;
        let stepped = if copies { self.copy(socket, part, left) } else { self.splice(socket, part, left) };
        stepped.unwrap_or_else(|errno| self.stop_for(errno))
    }

    fn stop_for(&mut self, errno: Errno) -> FileStep {
        match errno {
            Errno::AGAIN => {
                // They are read again: a slow peer holds no memory.
                self.ahead = None;
                FileStep::WouldBlock
            }
            Errno::INTR => FileStep::Progress,
            errno => FileStep::Failed(errno.raw_os_error()),
        }
    }

    /// How many bytes of the part were taken.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// After `Cold`: asks the warming threads for the next bytes; `token` comes out of `home`, and until that
    /// was told to `note_warmed` there must be no `step`. `false` if they have too much to do: `step` again a
    /// little later.
    pub(crate) fn warm(&self, part: &FilePart, home: &Arc<Warmed>, token: u64) -> bool {
        let left = part.length_bytes - self.sent_bytes;
        let offset = part.offset_bytes + self.sent_bytes;
        let (bytes, wanted) = match self.is_blind {
            true => (self.copied_at_once(left), ColdRead::Bytes),
            false => (left.min(WINDOW_BYTES), ColdRead::Pages),
        };
        warming::ask(home, token, part, (offset, bytes), wanted)
    }

    /// What was asked for is there.
    pub(crate) fn note_warmed(&mut self, read: Option<Result<Vec<u8>, i32>>) {
        self.warmed = read.is_none();
        self.ahead = read;
    }

    /// The next bytes are not in memory, or nothing tells.
    fn miss(&mut self, why: Missing) -> FileStep {
        // Warmed and cold again: there is no room for them, or the probe always says no.
        self.is_blind |= why == Missing::Unknown || self.warmed;
        FileStep::Cold
    }

    /// Sends what a warming thread has read.
    fn pass_on(&mut self, socket: BorrowedFd<'_>, left: u64) -> Result<FileStep, Errno> {
        if !self.may_end(socket, left)? {
            return Ok(FileStep::Draining);
        }
        let bytes = match &self.ahead {
            None => return Ok(FileStep::Cold),
            Some(Err(errno)) => return Ok(FileStep::Failed(*errno)),
            Some(Ok(bytes)) => bytes,
        };
        let more = if bytes.len() as u64 == left { SendFlags::empty() } else { SendFlags::MORE };
        let sent = rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | more)?;
        self.sent_bytes += sent as u64;
        self.copied_bytes += sent as u64;
        match &mut self.ahead {
            Some(Ok(bytes)) if sent < bytes.len() => _ = bytes.drain(..sent),
            ahead => *ahead = None,
        }
        Ok(if sent as u64 == left { FileStep::Done } else { FileStep::Progress })
    }

    fn splice(&mut self, socket: BorrowedFd<'_>, part: &FilePart, left: u64) -> Result<FileStep, Errno> {
        let file = part.file.as_fd();
        let mut offset = part.offset_bytes + self.sent_bytes;
        if self.vetted_bytes <= self.sent_bytes {
            let window = WINDOW_BYTES.min(left - TAIL_BYTES);
            if let Some(why) = missing_ends(file, offset, window)? {
                return Ok(self.miss(why));
            }
            if has_changed(part)? {
                return Ok(FileStep::Failed(Errno::STALE.raw_os_error()));
            }
            self.warmed = false;
            self.vetted_bytes = self.sent_bytes + window;
        }
        let length = STEP_BYTES_MAX.min(self.vetted_bytes - self.sent_bytes);
        match rustix::fs::sendfile(socket, file, Some(&mut offset), length as usize) {
            Ok(0) => Ok(FileStep::Failed(Errno::STALE.raw_os_error())),
            Ok(count) => {
                self.sent_bytes += count as u64;
                self.pages_queued = true;
                self.copied_bytes = 0;
                Ok(FileStep::Progress)
            }
            Err(Errno::INVAL | Errno::NOSYS) => {
                self.copies = true;
                Ok(FileStep::Progress)
            }
            Err(errno) => Err(errno),
        }
    }

    /// How much goes through memory next: not what is held back.
    fn copied_at_once(&self, left: u64) -> u64 {
        let held_back = if self.pages_queued && left > HELD_BACK_BYTES { HELD_BACK_BYTES } else { 0 };
        (left - held_back).min(PIECE_BYTES)
    }

    /// Whether what is held back may go: the peer has every page before it, or it is not its turn.
    fn may_end(&mut self, socket: BorrowedFd<'_>, left: u64) -> Result<bool, Errno> {
        if self.pages_queued && left <= HELD_BACK_BYTES {
            if bytes_unacknowledged(socket)? > self.copied_bytes {
                // A connection broken off keeps what it never got acknowledged, and would be waited for in
                // vain.
                rustix::net::getpeername(socket)?;
                return Ok(false);
            }
            self.pages_queued = false;
        }
        Ok(true)
    }

    fn copy(&mut self, socket: BorrowedFd<'_>, part: &FilePart, left: u64) -> Result<FileStep, Errno> {
        if !self.may_end(socket, left)? {
            return Ok(FileStep::Draining);
        }
        let wanted = self.copied_at_once(left);
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(PIECE_BYTES as usize, 0);
            let offset = part.offset_bytes + self.sent_bytes;
            let bytes = &mut scratch[..wanted as usize];
            let count = match read(part.file.as_fd(), bytes, offset)? {
                Ok(count) => count,
                Err(why) => return Ok(self.miss(why)),
            };
            // In this order: a writer changes the stamp before it changes a byte, so bytes read before the
            // stamp was found unchanged are bytes of that version.
            if count == 0 || has_changed(part)? {
                return Ok(FileStep::Failed(Errno::STALE.raw_os_error()));
            }
            let more = if count as u64 == left { SendFlags::empty() } else { SendFlags::MORE };
            let sent = rustix::net::send(socket, &scratch[..count], SendFlags::NOSIGNAL | more)?;
            self.sent_bytes += sent as u64;
            self.copied_bytes += sent as u64;
            self.warmed = false;
            Ok(if sent as u64 == left { FileStep::Done } else { FileStep::Progress })
        })
    }
}

/// Why bytes cannot be read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// They are not in memory.
    Cold,
    /// The file system does not tell whether a read would wait, and may have a disk or a network behind it.
    Unknown,
}

/// Reads without waiting.
pub(crate) fn read(
    file: BorrowedFd<'_>,
    bytes: &mut [u8],
    offset: u64,
) -> Result<Result<usize, Missing>, Errno> {
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(bytes)], offset, ReadWriteFlags::NOWAIT) {
        Ok(count) => Ok(Ok(count)),
        Err(Errno::AGAIN) => Ok(Err(Missing::Cold)),
        Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) if lives_in_memory(file) => {
            rustix::io::pread(file, bytes, offset).map(Ok)
        }
        Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Ok(Err(Missing::Unknown)),
        Err(errno) => Err(errno),
    }
}

/// Whether the file is one of tmpfs, which has neither RWF_NOWAIT nor a disk. Only such files have seals
/// (fcntl(2), F_GET_SEALS); to ask costs no look at the file system, which statfs(2) would.
fn lives_in_memory(file: BorrowedFd<'_>) -> bool {
    rustix::fs::fcntl_get_seals(file).is_ok()
}

thread_local! {
    /// Where pieces are read to. Not a part of each sending: what the socket did not take is read again, so a
    /// slow peer holds no memory.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Why a range is not to be used yet, by its first and last page. Beyond the end of a file nothing is
/// missing: the sending itself finds out.
fn missing_ends(file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<Option<Missing>, Errno> {
    for place in [offset, offset + length - 1] {
        if let Err(why) = read(file, &mut [0], place)? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
