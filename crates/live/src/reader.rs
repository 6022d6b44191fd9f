//! A reader: a place in the numbering.
//!
//! It owns the 24 bytes that stand in the place of a connection's session. It must never own a buffer.

use crate::form::Form;
use crate::version::Version;

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the last value of each topic, or what a log's ring has.
    Snapshot,
    /// With the last value of each topic, but of a log with the next update.
    Values,
    /// With the next update.
    Now,
    /// Behind the update with this number, also where this worker has not heard of it yet. What is not of
    /// this epoch, or further ahead than any worker can be, is a snapshot.
    After(Version),
}

/// What is special about a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks(u8);

impl Marks {
    /// The reader is answered once, and ends: a long poll.
    pub const ONCE: Self = Self(1);
    /// A send to it is under way: waves pass it by.
    pub const SENDING: Self = Self(2);
    /// The reader is a WebSocket.
    pub const SOCKET: Self = Self(4);
    /// The connection of the reader is being closed: nothing is sent to it any more.
    pub const CLOSING: Self = Self(8);
    /// What it makes the view hold is told to whoever keeps account of its connection.
    pub const COUNTED: Self = Self(16);

    /// Whether all marks of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets the marks of `other`.
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Takes the marks of `other` away.
    pub fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

/// A reader of live data: its place in the numbering, its group, and what is known of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// Everything of its topics up to this number was handed over.
    pub number: u64,
    /// Its group, in the worker's view.
    pub(crate) group: u32,
    /// Its place in the group's list.
    pub(crate) place: u32,
    /// Which use of its connection's slot it is of: told by who owns the connections, and not looked at here.
    pub generation: u32,
    /// When something was last written to it, in seconds of the worker's clock, the lower 16 bits.
    pub written_at_s: u16,
    /// The form in which it gets updates.
    pub form: Form,
    /// What is special about it.
    pub marks: Marks,
}

// A place without a reader takes no more room in a table of readers.
const _: () = assert!(size_of::<Option<Reader>>() == 24);
