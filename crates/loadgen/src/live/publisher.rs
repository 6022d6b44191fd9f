//! The publisher: sends updates when a schedule says so, each topic's in their order, and counts the answers.
//!
//! It must never number an update anew that may have been published: a number stands for one update, or
//! readers could not tell what they have lost. Order of calls: `new`, then `turn` until it is over.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use staunch_netio::{Completion, Input, Io, Slot, Target};
use staunch_protocol::answer::{AnswerReader, Step};

use super::news::CrewNews;
use super::outcome::Publications;
use super::plan::{TOPIC_VARIABLE, VALUE_VARIABLE};
use super::shared::LiveShared;
use super::stamp::Stamp;
use crate::histogram::Histogram;
use crate::schedule::Schedule;
use crate::worker::RunControl;

/// Updates that wait for a connection. A server that is slower for longer is not sent what is due: it is
/// counted.
const WAITING_MAX: usize = 65_536;

/// How long answers are awaited when all is sent.
const GRACE_NS: u64 = 10_000_000_000;

/// Pause after a connection could not be made.
const PAUSE_NS: u64 = 10_000_000;

/// How often it is looked whether the run was stopped.
const LOOK_NS: u64 = 50_000_000;

/// How much of a refusal's body is kept, in bytes.
const REFUSAL_BYTES_MAX: usize = 200;

/// What the publisher is to do.
#[derive(Debug)]
pub(crate) struct PublisherPlan {
    /// By topic: everything but the number of bytes and the body's value.
    pub(crate) requests: Vec<PublishRequest>,
    /// What to connect to.
    pub(crate) target: Target,
    pub(crate) connections: u16,
    pub(crate) schedule: Schedule,
    /// How many at most.
    pub(crate) updates: u64,
    /// Until when at most, in nanoseconds since the begin.
    pub(crate) until_ns: u64,
    pub(crate) value_bytes: usize,
    pub(crate) run: u32,
}

/// A topic's request in parts.
#[derive(Debug)]
pub(crate) struct PublishRequest {
    /// The head as far as the length of the body.
    head: Vec<u8>,
    /// The body around the value.
    body: (Vec<u8>, Vec<u8>),
}

impl PublishRequest {
    /// A request for a topic; `head` is everything before Content-Length.
    pub(crate) fn new(head: &str, body: &str, topic: &str) -> Self {
        let body = body.replace(TOPIC_VARIABLE, topic);
        let (before, after) = body.split_once(VALUE_VARIABLE).unwrap_or((&body, ""));
        Self { head: head.as_bytes().to_vec(), body: (before.into(), after.into()) }
    }

    fn write(&self, stamp: Stamp, value_bytes: usize, output: &mut Vec<u8>) {
        let mut value = Vec::with_capacity(value_bytes);
        stamp.append(value_bytes, &mut value);
        let (before, after) = &self.body;
        let length = before.len() + value.len() + after.len();
        output.extend_from_slice(&self.head);
        output.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
        [before, &value, after].into_iter().for_each(|part| output.extend_from_slice(part));
    }
}

/// An update that is due.
#[derive(Debug, Clone, Copy)]
struct Due {
    topic: u32,
    meant_ns: u64,
}

/// An update whose answer is awaited.
#[derive(Debug, Clone, Copy)]
struct Flight {
    topic: u32,
    number: u64,
    sent_ns: u64,
}

/// A connection of the publisher.
#[derive(Debug, Default)]
struct Line {
    slot: Option<Slot>,
    is_made: bool,
    is_closing: bool,
    /// No connection is begun before.
    dial_at_ns: u64,
    waiting: VecDeque<Due>,
    flight: Option<Flight>,
    answer: AnswerReader,
    refusal: Vec<u8>,
}

/// The publisher of a run: connections that publish by its schedule.
pub(crate) struct Publisher<I> {
    io: I,
    plan: PublisherPlan,
    shared: Arc<LiveShared>,
    lines: Vec<Line>,
    /// By topic: the number of its next update.
    numbers: Vec<u64>,
    /// Updates that were due so far.
    taken: u64,
    began_ns: u64,
    now_ns: u64,
    /// When nothing more is due, answers are awaited until then.
    grace_until_ns: Option<u64>,
    pub(crate) told: Publications,
    publish: Histogram,
    drift: Histogram,
}

impl<I: Io> Publisher<I> {
    pub(crate) fn new(io: I, plan: PublisherPlan, shared: Arc<LiveShared>) -> Self {
        let now_ns = io.now_ns();
        Self {
            io,
            shared,
            lines: (0..plan.connections).map(|_| Line::default()).collect(),
            numbers: vec![1; plan.requests.len()],
            taken: 0,
            began_ns: now_ns,
            now_ns,
            grace_until_ns: None,
            told: Publications::default(),
            publish: Histogram::new(),
            drift: Histogram::new(),
            plan,
        }
    }

    /// Works until everything is published, or the run is stopped, and tells what became of it.
    ///
    /// # Errors
    /// What the way to the network cannot go on after.
    pub(crate) fn run(mut self, control: &RunControl, news: &Sender<CrewNews>) -> io::Result<()> {
        self.began_ns = self.io.now_ns();
        while self.turn(control)? {}
        let waiting: usize = self.lines.iter().map(|line| line.waiting.len()).sum();
        self.told.unsent += waiting as u64;
        for flight in self.lines.iter().filter_map(|line| line.flight) {
            self.told.unanswered += 1;
            self.shared.note_published(flight.topic, flight.number);
        }
        // A listener that is gone wants no more.
        let _ = news.send(CrewNews::Published(Box::new((self.told, self.publish, self.drift))));
        Ok(())
    }

    fn turn(&mut self, control: &RunControl) -> io::Result<bool> {
        self.now_ns = self.io.now_ns();
        let due_ns = if self.is_over(control) { u64::MAX } else { self.take_due() };
        let is_idle = self.lines.iter().all(|line| line.flight.is_none() && line.waiting.is_empty());
        if let Some(until_ns) = self.grace_until_ns
            && (is_idle || self.now_ns >= until_ns)
        {
            return Ok(false);
        }
        for number in 0..self.lines.len() {
            self.work(number);
        }
        let wait_ns = due_ns.min(self.now_ns + LOOK_NS).min(self.dials_ns());
        self.io.submit_and_wait(Some(Duration::from_nanos(wait_ns.saturating_sub(self.now_ns))))?;
        while let Some(completion) = self.io.next_completion() {
            self.now_ns = self.io.now_ns();
            self.handle(completion);
        }
        Ok(true)
    }

    /// Whether nothing more will be due.
    fn is_over(&mut self, control: &RunControl) -> bool {
        let is_over = control.is_stopped()
            || self.taken >= self.plan.updates
            || self.now_ns.saturating_sub(self.began_ns) >= self.plan.until_ns
            || self.plan.schedule.peek_ns().is_none();
        if is_over && self.grace_until_ns.is_none() {
            self.grace_until_ns = Some(self.now_ns.saturating_add(GRACE_NS));
        }
        is_over
    }

    /// Takes what is due. Returns when the next update is.
    fn take_due(&mut self) -> u64 {
        while let Some(meant_ns) = self.plan.schedule.peek_ns() {
            let at_ns = self.began_ns.saturating_add(meant_ns);
            if at_ns > self.now_ns || self.taken >= self.plan.updates || meant_ns >= self.plan.until_ns {
                return at_ns.min(self.began_ns.saturating_add(self.plan.until_ns));
            }
            self.plan.schedule.next_ns();
            let topic = (self.taken % self.plan.requests.len() as u64) as u32;
            self.taken += 1;
            let count = self.lines.len();
            let line = &mut self.lines[topic as usize % count];
            if line.waiting.len() >= WAITING_MAX {
                self.told.unsent += 1;
            } else {
                line.waiting.push_back(Due { topic, meant_ns: at_ns });
            }
        }
        u64::MAX
    }

    /// Sends the next update of a connection, or makes the connection.
    fn work(&mut self, number: usize) {
        let line = &mut self.lines[number];
        if line.flight.is_some() || line.is_closing {
            return;
        }
        let Some(due) = line.waiting.front().copied() else { return };
        let Some(slot) = line.slot else {
            if line.dial_at_ns <= self.now_ns {
                self.dial(number);
            }
            return;
        };
        if !line.is_made {
            return;
        }
        line.waiting.pop_front();
        let update = self.numbers[due.topic as usize];
        let stamp = Stamp { run: self.plan.run, number: update, meant_ns: self.shared.unix_ns(due.meant_ns) };
        let mut outgoing = Box::<staunch_netio::Outgoing>::default();
        let request = &self.plan.requests[due.topic as usize];
        request.write(stamp, self.plan.value_bytes, outgoing.bytes());
        self.drift.record(self.now_ns.saturating_sub(due.meant_ns));
        line.flight = Some(Flight { topic: due.topic, number: update, sent_ns: self.now_ns });
        line.answer = AnswerReader::new();
        line.answer.begin(false);
        line.refusal.clear();
        self.io.send(slot, outgoing, false);
    }

    fn dial(&mut self, number: usize) {
        let line = &mut self.lines[number];
        match self.io.connect(&self.plan.target) {
            Ok(slot) => line.slot = Some(slot),
            Err(error) => {
                line.dial_at_ns = self.now_ns + PAUSE_NS;
                note(&mut self.told, || format!("a publisher could not connect: {error}"));
            }
        }
    }

    /// When the next connection is begun that something waits for.
    fn dials_ns(&self) -> u64 {
        let idle = self.lines.iter().filter(|line| line.slot.is_none() && !line.waiting.is_empty());
        idle.map(|line| line.dial_at_ns).min().unwrap_or(u64::MAX)
    }

    fn handle(&mut self, completion: Completion) {
        let (Completion::Connected { slot, .. }
        | Completion::Received { slot, .. }
        | Completion::Ended { slot, .. }
        | Completion::Closed { slot }) = completion
        else {
            return;
        };
        let Some(number) = self.lines.iter().position(|line| line.slot == Some(slot)) else { return };
        match completion {
            Completion::Connected { errno, .. } => self.connected(number, slot, errno),
            Completion::Received { input, .. } => self.received(number, slot, input),
            Completion::Ended { .. } => self.lost(number, slot),
            Completion::Closed { .. } => {
                let line = &mut self.lines[number];
                line.slot = None;
                line.is_made = false;
                line.is_closing = false;
            }
            _ => {}
        }
        self.work(number);
    }

    fn connected(&mut self, number: usize, slot: Slot, errno: i32) {
        if errno == 0 {
            self.lines[number].is_made = true;
            self.io.receive(slot);
            return;
        }
        note(&mut self.told, || {
            format!("a publisher could not connect: {}", io::Error::from_raw_os_error(errno))
        });
        self.lines[number].dial_at_ns = self.now_ns + PAUSE_NS;
        self.close(number, slot);
    }

    fn received(&mut self, number: usize, slot: Slot, input: Input) {
        let line = &mut self.lines[number];
        let refusal = &mut line.refusal;
        let step = line.answer.read(self.io.input(&input), &mut |piece: &[u8]| {
            let room = REFUSAL_BYTES_MAX.saturating_sub(refusal.len());
            refusal.extend_from_slice(&piece[..piece.len().min(room)]);
        });
        self.io.release(input);
        match step {
            Ok(Step::More) => {}
            Ok(Step::Complete { status, keep, .. }) => {
                self.answered(number, status);
                if !keep {
                    self.close(number, slot);
                }
            }
            Err(fault) => {
                note(&mut self.told, || format!("the answer to a publication is wrong: {fault}"));
                self.lost(number, slot);
            }
        }
    }

    fn answered(&mut self, number: usize, status: u16) {
        let line = &mut self.lines[number];
        let Some(flight) = line.flight.take() else { return };
        if (200..300).contains(&status) {
            self.publish.record(self.now_ns.saturating_sub(flight.sent_ns));
            self.told.published += 1;
            self.numbers[flight.topic as usize] = flight.number + 1;
            self.shared.note_published(flight.topic, flight.number);
            return;
        }
        self.told.refused += 1;
        *self.told.statuses.entry(status).or_default() += 1;
        let words = String::from_utf8_lossy(&line.refusal).trim().to_owned();
        note(&mut self.told, || {
            let words = if words.is_empty() { String::new() } else { format!(": {words}") };
            format!("a publication was answered {status}{words}")
        });
    }

    /// The connection is of no more use: what was sent may have been published.
    fn lost(&mut self, number: usize, slot: Slot) {
        if let Some(flight) = self.lines[number].flight.take() {
            self.told.unanswered += 1;
            note(&mut self.told, || "a publication was not answered before its connection ended".to_owned());
            self.numbers[flight.topic as usize] = flight.number + 1;
            self.shared.note_published(flight.topic, flight.number);
        }
        self.close(number, slot);
    }

    fn close(&mut self, number: usize, slot: Slot) {
        let line = &mut self.lines[number];
        if !line.is_closing {
            line.is_closing = true;
            self.io.close(slot);
        }
    }
}

/// Keeps the first thing that went wrong.
fn note(told: &mut Publications, sentence: impl FnOnce() -> String) {
    if told.first_fault.is_none() {
        told.first_fault = Some(sentence());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_topic_value_and_length() {
        let body = "{\"topic\":\"{{topic}}\",\"data\":\"{{value}}\"}";
        let request = PublishRequest::new("POST / HTTP/1.1\r\n", body, "a");
        let mut bytes = Vec::new();
        request.write(Stamp { run: 1, number: 2, meant_ns: 3 }, 20, &mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let expected = "POST / HTTP/1.1\r\nContent-Length: 43\r\n\r\n\
                        {\"topic\":\"a\",\"data\":\"sl1.00000001.2.3.xxx\"}";
        assert_eq!(text, expected);
    }
}
