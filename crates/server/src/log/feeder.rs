//! A worker's end of the log: a ring of its own with one writer and one reader.
//!
//! It must never wait: what finds no room is counted and gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rtrb::{Consumer, Producer, RingBuffer};

use super::record::Record;
use super::signal::Signal;

/// A ring holds some 5000 requests: 30 ms of the largest rate a worker reaches, many times what a disk needs
/// to take a chunk, and little beside what a worker has anyway.
pub(super) const RING_BYTES: usize = 1024 * 1024;

/// What a worker writes to.
pub(super) struct Feeder {
    producer: Producer<u8>,
    scratch: Vec<u8>,
    signal: Arc<Signal>,
    dropped: Arc<AtomicU64>,
}

/// What the log's thread reads from.
pub(super) struct Outlet {
    consumer: Consumer<u8>,
    pub(super) worker: u16,
    dropped: Arc<AtomicU64>,
}

/// A ring for one worker.
pub(super) fn ring(worker: u16, signal: Arc<Signal>) -> (Feeder, Outlet) {
    let (producer, consumer) = RingBuffer::new(RING_BYTES);
    let dropped = Arc::new(AtomicU64::new(0));
    let feeder = Feeder { producer, scratch: Vec::new(), signal, dropped: Arc::clone(&dropped) };
    (feeder, Outlet { consumer, worker, dropped })
}

impl Feeder {
    /// Where records that found no room are counted.
    pub(super) fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped)
    }

    /// Hands a record over, or drops it.
    pub(super) fn feed(&mut self, record: &Record<'_>) {
        record.encode(&mut self.scratch);
        if self.producer.push_entire_slice(&self.scratch).is_err() {
            self.dropped.store(self.dropped.load(Relaxed) + 1, Relaxed);
        }
        // What the producer remembers may be old; it asks again only if that speaks of too much.
        let half = RING_BYTES / 2;
        self.signal.ring(self.producer.cached_slots() < half && self.producer.slots() < half);
    }
}

impl Outlet {
    /// Appends all there is, whole records.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        if let Ok(chunk) = self.consumer.read_chunk(self.consumer.slots()) {
            let (first, second) = chunk.as_slices();
            out.extend_from_slice(first);
            out.extend_from_slice(second);
            chunk.commit_all();
        }
    }

    /// Records that found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// The worker is gone, and nothing is left.
    pub(super) fn is_over(&self) -> bool {
        self.consumer.is_abandoned() && self.consumer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted_and_what_stands_is_whole() {
        let (mut feeder, mut outlet) = ring(3, Arc::default());
        let line = [b'x'; 1000];
        let mut fed = 0;
        while outlet.dropped() < 10 {
            feeder.feed(&Record { request_line: &line, status: 200, ..Record::default() });
            fed += 1;
        }
        let mut bytes = Vec::new();
        outlet.take(&mut bytes);
        let mut rest = &bytes[..];
        let mut read = 0;
        while let Some((record, behind)) = Record::decode(rest) {
            assert_eq!(record.request_line, line);
            (rest, read) = (behind, read + 1);
        }
        assert_eq!(read, fed - 10);
        assert!(rest.is_empty() && !outlet.is_over());
        drop(feeder);
        assert!(outlet.is_over());
    }
}
