//! What bodies of answers are made of.

use staunch_netio::{FilePart, Outgoing, Slice};

/// A piece of a body.
#[derive(Debug)]
pub enum Piece {
    /// Bytes made for this response (the framing of a multipart body).
    Bytes(Vec<u8>),
    /// Shared bytes.
    Shared(Slice),
    /// Part of a file.
    File(FilePart),
}

impl Piece {
    /// How many bytes are sent of it.
    pub(crate) fn length_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Shared(slice) => (slice.end - slice.start) as u64,
            Self::File(part) => part.length_bytes,
        }
    }

    /// The first `count` bytes of it.
    pub(crate) fn cut(self, count: u64) -> Self {
        match self {
            Self::Bytes(mut bytes) => {
                bytes.truncate(usize::try_from(count).unwrap_or(usize::MAX));
                Self::Bytes(bytes)
            }
            Self::Shared(slice) => {
                let end = slice.start.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
                Self::Shared(Slice { end: end.min(slice.end), ..slice })
            }
            Self::File(part) => {
                let length_bytes = count.min(part.length_bytes);
                Self::File(FilePart { length_bytes, ..part })
            }
        }
    }

    /// The first `count` bytes of it, and the others.
    pub(crate) fn split(self, count: u64) -> (Self, Self) {
        match self {
            Self::Bytes(mut bytes) => {
                let rest = bytes.split_off(bytes.len().min(count as usize));
                (Self::Bytes(bytes), Self::Bytes(rest))
            }
            Self::Shared(slice) => {
                let middle = slice.end.min(slice.start + count as usize);
                let first = Slice { end: middle, ..slice.clone() };
                (Self::Shared(first), Self::Shared(Slice { start: middle, ..slice }))
            }
            Self::File(part) => {
                let count = count.min(part.length_bytes);
                let first = FilePart { length_bytes: count, ..part.clone() };
                let (offset_bytes, length_bytes) = (part.offset_bytes + count, part.length_bytes - count);
                (Self::File(first), Self::File(FilePart { offset_bytes, length_bytes, ..part }))
            }
        }
    }

    /// Adds it to what is to be sent.
    pub(crate) fn put(self, outgoing: &mut Outgoing) {
        match self {
            Self::Bytes(bytes) => outgoing.bytes().extend_from_slice(&bytes),
            Self::Shared(slice) => outgoing.push_shared(slice),
            Self::File(part) => outgoing.push_file(part),
        }
    }
}
