//! Empty containers for the next answers, so that none is allocated for a request.
//!
//! It must never hold more than [`SPARE_OUTGOINGS_MAX`].

use staunch_netio::Outgoing;

use crate::limits::{COPIED_BYTES_MAX, SPARE_OUTGOINGS_MAX};

/// The containers of one worker.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "the boxes go to the network and come back; their contents must not move")]
pub(crate) struct Spare(Vec<Box<Outgoing>>);

impl Spare {
    /// An empty container.
    #[inline]
    pub(crate) fn take(&mut self) -> Box<Outgoing> {
        self.0.pop().unwrap_or_default()
    }

    /// Takes a container back, emptying it if need be.
    #[inline]
    pub(crate) fn put(&mut self, mut outgoing: Box<Outgoing>) {
        if self.0.len() < SPARE_OUTGOINGS_MAX {
            if !outgoing.is_empty() {
                outgoing.clear(COPIED_BYTES_MAX);
            }
            self.0.push(outgoing);
        }
    }
}
