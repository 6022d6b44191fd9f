//! A value as the differences to values before it (RFC 9842), each made once.
//!
//! This module owns the differences made for one update, and what making may take. It must never make any:
//! the hub does.

use crate::limits::{DIFFERENCES_PER_UPDATE_MAX, DIFFERENCES_WORK_BYTES_MAX};
use crate::update::Bytes;

/// A difference that was made, or was found not to be worth it.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The update from whose value it leads.
    from: u64,
    /// The body of an answer; none where the value is to be sent otherwise.
    pub(crate) body: Option<Bytes>,
}

/// The differences that lead to one update's value.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    made: Vec<Difference>,
    /// Bytes of all values that were gone through.
    work_bytes: usize,
}

impl Differences {
    /// The one that leads from an update's value, if it was made.
    pub(crate) fn find(&self, from: u64) -> Option<&Difference> {
        self.made.iter().find(|difference| difference.from == from)
    }

    /// Whether one more difference may be made that goes through so many bytes.
    pub(crate) fn has_room(&self, of_bytes: usize) -> bool {
        self.made.len() < DIFFERENCES_PER_UPDATE_MAX
            && self.work_bytes.saturating_add(of_bytes) <= DIFFERENCES_WORK_BYTES_MAX
    }

    pub(crate) fn add(&mut self, from: u64, of_bytes: usize, body: Option<Bytes>) {
        self.work_bytes = self.work_bytes.saturating_add(of_bytes);
        self.made.push(Difference { from, body });
    }

    /// Bytes that they hold.
    pub(crate) fn held_bytes(&self) -> usize {
        let bodies = self.made.iter().filter_map(|difference| difference.body.as_ref());
        let bodies = bodies.map(|body| body.len()).sum::<usize>();
        size_of::<Self>() + self.made.len() * size_of::<Difference>() + bodies
    }
}
