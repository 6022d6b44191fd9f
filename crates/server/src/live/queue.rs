//! What waits for the writer: publications, and what workers ask.
//!
//! It owns the bound. It must never be locked for longer than a push.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use staunch_engine::Address;
use staunch_live::{Publication, Request, TopicName, Value};

use super::mail::LineOutcome;
use crate::content::negotiate::Encoding;
use crate::limits::WRITER_BATCH_MAX;

/// Publications of one body, or of a piece of a feed.
#[derive(Debug)]
pub(crate) struct Publishing {
    /// In their order, each with its line; 0 where the body has no lines.
    pub(crate) lines: Vec<(u64, Publication)>,
    /// What is wrong with the line behind them.
    pub(crate) fault: Option<LineOutcome>,
    /// The publisher's key and a digest of the request.
    pub(crate) key: Option<(String, u128)>,
    pub(crate) to: Publisher,
}

/// Who is told what became of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Publisher {
    /// A request that waits.
    Request(Address),
    /// A feed, or a WebSocket.
    Feed(Address),
    /// Nobody: another node, which does not wait.
    Node,
}

/// A polled value that is wanted in a coding.
#[derive(Debug)]
pub(crate) struct CodingWish {
    pub(crate) topic: TopicName,
    pub(crate) number: u64,
    pub(crate) encoding: Encoding,
    pub(crate) value: Value,
}

/// What the writer takes at a time.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) publishings: Vec<Publishing>,
    pub(crate) requests: Vec<(u16, Vec<Request>)>,
    pub(crate) codings: Vec<CodingWish>,
    /// Whoever follows wants everything anew.
    pub(crate) is_introduction_wanted: bool,
    pub(crate) is_over: bool,
}

impl Publishing {
    /// As how many updates it counts in the queue: one at least, for somebody waits for its answer.
    fn updates(&self) -> usize {
        self.lines.len().max(1)
    }

    fn bytes(&self) -> usize {
        let key_bytes = self.key.as_ref().map_or(0, |(key, _)| key.len());
        key_bytes + self.lines.iter().map(|(_, publication)| publication.bytes()).sum::<usize>()
    }
}

/// The queue holds its maximum of updates or of bytes.
#[derive(Debug)]
pub(crate) struct QueueFull;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct WriterQueue {
    waiting: Mutex<Waiting>,
    rung: Condvar,
    updates_max: usize,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Publishings in their order, each with the bytes it was counted with.
    publishings: VecDeque<(Publishing, usize)>,
    /// Updates in `publishings`.
    updates: usize,
    /// Bytes of `publishings`.
    bytes: usize,
    requests: Vec<(u16, Vec<Request>)>,
    codings: Vec<CodingWish>,
    is_introduction_wanted: bool,
    /// The writer is to look at the clock.
    is_rung: bool,
    is_asleep: bool,
    is_over: bool,
}

impl WriterQueue {
    /// An empty queue that is full at so many updates, or at so many bytes.
    pub(crate) fn new(updates_max: usize, bytes_max: usize) -> Self {
        Self { waiting: Mutex::default(), rung: Condvar::new(), updates_max, bytes_max }
    }

    /// Hands in the publications of a request.
    pub(crate) fn publish(&self, publishing: Publishing) -> Result<(), QueueFull> {
        let bytes = publishing.bytes();
        let waiting = self.lock();
        if self.is_full(&waiting) {
            return Err(QueueFull);
        }
        self.put(waiting, publishing, bytes);
        Ok(())
    }

    /// Hands in lines of a feed, which sees to its own bound. Whether the queue is full now.
    pub(crate) fn feed(&self, publishing: Publishing) -> bool {
        let bytes = publishing.bytes();
        let waiting = self.lock();
        let is_full = self.is_full(&waiting);
        self.put(waiting, publishing, bytes);
        is_full
    }

    /// Hands in what a worker asks.
    pub(crate) fn ask(&self, worker: u16, requests: Vec<Request>) {
        let mut waiting = self.lock();
        waiting.requests.push((worker, requests));
        self.wake(waiting);
    }

    /// Wishes for a coding.
    pub(crate) fn wish(&self, wish: CodingWish) {
        let mut waiting = self.lock();
        waiting.codings.push(wish);
        self.wake(waiting);
    }

    /// Has the writer look at the clock.
    pub(crate) fn ring(&self) {
        let mut waiting = self.lock();
        waiting.is_rung = true;
        self.wake(waiting);
    }

    /// Whoever follows wants everything anew.
    pub(crate) fn want_introduction(&self) {
        let mut waiting = self.lock();
        waiting.is_introduction_wanted = true;
        self.wake(waiting);
    }

    /// The writer is to end.
    pub(crate) fn end(&self) {
        let mut waiting = self.lock();
        waiting.is_over = true;
        self.wake(waiting);
    }

    /// Updates that wait.
    pub(crate) fn updates(&self) -> usize {
        self.lock().updates
    }

    /// What there is to do, waiting for it `patience` at most. Publications are left where they are unless
    /// `takes` is set.
    pub(crate) fn wait(&self, patience: Option<Duration>, takes: bool) -> Work {
        let mut waiting = self.lock();
        while !waiting.has_work(takes) {
            waiting.is_asleep = true;
            let (woken, timed_out) = match patience {
                Some(patience) => {
                    let woken = self.rung.wait_timeout(waiting, patience);
                    let (woken, result) = woken.unwrap_or_else(PoisonError::into_inner);
                    (woken, result.timed_out())
                }
                None => (self.rung.wait(waiting).unwrap_or_else(PoisonError::into_inner), false),
            };
            waiting = woken;
            waiting.is_asleep = false;
            if timed_out {
                break;
            }
        }
        waiting.take(takes)
    }

    fn is_full(&self, waiting: &Waiting) -> bool {
        waiting.updates >= self.updates_max || waiting.bytes >= self.bytes_max
    }

    fn put(&self, mut waiting: MutexGuard<'_, Waiting>, publishing: Publishing, bytes: usize) {
        waiting.updates += publishing.updates();
        waiting.bytes += bytes;
        waiting.publishings.push_back((publishing, bytes));
        self.wake(waiting);
    }

    fn wake(&self, mut waiting: MutexGuard<'_, Waiting>) {
        let was_asleep = std::mem::take(&mut waiting.is_asleep);
        drop(waiting);
        if was_asleep {
            self.rung.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn has_work(&self, takes: bool) -> bool {
        let has_publishings = takes && !self.publishings.is_empty();
        let is_asked = !self.requests.is_empty() || !self.codings.is_empty();
        has_publishings || is_asked || self.is_introduction_wanted || self.is_rung || self.is_over
    }

    fn take(&mut self, takes: bool) -> Work {
        self.is_rung = false;
        let mut work = Work {
            publishings: Vec::new(),
            requests: std::mem::take(&mut self.requests),
            codings: std::mem::take(&mut self.codings),
            is_introduction_wanted: std::mem::take(&mut self.is_introduction_wanted),
            is_over: self.is_over,
        };
        let mut updates = 0;
        while takes && updates < WRITER_BATCH_MAX {
            let Some((publishing, bytes)) = self.publishings.pop_front() else { break };
            updates += publishing.updates();
            self.bytes -= bytes;
            work.publishings.push(publishing);
        }
        self.updates -= updates;
        work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publishing(lines: usize) -> Publishing {
        let name = TopicName::new("a").unwrap();
        let publication = Publication::new(name, Value::of_bytes(b"1"));
        let to = Publisher::Request(Address { worker: 0, slot: 0, generation: 0, stream: 0 });
        Publishing { lines: vec![(0, publication); lines], fault: None, key: None, to }
    }

    #[test]
    fn the_queue_is_bounded_and_a_batch_too() {
        let queue = WriterQueue::new(3, usize::MAX);
        assert!(queue.publish(publishing(WRITER_BATCH_MAX)).is_ok());
        assert!(queue.publish(publishing(1)).is_err());
        assert!(queue.feed(publishing(1)), "a feed is told that it is full");
        assert_eq!(queue.updates(), WRITER_BATCH_MAX + 1);
        assert_eq!(queue.wait(None, true).publishings.len(), 1);
        assert_eq!(queue.wait(None, true).publishings.len(), 1);
        assert_eq!(queue.updates(), 0);
    }

    #[test]
    fn bodies_without_a_line_and_keys_are_counted() {
        let queue = WriterQueue::new(2, 100);
        assert!(queue.publish(publishing(0)).is_ok() && queue.publish(publishing(0)).is_ok());
        assert!(queue.publish(publishing(0)).is_err());
        assert_eq!(queue.wait(None, true).publishings.len(), 2);
        let key = Some(("k".repeat(100), 0));
        assert!(queue.publish(Publishing { key, ..publishing(1) }).is_ok());
        assert!(queue.publish(publishing(1)).is_err());
        assert_eq!((queue.wait(None, true).publishings.len(), queue.updates()), (1, 0));
    }

    #[test]
    fn bytes_are_bounded_too() {
        // Each publication counts two bytes: one of its topic's name, one of its value.
        let queue = WriterQueue::new(usize::MAX, 4);
        assert!(queue.publish(publishing(2)).is_ok());
        assert!(queue.publish(publishing(1)).is_err());
        assert_eq!(queue.wait(None, true).publishings.len(), 1);
        assert!(queue.publish(publishing(1)).is_ok());
    }

    #[test]
    fn what_workers_ask_goes_on_while_publishing_waits() {
        let queue = WriterQueue::new(3, usize::MAX);
        assert!(queue.publish(publishing(1)).is_ok());
        queue.ask(1, vec![Request::Read(7)]);
        let work = queue.wait(None, false);
        assert_eq!((work.publishings.len(), work.requests), (0, vec![(1, vec![Request::Read(7)])]));
        assert_eq!(queue.updates(), 1);
        queue.ring();
        assert!(!queue.wait(None, false).is_over);
        queue.end();
        assert!(queue.wait(None, false).is_over);
    }
}
