//! A send that may take several goes: the container, and where in it we stand.
//!
//! It owns the [`Outgoing`] until the send is over. It must never wait. Order of calls: `advance` until
//! `Done` or `Failed`, each time when what the last [`Stop`] names is over.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};

use crate::file_send::{DRAIN_RETRY_MS_MAX, FileSend, FileStep};
use crate::warming::Warmed;
use crate::{Outgoing, Part};

/// How much one connection may hand to the kernel in one turn.
const TURN_BYTES_MAX: usize = 1024 * 1024;

/// Steps of a file in one turn.
const TURN_FILE_STEPS_MAX: u32 = 8;

/// Pieces of memory handed to the kernel at once.
const PIECES_MAX: usize = 64;

/// Why `advance` returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Everything was taken.
    Done,
    /// Others are to have their turn.
    Budget,
    /// The socket is full.
    Full,
    /// See [`FileStep::Draining`].
    Draining,
    /// See [`FileStep::Cold`]; `warm` is to be called.
    Cold,
    /// The flight cannot go on: an `errno`.
    Failed(i32),
}

/// A send that has begun.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) outgoing: Box<Outgoing>,
    /// Whether to close afterwards.
    pub(super) last: bool,
    delay_ms: u64,
    /// The part we are in, counted from 0. Own bytes that no part covers follow the last one.
    part: usize,
    /// Bytes of a part of memory that were taken.
    part_taken: usize,
    /// Own bytes that were taken with all parts before.
    own_taken: usize,
    file: FileSend,
}

impl Flight {
    #[inline]
    pub(super) fn new(outgoing: Box<Outgoing>, last: bool) -> Self {
        let file = FileSend::default();
        Self { outgoing, last, delay_ms: 0, part: 0, part_taken: 0, own_taken: 0, file }
    }

    /// Hands to the kernel what it takes, up to a turn's measure. Returns how many bytes it took, and why it
    /// ended.
    #[inline]
    pub(super) fn advance(&mut self, socket: BorrowedFd<'_>) -> (u64, Stop) {
        let (own, parts) = self.outgoing.contents();
        let rest = match parts {
            [] => &own[self.own_taken..],
            [Part::Shared(slice)] if own.is_empty() && self.part_taken == 0 && self.part == 0 => {
                slice.as_bytes()
            }
            _ => return self.advance_parts(socket),
        };
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT | self.end_flag();
        match rustix::net::send(socket, rest, flags) {
            Ok(taken) if taken == rest.len() => (taken as u64, Stop::Done),
            // Less than all means that the socket is full now.
            Ok(taken) => {
                if parts.is_empty() {
                    self.own_taken += taken;
                } else {
                    self.part_taken += taken;
                }
                (taken as u64, Stop::Full)
            }
            Err(errno) => (0, stop_of(errno)),
        }
    }

    /// The flag of what is sent at the end: a close that follows at once ends the last segment, in place of
    /// a segment of its own.
    fn end_flag(&self) -> SendFlags {
        if self.last { SendFlags::MORE } else { SendFlags::empty() }
    }

    /// After `Cold`. `false` if the warming threads have too much to do.
    pub(super) fn warm(&self, home: &Arc<Warmed>, token: u64) -> bool {
        match self.outgoing.contents().1.get(self.part) {
            Some(Part::File(part)) => self.file.warm(part, home, token),
            _ => false,
        }
    }

    /// What was asked for by `warm` is there.
    pub(super) fn note_warmed(&mut self, read: Option<Result<Vec<u8>, i32>>) {
        self.file.note_warmed(read);
    }

    /// How long to wait before the next retry, in milliseconds: almost nothing for near peers, and for far
    /// ones never more than they have been waited for already.
    pub(super) fn next_delay_ms(&mut self) -> u64 {
        self.delay_ms = (self.delay_ms * 2).clamp(1, DRAIN_RETRY_MS_MAX);
        self.delay_ms
    }

    fn advance_parts(&mut self, socket: BorrowedFd<'_>) -> (u64, Stop) {
        let mut progress = 0;
        let mut file_steps = 0;
        let mut bytes_left = TURN_BYTES_MAX;
        loop {
            let (own, parts) = self.outgoing.contents();
            if self.part == parts.len() && self.own_taken == own.len() {
                return (progress, Stop::Done);
            }
            if bytes_left == 0 || file_steps == TURN_FILE_STEPS_MAX {
                return (progress, Stop::Budget);
            }
            if let Some(Part::File(part)) = parts.get(self.part) {
                file_steps += 1;
                let before_bytes = self.file.sent_bytes();
                match self.file.step(socket, part) {
                    FileStep::Progress => progress += self.file.sent_bytes() - before_bytes,
                    FileStep::Done => {
                        progress += part.length_bytes - before_bytes;
                        self.part += 1;
                        self.file = FileSend::default();
                        self.delay_ms = 0;
                    }
                    FileStep::WouldBlock => return (progress, Stop::Full),
                    FileStep::Draining => return (progress, Stop::Draining),
                    FileStep::Cold => return (progress, Stop::Cold),
                    FileStep::Failed(errno) => return (progress, Stop::Failed(errno)),
                }
                continue;
            }
            match self.send_memory(socket, bytes_left) {
                Ok((wanted, taken)) => {
                    progress += taken as u64;
                    self.take(taken);
                    if taken < wanted {
                        return (progress, Stop::Full);
                    }
                    bytes_left -= taken;
                }
                Err(errno) => return (progress, stop_of(errno)),
            }
        }
    }

    /// Sends pieces of memory from where we stand up to the next file, at most so many bytes. Returns how
    /// many were offered and how many taken.
    fn send_memory(&self, socket: BorrowedFd<'_>, bytes_max: usize) -> Result<(usize, usize), Errno> {
        let (own, parts) = self.outgoing.contents();
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let (mut count, mut wanted) = (0, 0);
        let mut own_rest = &own[self.own_taken..];
        let mut skip = self.part_taken;
        let mut part = self.part;
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        while count < PIECES_MAX && wanted < bytes_max && part <= parts.len() {
            let bytes = match parts.get(part) {
                Some(Part::Own(length)) => {
                    let (piece, rest) = own_rest.split_at(*length - skip);
                    own_rest = rest;
                    piece
                }
                Some(Part::Shared(slice)) => &slice.as_bytes()[skip..],
                Some(Part::File(_)) => {
                    // The head waits for the file's first bytes, so that they go out together.
                    flags |= SendFlags::MORE;
                    break;
                }
                None => own_rest,
            };
            let bytes = &bytes[..bytes.len().min(bytes_max - wanted)];
            pieces[count] = IoSlice::new(bytes);
            count += 1;
            wanted += bytes.len();
            skip = 0;
            part += 1;
        }
        if wanted == 0 {
            return Ok((0, 0));
        }
        if part > parts.len() {
            flags |= self.end_flag();
        }
        let taken =
            rustix::net::sendmsg(socket, &pieces[..count], &mut SendAncillaryBuffer::default(), flags)?;
        Ok((wanted, taken))
    }

    /// Moves on by so many bytes of memory, and over parts that are empty. Stops at a file and at the end.
    fn take(&mut self, mut taken: usize) {
        let (own, parts) = self.outgoing.contents();
        while let Some(part) = parts.get(self.part) {
            let (length, is_own) = match part {
                Part::Own(length) => (*length, true),
                Part::Shared(slice) => (slice.as_bytes().len(), false),
                Part::File(_) => return,
            };
            let step = taken.min(length - self.part_taken);
            taken -= step;
            self.part_taken += step;
            self.own_taken += if is_own { step } else { 0 };
            if self.part_taken < length {
                return;
            }
            self.part += 1;
            self.part_taken = 0;
        }
        self.own_taken += taken;
        debug_assert!(self.own_taken <= own.len());
    }
}

fn stop_of(errno: Errno) -> Stop {
    match errno {
        Errno::AGAIN => Stop::Full,
        Errno::INTR => Stop::Budget,
        errno => Stop::Failed(errno.raw_os_error()),
    }
}

/// All flights of a backend: those of this turn that are not begun yet, and those that stopped short.
#[derive(Debug, Default)]
pub(super) struct Flights {
    places: Vec<Option<Flight>>,
    free: Vec<u32>,
}

impl Flights {
    pub(super) fn insert(&mut self, flight: Flight) -> u32 {
        if let Some(index) = self.free.pop() {
            self.places[index as usize] = Some(flight);
            return index;
        }
        self.places.push(Some(flight));
        (self.places.len() - 1) as u32
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Flight {
        self.places[index as usize].as_mut().expect("a connection's flight is in its place")
    }

    pub(super) fn remove(&mut self, index: u32) -> Flight {
        let flight = self.places[index as usize].take().expect("a connection's flight is in its place");
        self.free.push(index);
        flight
    }

    /// Gives back the places behind the last one in use.
    pub(super) fn shrink(&mut self) {
        let used = self.places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        self.places.truncate(used);
        self.free.retain(|index| (*index as usize) < used);
        self.places.shrink_to_fit();
        self.free.shrink_to_fit();
    }
}
