//! Sends that are under way: whose they are, how far they came, and the memory the kernel reads meanwhile.
//!
//! Owns the containers between `send` and `Sent`. It must never move or free what the kernel may still read:
//! bytes stand in the container's own heap block, message headers in a box. Entries are used again, so that a
//! send costs no allocation.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::file_send::{FileSend, FileStep, PIECE_BYTES};
use crate::warming::{self, ColdRead, Warmed};
use crate::{FilePart, Outgoing, Part, Slot};

/// How many pieces of memory one send may have; the kernel's UIO_MAXIOV.
const VECTORS_MAX: usize = 1024;

/// For so many pieces a list keeps its memory for the next send.
const VECTORS_KEPT: usize = 32;

/// The header of a send of several pieces, and the list it points to.
pub(crate) struct Message {
    header: libc::msghdr,
    vectors: Vec<libc::iovec>,
}

/// What a file needs while it is being sent.
#[derive(Default)]
pub(crate) struct FileJob {
    /// The connection as a normal, non-blocking descriptor, as long as the file is sent from the page cache.
    pub(crate) socket: Option<OwnedFd>,
    /// How far the part came, when sent from the page cache.
    pub(crate) progress: FileSend,
    /// Bytes read from the file, when it is copied.
    pub(crate) buffer: Vec<u8>,
    /// How much of `buffer` was sent.
    pub(crate) buffer_sent: usize,
    /// No descriptor could be had: this and the following parts are copied.
    pub(crate) copies: bool,
    /// The present part is being sent by steps.
    pub(crate) stepping: bool,
    /// The warming threads were asked for the next bytes.
    pub(crate) warming: bool,
}

impl FileJob {
    /// Starts with a part that is sent by steps. The socket must not block during a step.
    pub(crate) fn start_steps(&mut self) {
        self.stepping = true;
        self.progress = FileSend::default();
        self.set_non_blocking(true);
    }

    /// A part was sent by steps as a whole. Operations of the ring must not be told EAGAIN any more.
    pub(crate) fn finish_steps(&mut self) {
        self.stepping = false;
        self.set_non_blocking(false);
    }

    fn set_non_blocking(&self, value: bool) {
        if let Some(socket) = &self.socket {
            // FIONBIO of an open socket does not fail.
            let _ = rustix::io::ioctl_fionbio(socket, value);
        }
    }
}

impl Drop for FileJob {
    fn drop(&mut self) {
        self.set_non_blocking(false);
    }
}

/// What is next to be sent.
pub(crate) enum Piece {
    /// A run of bytes; `more` if it is not the end.
    Bytes { address: *const u8, length: usize, more: bool },
    /// Several runs; the header stands in the entry.
    Vectors { header: *const libc::msghdr, length: usize, more: bool },
    /// A file is next.
    File,
    /// Nothing is left.
    End,
}

/// A send that the kernel has, or is about to have.
#[derive(Default)]
pub(crate) struct InFlight {
    /// The container.
    pub(crate) outgoing: Option<Box<Outgoing>>,
    /// Whose send it is.
    pub(crate) slot: Slot,
    /// State of the file that is being sent.
    pub(crate) file: Option<Box<FileJob>>,
    part: usize,
    taken_of_part: u64,
    taken_of_own: usize,
    message: Option<Box<Message>>,
}

impl InFlight {
    fn contents(&self) -> (&[u8], &[Part]) {
        self.outgoing.as_ref().map_or((&[], &[]), |outgoing| outgoing.contents())
    }

    /// The next piece to give to the kernel.
    #[inline]
    pub(crate) fn next_piece(&mut self) -> Piece {
        let (own, parts) = self.contents();
        let rest = match parts {
            [] => &own[self.taken_of_own..],
            [Part::Shared(slice)] if own.is_empty() && self.part == 0 => {
                &slice.as_bytes()[self.taken_of_part as usize..]
            }
            _ => return self.gather(),
        };
        match rest.len() {
            0 => Piece::End,
            length => Piece::Bytes { address: rest.as_ptr(), length, more: false },
        }
    }

    /// The part of a file that is next.
    pub(crate) fn file_part(&self) -> Option<&FilePart> {
        match self.contents().1.get(self.part) {
            Some(Part::File(part)) => Some(part),
            _ => None,
        }
    }

    /// How many bytes of the present part of a file were sent, when it is copied.
    pub(crate) fn taken_of_file(&self) -> u64 {
        self.taken_of_part
    }

    /// How much of the present part of a file was sent by steps.
    pub(crate) fn stepped_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |job| job.progress.sent_bytes())
    }

    /// Takes a step of the present part of a file.
    pub(crate) fn step_file(&mut self) -> FileStep {
        match self.file_and_part() {
            Some((FileJob { socket: Some(socket), progress, .. }, part)) => {
                progress.step(socket.as_fd(), part)
            }
            _ => unreachable!("a file is stepped only with a socket"),
        }
    }

    /// Asks for the next bytes of a file to be read from the disk. Returns whether they will be.
    pub(crate) fn warm_file(&mut self, home: &Arc<Warmed>, token: u64) -> bool {
        let Some((job, part)) = self.file_and_part() else { return false };
        job.warming = job.progress.warm(part, home, token);
        job.warming
    }

    /// Asks for the next bytes of a part that is copied to be read, where nothing tells whether that waits.
    /// Returns whether they will be.
    pub(crate) fn read_file_aside(&mut self, home: &Arc<Warmed>, token: u64) -> bool {
        let taken = self.taken_of_part;
        let Some((job, part)) = self.file_and_part() else { return false };
        let range = (part.offset_bytes + taken, (part.length_bytes - taken).min(PIECE_BYTES));
        job.warming = warming::ask(home, token, part, range, ColdRead::Bytes);
        job.warming
    }

    fn file_and_part(&mut self) -> Option<(&mut FileJob, &FilePart)> {
        let parts = self.outgoing.as_ref()?.contents().1;
        match parts.get(self.part) {
            Some(Part::File(part)) => Some((self.file.as_mut()?, part)),
            _ => None,
        }
    }

    /// The part of a file was sent as a whole.
    pub(crate) fn finish_file_part(&mut self) {
        self.part += 1;
        self.taken_of_part = 0;
    }

    /// Whether nothing is left.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        let (own, parts) = self.contents();
        self.part == parts.len() && self.taken_of_own == own.len()
    }

    /// Whether the kernel took nothing yet.
    #[inline]
    pub(crate) fn is_untouched(&self) -> bool {
        self.part == 0 && self.taken_of_part == 0 && self.taken_of_own == 0
    }

    /// The kernel took so many bytes of the last piece.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) {
        match self.file_and_part() {
            None => self.take_memory(count),
            Some((job, part)) => {
                job.buffer_sent += count;
                let length = part.length_bytes;
                self.taken_of_part += count as u64;
                if self.taken_of_part == length {
                    self.finish_file_part();
                }
            }
        }
    }

    fn take_memory(&mut self, mut count: usize) {
        while count > 0 {
            let part_length = match self.contents().1.get(self.part) {
                Some(Part::Own(length)) => *length,
                Some(Part::Shared(slice)) => slice.end - slice.start,
                Some(Part::File(_)) => unreachable!("bytes of memory are taken while a file is next"),
                None => {
                    self.taken_of_own += count;
                    return;
                }
            };
            let taken = count.min(part_length - self.taken_of_part as usize);
            if matches!(self.contents().1[self.part], Part::Own(_)) {
                self.taken_of_own += taken;
            }
            self.taken_of_part += taken as u64;
            if self.taken_of_part == part_length as u64 {
                self.part += 1;
                self.taken_of_part = 0;
            }
            count -= taken;
        }
    }

    /// Collects the pieces of memory up to the next file, or what was read of the present one.
    fn gather(&mut self) -> Piece {
        while self.part_is_empty_memory() {
            self.part += 1;
        }
        let taken = self.taken_of_part;
        if self.file_part().is_some() && self.file.is_none() {
            return Piece::File;
        }
        if let Some((job, part)) = self.file_and_part() {
            let rest = &job.buffer[job.buffer_sent..];
            let (address, length) = (rest.as_ptr(), rest.len());
            let ends_part = taken + length as u64 == part.length_bytes;
            let more = !ends_part || !self.ends_after_part();
            return if length == 0 { Piece::File } else { Piece::Bytes { address, length, more } };
        }
        let mut message = self.message.take().unwrap_or_else(|| {
            // SAFETY: all zeroes are a valid msghdr without name, pieces and control data.
            Box::new(Message { header: unsafe { std::mem::zeroed() }, vectors: Vec::new() })
        });
        message.vectors.clear();
        let (length, more) = self.collect(&mut message.vectors);
        let piece = match message.vectors[..] {
            [] => Piece::End,
            [only] => Piece::Bytes { address: only.iov_base.cast(), length, more },
            [..] => {
                message.header.msg_iov = message.vectors.as_mut_ptr();
                message.header.msg_iovlen = message.vectors.len() as _;
                Piece::Vectors { header: &raw const message.header, length, more }
            }
        };
        self.message = Some(message);
        piece
    }

    /// Whether nothing follows the present part.
    fn ends_after_part(&self) -> bool {
        let (own, parts) = self.contents();
        self.part + 1 == parts.len() && self.taken_of_own == own.len()
    }

    fn part_is_empty_memory(&self) -> bool {
        match self.contents().1.get(self.part) {
            Some(Part::Own(length)) => *length == 0,
            Some(Part::Shared(slice)) => slice.start == slice.end,
            Some(Part::File(_)) | None => false,
        }
    }

    /// Collects into `vectors`; returns how many bytes, and whether something follows them.
    fn collect(&self, vectors: &mut Vec<libc::iovec>) -> (usize, bool) {
        let (own, parts) = self.contents();
        let mut own_start = self.taken_of_own;
        let mut taken = self.taken_of_part as usize;
        let mut length = 0;
        for part in &parts[self.part..] {
            let bytes = match part {
                Part::Own(whole) => {
                    let bytes = &own[own_start..own_start + whole - taken];
                    own_start += bytes.len();
                    bytes
                }
                Part::Shared(slice) => &slice.as_bytes()[taken..],
                Part::File(_) => return (length, true),
            };
            length += push_vector(vectors, bytes);
            if vectors.len() == VECTORS_MAX {
                return (length, true);
            }
            taken = 0;
        }
        length += push_vector(vectors, &own[own_start..]);
        (length, false)
    }
}

fn push_vector(vectors: &mut Vec<libc::iovec>, bytes: &[u8]) -> usize {
    if !bytes.is_empty() {
        vectors.push(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
    }
    bytes.len()
}

/// All sends under way.
#[derive(Default)]
pub(crate) struct InFlightPool {
    entries: Vec<InFlight>,
    free: Vec<u32>,
}

impl InFlightPool {
    /// A new send; returns its index.
    #[inline]
    pub(crate) fn put(&mut self, slot: Slot, outgoing: Box<Outgoing>) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(InFlight::default());
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        entry.outgoing = Some(outgoing);
        entry.slot = slot;
        index
    }

    /// The send of this index.
    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> &mut InFlight {
        &mut self.entries[index as usize]
    }

    /// Ends a send: its container comes back, its index is free.
    #[inline]
    pub(crate) fn end(&mut self, index: u32) -> Option<Box<Outgoing>> {
        let entry = &mut self.entries[index as usize];
        entry.part = 0;
        entry.taken_of_part = 0;
        entry.taken_of_own = 0;
        entry.file = None;
        if entry.message.as_ref().is_some_and(|message| message.vectors.capacity() > VECTORS_KEPT) {
            entry.message = None;
        }
        self.free.push(index);
        entry.outgoing.take()
    }

    /// Gives back the entries behind the last one in use.
    pub(crate) fn shrink(&mut self) {
        let used = self.entries.iter().rposition(|entry| entry.outgoing.is_some()).map_or(0, |last| last + 1);
        self.entries.truncate(used);
        self.free.retain(|index| (*index as usize) < used);
        self.entries.shrink_to_fit();
        self.free.shrink_to_fit();
    }
}
