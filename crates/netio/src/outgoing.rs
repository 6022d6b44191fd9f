//! What is to be sent: a container of bytes, shared slices and parts of files, in order.
//!
//! It is filled by the engine, owned by the backend while in flight (so no memory can change or vanish under
//! the kernel), and given back empty for the next use. It must never be shared.

use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A piece of immutable shared bytes. Cloning adds a reference, never a copy.
#[derive(Debug, Clone)]
pub struct Slice {
    /// The whole block.
    pub bytes: Arc<[u8]>,
    /// First byte, inclusive.
    pub start: usize,
    /// Last byte, exclusive.
    pub end: usize,
}

impl Slice {
    /// The bytes of the piece.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

/// What tells one version of a file from another: inode, size, modification and change time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// Number of the device.
    pub device: u64,
    /// Number of the inode.
    pub inode: u64,
    /// Length of the file.
    pub size_bytes: u64,
    /// Modification time, nanoseconds since 1970.
    pub modified_ns: i128,
    /// Change time (of the inode), nanoseconds since 1970.
    pub changed_ns: i128,
}

/// A part of an open file, sent without passing through this process's memory.
#[derive(Debug, Clone)]
pub struct FilePart {
    /// The open file.
    pub file: Arc<OwnedFd>,
    /// First byte.
    pub offset_bytes: u64,
    /// How many bytes.
    pub length_bytes: u64,
    /// What the file was when the response's head was written. If it is no longer so, sending fails with
    /// ESTALE before the last byte, so that no mixed or short body can look complete.
    pub stamp: FileStamp,
}

/// A part of an [`Outgoing`], in sending order.
#[derive(Debug)]
pub enum Part {
    /// The next so many bytes of the container's own bytes.
    Own(usize),
    /// Shared bytes.
    Shared(Slice),
    /// Part of a file.
    File(FilePart),
}

/// Parts for which a container keeps room: a page's pipelined requests.
const PARTS_KEPT: usize = 16;

/// What a backend may need to list one part for the kernel: an iovec.
const LISTED_BYTES: usize = 16;

/// The container. See the module's text for who owns it when.
#[derive(Debug, Default)]
pub struct Outgoing {
    bytes: Vec<u8>,
    parts: Vec<Part>,
    bytes_in_parts: usize,
    length_bytes_shared: u64,
}

impl Outgoing {
    /// The container's own bytes, to append to. Never shorten it.
    #[inline]
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends shared bytes after all that was written before.
    pub fn push_shared(&mut self, slice: Slice) {
        self.length_bytes_shared += (slice.end - slice.start) as u64;
        self.close_own();
        self.parts.push(Part::Shared(slice));
    }

    /// Appends part of a file after all that was written before.
    pub fn push_file(&mut self, part: FilePart) {
        self.length_bytes_shared += part.length_bytes;
        self.close_own();
        self.parts.push(Part::File(part));
    }

    /// Length of everything, in bytes.
    #[inline]
    pub fn length_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.length_bytes_shared
    }

    /// What was written into it and is shared with nobody, in bytes: its own bytes, and the list of its
    /// parts.
    #[inline]
    pub fn written_bytes(&self) -> usize {
        self.bytes.len() + self.parts.len() * size_of::<Part>()
    }

    /// Memory it takes for itself while it is in flight, in bytes. What it shares belongs to others.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        let listed_bytes = self.parts.len() * LISTED_BYTES;
        size_of::<Self>() + self.kept_bytes() + listed_bytes
    }

    /// Memory it keeps for its next use, in bytes.
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        self.bytes.capacity() + self.parts.capacity() * size_of::<Part>()
    }

    /// Gives back memory that its contents do not need.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.parts.shrink_to_fit();
    }

    /// Whether there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.parts.is_empty()
    }

    /// Own bytes and parts, for a backend. Own bytes not yet covered by a part come last.
    #[inline]
    pub fn contents(&self) -> (&[u8], &[Part]) {
        (&self.bytes, &self.parts)
    }

    /// Empties it for the next use. Keeps the memory of the own bytes up to `keep_bytes`, and that of a few
    /// parts.
    pub fn clear(&mut self, keep_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(keep_bytes);
        self.parts.clear();
        self.parts.shrink_to(PARTS_KEPT);
        self.bytes_in_parts = 0;
        self.length_bytes_shared = 0;
    }

    fn close_own(&mut self) {
        let own = self.bytes.len() - self.bytes_in_parts;
        if own > 0 {
            self.parts.push(Part::Own(own));
            self.bytes_in_parts = self.bytes.len();
        }
    }
}
