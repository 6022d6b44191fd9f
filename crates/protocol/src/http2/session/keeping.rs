//! What a session keeps: input that was not used, and its memory as a whole.

use std::borrow::Cow;

use super::{Busy, Phase, Session};
use crate::http2::memory::WorkerMemory;
use crate::http2::stream::Stream;

impl Busy {
    fn is_idle(&self) -> bool {
        // The input may be in the hands of the caller.
        let waits_for_rest = self.partial_ms.is_some() || self.block_head.is_some();
        self.input.is_empty() && !waits_for_rest && self.streams.is_empty() && self.ended.is_empty()
    }
}

impl Session {
    /// The kept bytes followed by `bytes`; nothing is kept any more.
    #[inline]
    pub fn take_kept<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let Some(busy) = self.busy.as_mut().filter(|busy| !busy.input.is_empty()) else {
            return Cow::Borrowed(bytes);
        };
        let mut input = std::mem::take(&mut busy.input);
        input.extend_from_slice(bytes);
        Cow::Owned(input)
    }

    /// Keeps what was not used: less than a frame, or what stands behind an event that ended the round.
    /// Nothing after `Close`.
    #[inline]
    pub fn keep(&mut self, input: &[u8], now_ms: u64) {
        self.remember_current(now_ms);
        if !input.is_empty() && self.phase != Phase::Closed {
            self.busy.get_or_insert_default().input = input.to_vec();
            return;
        }
        self.drop_if_idle();
    }

    /// Nothing is held for what does not wait.
    #[inline]
    pub(super) fn drop_if_idle(&mut self) {
        if self.busy.as_ref().is_some_and(|busy| busy.is_idle()) {
            self.busy = None;
        }
    }

    /// Bytes kept of the input.
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        self.busy.as_ref().map_or(0, |busy| busy.input.len())
    }

    /// Memory that the connection makes us hold beside the session itself, in bytes. Fields of its table
    /// count as if no other connection had them.
    pub fn held_bytes(&self) -> usize {
        let busy_bytes = self.busy.as_ref().map_or(0, |busy| {
            let streams_bytes = busy.streams.capacity() * size_of::<Stream>();
            let ended_bytes = busy.ended.capacity() * size_of::<u32>();
            size_of::<Busy>() + busy.input.capacity() + busy.block.capacity() + streams_bytes + ended_bytes
        });
        self.table.held_bytes() + busy_bytes
    }

    /// The share of the connection in the fields that tables of the worker hold, in bytes. It reads the whole
    /// table.
    pub fn share_bytes(&self, memory: &WorkerMemory) -> usize {
        self.table.share_bytes(memory.reader.interned())
    }

    /// What the peer has wasted by oddities and not got back, in microseconds of a processor.
    pub fn wasted_us(&self) -> u16 {
        self.ledger.spent_us()
    }

    /// Gives back what the connection holds of the worker's memory. To be called before the session is
    /// dropped; no block is read afterwards.
    pub fn release(&mut self, memory: &mut WorkerMemory) {
        memory.reader.release(&mut self.table);
    }
}
