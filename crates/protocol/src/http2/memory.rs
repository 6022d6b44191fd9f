//! What the sessions of one worker share.
//!
//! It owns the fields that their tables hold, the blocks and heads that came before, and the room in which a
//! head is put together. It must never hold anything of a request whose answer waits.

use super::blocks::BlockMemory;
use super::head::HeadWriter;
use super::hpack::FieldReader;
use crate::http1::RequestMemory;
use crate::limits::INTERNED_BYTES_CROWDED;

/// Memory that the HTTP/2 sessions of one worker share.
#[derive(Debug)]
pub struct WorkerMemory {
    pub(super) reader: FieldReader,
    pub(super) head: HeadWriter,
    pub(super) blocks: BlockMemory,
    pub(super) heads: RequestMemory,
    pub(super) refusal: Vec<u8>,
}

impl WorkerMemory {
    /// Holds nothing yet. `secret` keeps peers from choosing fields that are slow to find: random bits.
    pub fn new(secret: [u64; 2]) -> Self {
        Self {
            reader: FieldReader::new(secret),
            head: HeadWriter::default(),
            blocks: BlockMemory::default(),
            heads: RequestMemory::new(),
            refusal: Vec::new(),
        }
    }

    /// Whether connections have to give way for the fields of others: see [`Session::share_bytes`].
    ///
    /// [`Session::share_bytes`]: super::Session::share_bytes
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.fields_bytes() > INTERNED_BYTES_CROWDED
    }

    /// Memory of the fields that tables of connections hold, in bytes. Each session counts its own as if
    /// nobody shared them.
    pub fn fields_bytes(&self) -> usize {
        self.reader.interned().held_bytes()
    }
}
