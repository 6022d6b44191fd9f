//! What waits for the writer: publications, what workers tell, and what readers want made.
//!
//! It owns the bounds, and whose turn it is: clients take turns. What workers tell is summed up, so that it
//! never is more than what there are readers of. What readers want made (forms of updates, codings of polled
//! values) is taken piece by piece, behind publications; beyond its bound it is left out: a coding is not
//! needed, and a worker is told to ask for forms anew. The queue must never be locked for longer than a push,
//! nor may anything that readers want keep a publication out.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use staunch_engine::Address;
use staunch_live::{Publication, Request, TopicName};

use super::mail::{LineOutcome, ReplyForm};
use super::told::{ToldOfReaders, WantedForms};
use super::turns::{LineClient, Turns};
use super::value_coding::ValueCoding;
use crate::limits::{
    CODINGS_PER_CLIENT_MAX, CODINGS_WAITING_MAX, FORMS_PER_CLIENT_MAX, FORMS_WAITING_MAX,
    WRITER_BATCH_BYTES_MAX, WRITER_BATCH_MAX,
};

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
    /// Whose turn it is.
    pub(crate) client: LineClient,
}

/// The publisher that is told what became of a publication.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Publisher {
    /// A request that waits, and is answered so.
    Request(Address, ReplyForm),
    /// A feed, or a WebSocket.
    Feed(Address),
    /// Another node, which does not wait and is not told.
    Node,
}

/// A polled value that is wanted in a coding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodingWish {
    pub(crate) topic: TopicName,
    pub(crate) number: u64,
    pub(crate) coding: ValueCoding,
}

/// What the writer takes at a time.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) publishings: Vec<Publishing>,
    pub(crate) told: Vec<(u16, ToldOfReaders)>,
    /// The followers want everything anew.
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

/// The work that waits for the writer of a site's live data.
#[derive(Debug)]
pub(crate) struct WriterQueue {
    waiting: Mutex<Waiting>,
    rung: Condvar,
    updates_max: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Waiting {
    /// Publishings, each with the bytes it was counted with; they weigh as many updates as they have.
    publishings: Turns<(Publishing, usize)>,
    /// Bytes of `publishings`.
    bytes: usize,
    told: HashMap<u16, ToldOfReaders>,
    forms: Turns<WantedForms>,
    /// Those in `forms`: a crowd that wants the same has it made once.
    wanted: HashSet<WantedForms>,
    /// Workers of which forms were left out.
    left_out: Vec<u16>,
    codings: Turns<(TopicName, ValueCoding)>,
    /// Of which update each of `codings` is wanted: the latest that somebody saw.
    numbers: HashMap<(TopicName, ValueCoding), u64>,
    is_introduction_wanted: bool,
    /// The writer is to look at the clock.
    is_rung: bool,
    is_asleep: bool,
    is_over: bool,
}

impl WriterQueue {
    /// An empty queue that is full at so many updates, or at so many bytes.
    pub(crate) fn new(updates_max: usize, bytes_max: usize) -> Self {
        let waiting = Waiting {
            publishings: Turns::default(),
            bytes: 0,
            told: HashMap::new(),
            forms: Turns::default(),
            wanted: HashSet::new(),
            left_out: Vec::new(),
            codings: Turns::default(),
            numbers: HashMap::new(),
            is_introduction_wanted: false,
            is_rung: false,
            is_asleep: false,
            is_over: false,
        };
        Self { waiting: Mutex::new(waiting), rung: Condvar::new(), updates_max, bytes_max }
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

    /// Hands in what a worker tells, and which forms it wants for a client.
    pub(crate) fn ask(&self, worker: u16, client: LineClient, requests: Vec<Request>) {
        let mut waiting = self.lock();
        for request in requests {
            if let Some(forms) = waiting.told.entry(worker).or_default().take(request) {
                waiting.want(worker, client, forms);
            }
        }
        self.wake(waiting);
    }

    /// Wishes for a coding. Whether it will be made.
    pub(crate) fn wish(&self, client: LineClient, wish: CodingWish) -> bool {
        let mut waiting = self.lock();
        let is_taken = waiting.wish(client, wish);
        self.wake(waiting);
        is_taken
    }

    /// The next forms to make.
    pub(crate) fn next_forms(&self) -> Option<WantedForms> {
        let mut waiting = self.lock();
        let forms = waiting.forms.pop()?;
        waiting.wanted.remove(&forms);
        Some(forms)
    }

    /// The next coding to make.
    pub(crate) fn next_coding(&self) -> Option<CodingWish> {
        let mut waiting = self.lock();
        let key = waiting.codings.pop()?;
        let number = waiting.numbers.remove(&key)?;
        let (topic, coding) = key;
        Some(CodingWish { topic, number, coding })
    }

    /// Workers that are to ask anew for forms that were left out, once there is room for them.
    pub(crate) fn take_left_out(&self) -> Vec<u16> {
        let mut waiting = self.lock();
        match waiting.forms.weight() < FORMS_WAITING_MAX / 2 {
            true => std::mem::take(&mut waiting.left_out),
            false => Vec::new(),
        }
    }

    /// Has the writer look at the clock.
    pub(crate) fn ring(&self) {
        let mut waiting = self.lock();
        waiting.is_rung = true;
        self.wake(waiting);
    }

    /// Has the writer tell the followers everything anew.
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
        self.lock().publishings.weight()
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
        waiting.publishings.weight() >= self.updates_max || waiting.bytes >= self.bytes_max
    }

    fn put(&self, mut waiting: MutexGuard<'_, Waiting>, publishing: Publishing, bytes: usize) {
        let (client, updates) = (publishing.client, publishing.updates());
        waiting.bytes += bytes;
        waiting.publishings.push(client, (publishing, bytes), updates);
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
        let is_asked = self.told.values().any(|told| !told.is_empty());
        let is_wanted = !self.forms.is_empty() || !self.codings.is_empty() || !self.left_out.is_empty();
        has_publishings
            || is_asked
            || is_wanted
            || self.is_introduction_wanted
            || self.is_rung
            || self.is_over
    }

    fn want(&mut self, worker: u16, client: LineClient, forms: WantedForms) {
        if self.wanted.contains(&forms) {
            return;
        }
        if self.forms.has_room(client, FORMS_WAITING_MAX, FORMS_PER_CLIENT_MAX) {
            self.wanted.insert(forms.clone());
            self.forms.push(client, forms, 1);
        } else if !self.left_out.contains(&worker) {
            self.left_out.push(worker);
        }
    }

    fn wish(&mut self, client: LineClient, wish: CodingWish) -> bool {
        let CodingWish { topic, number, coding } = wish;
        let key = (topic, coding);
        if let Some(wanted) = self.numbers.get_mut(&key) {
            *wanted = number.max(*wanted);
            return true;
        }
        let has_room = self.codings.has_room(client, CODINGS_WAITING_MAX, CODINGS_PER_CLIENT_MAX);
        if has_room {
            self.numbers.insert(key.clone(), number);
            self.codings.push(client, key, 1);
        }
        has_room
    }

    fn take(&mut self, takes: bool) -> Work {
        self.is_rung = false;
        let mut work = Work {
            publishings: Vec::new(),
            told: self.told.drain().collect(),
            is_introduction_wanted: std::mem::take(&mut self.is_introduction_wanted),
            is_over: self.is_over,
        };
        let (mut updates, mut bytes) = (0, 0);
        while takes && updates < WRITER_BATCH_MAX && bytes < WRITER_BATCH_BYTES_MAX {
            let Some((publishing, own_bytes)) = self.publishings.pop() else { break };
            updates += publishing.updates();
            bytes += own_bytes;
            self.bytes -= own_bytes;
            work.publishings.push(publishing);
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use staunch_live::{Coding, Form, Shape, Transport, UpdateKey, Value};

    use super::*;
    use crate::content::negotiate::Encoding;

    fn publishing(lines: usize) -> Publishing {
        let name = TopicName::new("a").unwrap();
        let publication = Publication::new(name, Value::of_bytes(b"1"));
        let (to, client) = (Publisher::Node, LineClient::Worker(0));
        Publishing { lines: vec![(0, publication); lines], fault: None, key: None, to, client }
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
        queue.ask(1, LineClient::Worker(1), vec![Request::Read(7), Request::Read(8)]);
        let mut work = queue.wait(None, false);
        let (worker, told) = work.told.remove(0);
        let told: Vec<Request> = told.into_requests().collect();
        assert_eq!((work.publishings.len(), worker, told), (0, 1, vec![Request::Read(8)]));
        assert_eq!(queue.updates(), 1);
        queue.ring();
        assert!(!queue.wait(None, false).is_over);
        queue.end();
        assert!(queue.wait(None, false).is_over);
    }

    fn coding(topic: usize, number: u64) -> CodingWish {
        let topic = TopicName::new(&format!("t{topic}")).unwrap();
        CodingWish { topic, number, coding: ValueCoding::Whole(Encoding::Gzip) }
    }

    #[test]
    fn a_coding_is_wished_for_once_and_of_the_latest() {
        let queue = WriterQueue::new(3, usize::MAX);
        for number in [1, 3, 2] {
            assert!(queue.wish(LineClient::Worker(0), coding(7, number)));
        }
        assert_eq!(queue.next_coding(), Some(coding(7, 3)));
        assert_eq!(queue.next_coding(), None);
    }

    /// Whatever readers want, in whichever number: it is bounded, and publications come in and out.
    #[test]
    fn what_readers_want_is_bounded_and_keeps_no_publication_out() {
        let queue = WriterQueue::new(3, usize::MAX);
        for number in 0..4 * FORMS_WAITING_MAX {
            let client = LineClient::Connection(0, (number % 300) as u32);
            queue.wish(client, coding(number, 1));
            let shape = [Shape::Bare, Shape::Enveloped, Shape::Patch][number % 3];
            let coding = [Coding::Identity, Coding::Gzip, Coding::Zstd][number / 3 % 3];
            let form = Form::new(shape, Transport::Plain, coding);
            let wanted = vec![(UpdateKey::default(), form); number / 9 + 1];
            queue.ask(0, client, vec![Request::Make(wanted)]);
        }
        assert!(queue.publish(publishing(1)).is_ok());
        assert_eq!(queue.wait(None, true).publishings.len(), 1);
        assert!(queue.take_left_out().is_empty(), "there is no room yet");
        let forms = std::iter::from_fn(|| queue.next_forms()).count();
        assert!((FORMS_WAITING_MAX..=2 * FORMS_WAITING_MAX).contains(&forms), "{forms}");
        let codings = std::iter::from_fn(|| queue.next_coding()).count();
        assert!((CODINGS_WAITING_MAX..=2 * CODINGS_WAITING_MAX).contains(&codings), "{codings}");
        assert_eq!(queue.take_left_out(), [0]);
    }

    #[test]
    fn forms_that_many_want_are_made_once() {
        let queue = WriterQueue::new(3, usize::MAX);
        let form = Form::new(Shape::Bare, Transport::Plain, Coding::Identity);
        for slot in 0..100 {
            let wanted = vec![(UpdateKey::default(), form)];
            queue.ask(0, LineClient::Connection(0, slot), vec![Request::Make(wanted)]);
        }
        assert!(queue.next_forms().is_some() && queue.next_forms().is_none());
    }

    #[test]
    fn a_batch_is_bounded_in_bytes() {
        let queue = WriterQueue::new(usize::MAX, usize::MAX);
        let name = TopicName::new("a").unwrap();
        let long = || {
            let value = Value::of_bytes(&vec![b'x'; WRITER_BATCH_BYTES_MAX]);
            let lines = vec![(0, Publication::new(name.clone(), value))];
            Publishing { lines, ..publishing(0) }
        };
        assert!(queue.publish(long()).is_ok() && queue.publish(long()).is_ok());
        assert_eq!(queue.wait(None, true).publishings.len(), 1);
        assert_eq!(queue.wait(None, true).publishings.len(), 1);
    }
}
