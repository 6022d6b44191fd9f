//! What is kept of a connection of HTTP/2 between two rounds.
//!
//! It must never hold anything of a request that is answered and sent.

use staunch_protocol::http2::{Session, WorkerMemory};
use staunch_protocol::{Deadline, Timeouts};

use super::streams::{Stream, Streams};

/// What a connection of HTTP/2 is beside a slot.
#[derive(Debug)]
pub(crate) struct Http2 {
    pub(crate) session: Session,
    pub(crate) streams: Streams,
    /// The number of the container that is filled now.
    pub(crate) container: u64,
}

impl Http2 {
    /// A new connection. Appends what is said first.
    pub(crate) fn new(now_ms: u64, out: &mut Vec<u8>) -> Self {
        Self { session: Session::new(now_ms, out), streams: Streams::default(), container: 1 }
    }

    /// The container that was filled is handed over.
    pub(crate) fn begin_send(&mut self) {
        self.container += 1;
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.session.held_bytes() + self.streams.held_bytes()
    }

    /// Bytes kept of its input.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.session.kept_bytes()
    }

    /// Since when nothing is under way, if nothing is.
    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        self.session.idle_since_ms()
    }

    /// What the session waits for next, and until when.
    pub(crate) fn due(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        self.session.poll_timeout(timeouts)
    }

    /// The peer has acknowledged so many bytes: streams that wait for their windows wait for a peer that
    /// makes progress.
    pub(crate) fn note_acknowledged(&mut self, bytes: u32, rate_min: u64, now_ms: u64) {
        self.session.note_acknowledged(bytes, rate_min, now_ms);
    }

    pub(crate) fn stream(&self, number: u32) -> Option<&Stream> {
        self.streams.find(number)
    }

    /// Its share in the fields that tables of the worker hold, in bytes.
    pub(crate) fn share_bytes(&self, memory: &WorkerMemory) -> usize {
        self.session.share_bytes(memory)
    }

    /// Gives back what it holds of the worker's memory, at its end.
    pub(crate) fn release(&mut self, memory: &mut WorkerMemory) {
        self.session.release(memory);
    }
}
