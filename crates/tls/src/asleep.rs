//! A connection at rest: two secrets and two counters.
//!
//! It owns the least that is needed to go on later. It must never hold a pointer or a key schedule, so that a
//! block of these can lie in memory that is never dumped.
use crate::limits::ASLEEP_BYTES_MAX;
use crate::secret::Secret;
use crate::suite::Suite;

/// A sleeping connection of at most 128 bytes. Its secrets are wiped when it goes.
pub struct Asleep {
    pub(crate) reading: Secret,
    pub(crate) writing: Secret,
    pub(crate) records_read: u64,
    pub(crate) records_written: u64,
    pub(crate) suite: Suite,
    pub(crate) oddities_in_a_row: u8,
    pub(crate) has_asked_for_update: bool,
    pub(crate) has_refused_renegotiation: bool,
}

const _: () = assert!(size_of::<Asleep>() <= ASLEEP_BYTES_MAX);

impl Asleep {
    /// Version and cipher, for whoever looks at a sleeping connection.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.suite
    }
}
