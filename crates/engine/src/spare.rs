//! Empty containers for the next answers, so that none is allocated for a request.
//!
//! It must never hold more than [`SPARE_OUTGOINGS_MAX`], nor more memory than it was told.

use staunch_netio::Outgoing;

use crate::limits::{COPIED_BYTES_MAX, SPARE_BYTES_MAX, SPARE_OUTGOINGS_MAX, STREAMED_BYTES};

/// The containers of one worker.
#[derive(Debug)]
#[expect(clippy::vec_box, reason = "the boxes go to the network and come back; their contents must not move")]
pub(crate) struct Spare {
    containers: Vec<Box<Outgoing>>,
    /// Memory of them all.
    bytes: usize,
    bytes_max: usize,
}

impl Default for Spare {
    fn default() -> Self {
        Self { containers: Vec::new(), bytes: 0, bytes_max: SPARE_BYTES_MAX }
    }
}

impl Spare {
    /// From now on containers keep so much memory, all together.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// An empty container.
    #[inline]
    pub(crate) fn take(&mut self) -> Box<Outgoing> {
        let container = self.containers.pop().unwrap_or_default();
        self.bytes -= self.bytes.min(container.kept_bytes());
        container
    }

    /// Takes a container back, emptying it if need be.
    #[inline]
    pub(crate) fn put(&mut self, mut outgoing: Box<Outgoing>) {
        if !outgoing.is_empty() {
            let has_room = self.bytes + STREAMED_BYTES <= self.bytes_max;
            outgoing.clear(if has_room { STREAMED_BYTES } else { COPIED_BYTES_MAX });
        }
        let bytes = self.bytes + outgoing.kept_bytes();
        if self.containers.len() < SPARE_OUTGOINGS_MAX && bytes <= self.bytes_max {
            self.bytes = bytes;
            self.containers.push(outgoing);
        }
    }

    /// Gives everything back.
    pub(crate) fn shrink(&mut self) {
        self.containers = Vec::new();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_no_more_than_it_may() {
        let mut spare = Spare::default();
        spare.set_bytes_max(100_000);
        for _ in 0..50 {
            let mut outgoing = Box::new(Outgoing::default());
            outgoing.bytes().extend_from_slice(&[0; 10_000]);
            spare.put(outgoing);
        }
        assert_eq!((spare.containers.len(), spare.bytes), (10, 100_000));
        for _ in 0..20 {
            spare.take();
        }
        assert_eq!(spare.bytes, 0);
    }
}
