//! The readers of one thread: they connect, read, are cut off and come back.
//!
//! It must never publish: the publisher has a thread of its own, so that a burst of deliveries delays no
//! publication. Order of calls: `new`, then `turn` until it says that all is over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use rand::RngExt as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use staunch_netio::{Completion, Input, Io, Outgoing, Slot, Target, clock};

use super::meter::Meter;
use super::news::{CrewNews, CrowdNews};
use super::outcome::{LIVE_STEP_MS, LivePhase};
use super::reader::{LiveReader, ReaderStage, SocketGreeting, Then};
use super::shared::LiveShared;
use crate::end::End;

/// How many connections of a thread are being made at a time: a server's queue holds as many.
const CONNECTING_MAX: u32 = 256;

/// Pause after a connection could not be made, or was answered wrongly.
const PAUSE_NS: u64 = 10_000_000;

/// After how long a reader comes back whose stream did not say when: less than browsers take, so that a run
/// need not last.
const RETURN_NS: u64 = 1_000_000_000;

/// Empty containers that are kept.
const SPARE_COUNT_MAX: usize = 512;

/// Memory of a spare container: a request.
const SPARE_BYTES: usize = 4096;

const STEP_NS: u64 = LIVE_STEP_MS * 1_000_000;

/// What a thread of readers is to do.
#[derive(Debug)]
pub(crate) struct CrowdPlan {
    /// Number of the thread.
    pub(crate) thread: usize,
    /// The topic of each of its readers.
    pub(crate) topics: Vec<u32>,
    /// How many of them, the first ones, stop reading.
    pub(crate) stalled: usize,
    /// Requests by topic, without their last line.
    pub(crate) requests: Arc<[Vec<u8>]>,
    /// By topic, what is sent when a WebSocket is open; empty: readers read events.
    pub(crate) greetings: Arc<[SocketGreeting]>,
    /// What to connect to, in turn.
    pub(crate) targets: Vec<Target>,
    /// Time between two connections.
    pub(crate) gap_ns: u64,
    /// Time between two readers that are cut off; `None`: nobody is.
    pub(crate) cut_every_ns: Option<u64>,
    /// Whether readers resume.
    pub(crate) resume: bool,
    /// Whether they may skip.
    pub(crate) may_skip: bool,
    /// After how long a reader comes back.
    pub(crate) return_ns: Option<u64>,
    /// The run whose updates count.
    pub(crate) run: Option<u32>,
    /// Where chance begins.
    pub(crate) random: Xoshiro256PlusPlus,
}

/// The readers of one thread.
pub(crate) struct ReaderCrowd<I> {
    io: I,
    plan: CrowdPlan,
    shared: Arc<LiveShared>,
    readers: Vec<LiveReader>,
    /// Which reader has a slot.
    readers_by_slot: Vec<u32>,
    /// Readers that are away: when they come, and who.
    away: BinaryHeap<Reverse<(u64, u32)>>,
    meter: Meter,
    now_ns: u64,
    /// No connection is begun before.
    dial_at_ns: u64,
    cut_at_ns: u64,
    next_step_ns: u64,
    target_next: usize,
    connecting: u32,
    open: u64,
    /// All were there at a time.
    has_gathered: bool,
    busy_before_ns: u64,
    #[expect(clippy::vec_box, reason = "the boxes go to the network and come back")]
    spare: Vec<Box<Outgoing>>,
}

impl<I: Io> ReaderCrowd<I> {
    pub(crate) fn new(io: I, plan: CrowdPlan, shared: Arc<LiveShared>) -> Self {
        let now_ns = io.now_ns();
        let readers = plan
            .topics
            .iter()
            .map(|topic| LiveReader::of_topic(*topic, plan.greetings.get(*topic as usize).cloned()));
        let mut readers: Vec<LiveReader> = readers.collect();
        readers.iter_mut().take(plan.stalled).for_each(|reader| reader.is_stalled = true);
        // All at once, in their order.
        let away = (0..readers.len() as u32).map(|reader| Reverse((0, reader))).collect();
        Self {
            io,
            shared,
            readers,
            readers_by_slot: Vec::new(),
            away,
            meter: Meter::new(plan.run),
            now_ns,
            dial_at_ns: now_ns,
            cut_at_ns: u64::MAX,
            next_step_ns: now_ns + STEP_NS,
            target_next: 0,
            connecting: 0,
            open: 0,
            has_gathered: false,
            busy_before_ns: clock::thread_busy_ns(),
            spare: Vec::new(),
            plan,
        }
    }

    /// Works until the run is over.
    ///
    /// # Errors
    /// What the way to the network cannot go on after.
    pub(crate) fn run(mut self, news: &Sender<CrewNews>) -> io::Result<()> {
        while self.turn(news)? {}
        Ok(())
    }

    fn turn(&mut self, news: &Sender<CrewNews>) -> io::Result<bool> {
        self.now_ns = self.io.now_ns();
        let phase = self.shared.phase();
        if phase.is_none() {
            // A listener that is gone wants no more.
            let _ = news.send(CrewNews::Crowd(Box::new(self.news(phase, true))));
            return Ok(false);
        }
        // That all are there is told at once: how fast they came is measured by it.
        let is_complete = self.open == self.readers.len() as u64;
        let has_gathered = is_complete && !self.has_gathered;
        if self.now_ns >= self.next_step_ns || has_gathered {
            self.has_gathered |= has_gathered;
            self.next_step_ns = self.now_ns + STEP_NS;
            if news.send(CrewNews::Crowd(Box::new(self.news(phase, false)))).is_err() {
                return Ok(false);
            }
        }
        let due_ns = self.dial().min(self.cut(phase)).min(self.next_step_ns);
        let nap = Duration::from_nanos(due_ns.saturating_sub(self.now_ns));
        self.io.submit_and_wait(Some(nap))?;
        while let Some(completion) = self.io.next_completion() {
            self.now_ns = self.io.now_ns();
            self.handle(completion);
        }
        Ok(true)
    }

    /// Begins connections that are due. Returns when the next one is.
    fn dial(&mut self) -> u64 {
        while self.connecting < CONNECTING_MAX {
            let Some(Reverse((at_ns, _))) = self.away.peek() else { return u64::MAX };
            let due_ns = self.dial_at_ns.max(*at_ns);
            if due_ns > self.now_ns {
                return due_ns;
            }
            let Some(Reverse((_, number))) = self.away.pop() else { return u64::MAX };
            self.dial_at_ns = self.dial_at_ns.max(self.now_ns.saturating_sub(PAUSE_NS)) + self.plan.gap_ns;
            if let Err(errno) = self.connect(number) {
                End::of_errno(errno).count_reader(&mut self.meter);
                self.dial_at_ns = self.now_ns + PAUSE_NS;
                self.away.push(Reverse((self.dial_at_ns, number)));
                return self.dial_at_ns;
            }
        }
        u64::MAX
    }

    fn connect(&mut self, number: u32) -> Result<(), i32> {
        let target = &self.plan.targets[self.target_next];
        self.target_next = (self.target_next + 1) % self.plan.targets.len();
        let slot = self.io.connect(target).map_err(|error| error.raw_os_error().unwrap_or_default())?;
        if self.readers_by_slot.len() <= slot as usize {
            self.readers_by_slot.resize(slot as usize + 1, u32::MAX);
        }
        self.readers_by_slot[slot as usize] = number;
        self.readers[number as usize].begin(slot, self.now_ns);
        self.connecting += 1;
        self.meter.counts.connections_begun += 1;
        Ok(())
    }

    /// Cuts readers off that are due to be. Returns when the next one is.
    fn cut(&mut self, phase: Option<LivePhase>) -> u64 {
        let Some(every_ns) = self.plan.cut_every_ns.filter(|_| phase == Some(LivePhase::Publishing)) else {
            return u64::MAX;
        };
        if self.cut_at_ns == u64::MAX {
            self.cut_at_ns = self.now_ns + every_ns;
        }
        while self.cut_at_ns <= self.now_ns {
            self.cut_at_ns += every_ns;
            let number = self.plan.random.random_range(0..self.readers.len().max(1));
            if self.readers.get(number).is_some_and(|reader| reader.stage == ReaderStage::Open) {
                self.meter.counts.cut += 1;
                self.close(number);
            }
        }
        self.cut_at_ns
    }

    fn handle(&mut self, completion: Completion) {
        match completion {
            Completion::Connected { slot, errno } => self.connected(slot, errno),
            Completion::Received { slot, input } => self.received(slot, input),
            Completion::Sent { slot, outgoing, .. } => {
                self.put_spare(outgoing);
                let number = self.number(slot);
                self.readers[number].is_sending = false;
                self.reply(number);
            }
            Completion::Ended { slot, errno } => self.ended(slot, errno),
            Completion::Closed { slot } => self.closed(slot),
            Completion::Woken
            | Completion::Ready { .. }
            | Completion::Accepted { .. }
            | Completion::AcceptStopped { .. }
            | Completion::Progress { .. }
            | Completion::Inspected { .. } => {}
        }
    }

    fn number(&self, slot: Slot) -> usize {
        self.readers_by_slot[slot as usize] as usize
    }

    fn connected(&mut self, slot: Slot, errno: i32) {
        let number = self.number(slot);
        if self.readers[number].stage != ReaderStage::Connecting {
            return;
        }
        if errno != 0 {
            End::of_errno(errno).count_reader(&mut self.meter);
            self.close(number);
            return;
        }
        self.meter.counts.connections_made += 1;
        let mut outgoing = self.spare.pop().unwrap_or_default();
        let reader = &mut self.readers[number];
        let lines = &self.plan.requests[reader.topic as usize];
        let resumes = reader.request(lines, self.plan.resume, outgoing.bytes());
        reader.is_sending = true;
        self.meter.counts.resumed += u64::from(resumes);
        self.io.send(slot, outgoing, false);
        self.io.receive(slot);
    }

    fn received(&mut self, slot: Slot, input: Input) {
        self.meter.unix_ns = self.shared.unix_ns(self.now_ns);
        let number = self.readers_by_slot[slot as usize] as usize;
        let reader = &mut self.readers[number];
        let was_open = reader.stage == ReaderStage::Open;
        let then = reader.read(self.io.input_mut(&input), &mut self.meter);
        let is_open = reader.stage == ReaderStage::Open;
        self.io.release(input);
        if is_open && !was_open {
            self.opened(number);
        }
        match then {
            Then::GoOn | Then::Opened => return self.reply(number),
            Then::Ended => self.meter.counts.ended += 1,
            Then::Wrong => self.meter.counts.wrong_answer += 1,
            Then::Broken => self.meter.counts.broken += 1,
        }
        self.close(number);
    }

    /// Sends what a reader has to say, when nothing is being sent.
    fn reply(&mut self, number: usize) {
        let reader = &mut self.readers[number];
        let is_there = matches!(reader.stage, ReaderStage::Asked | ReaderStage::Open);
        if reader.reply.is_empty() || reader.is_sending || !is_there {
            return;
        }
        let mut outgoing = self.spare.pop().unwrap_or_default();
        outgoing.bytes().append(&mut reader.reply);
        reader.is_sending = true;
        self.io.send(reader.slot, outgoing, false);
    }

    fn opened(&mut self, number: usize) {
        let reader = &mut self.readers[number];
        self.open += 1;
        self.connecting -= 1;
        self.meter.counts.opened += 1;
        self.meter.counts.returned += u64::from(reader.has_been_open);
        self.meter.open.record(self.now_ns.saturating_sub(reader.begun_ns));
        let gathers = self.shared.phase() == Some(LivePhase::Gathering);
        if gathers && self.plan.run.is_some() && !reader.has_been_open {
            // A reader that is there before the first update gets all updates.
            reader.ledger.expect_from(1);
        }
        reader.has_been_open = true;
        if reader.is_stalled {
            self.io.pause(reader.slot);
        }
    }

    fn ended(&mut self, slot: Slot, errno: i32) {
        let number = self.number(slot);
        if matches!(self.readers[number].stage, ReaderStage::Asked | ReaderStage::Open) {
            let is_orderly = errno == 0 && self.readers[number].stage == ReaderStage::Open;
            let counts = &mut self.meter.counts;
            let count = if is_orderly { &mut counts.ended } else { &mut counts.reset };
            *count += 1;
            self.close(number);
        }
    }

    /// Closes the connection of a reader.
    fn close(&mut self, number: usize) {
        let reader = &mut self.readers[number];
        match reader.stage {
            ReaderStage::Open => self.open -= 1,
            ReaderStage::Connecting | ReaderStage::Asked => self.connecting -= 1,
            ReaderStage::Away | ReaderStage::Leaving => return,
        }
        reader.part();
        self.io.close(reader.slot);
    }

    /// The connection is gone: its reader comes back later.
    fn closed(&mut self, slot: Slot) {
        let number = std::mem::replace(&mut self.readers_by_slot[slot as usize], u32::MAX);
        let Some(reader) = self.readers.get_mut(number as usize) else { return };
        let stood = reader.leave();
        let told_ns = reader.retry_ms.map(|ms| ms.saturating_mul(1_000_000));
        let pause_ns = if stood { self.plan.return_ns.or(told_ns).unwrap_or(RETURN_NS) } else { PAUSE_NS };
        self.away.push(Reverse((self.now_ns.saturating_add(pause_ns), number)));
    }

    fn put_spare(&mut self, mut outgoing: Box<Outgoing>) {
        if self.spare.len() < SPARE_COUNT_MAX {
            outgoing.clear(SPARE_BYTES);
            self.spare.push(outgoing);
        }
    }

    /// Where the thread stands; at the end, what its readers have not had is settled.
    fn news(&mut self, phase: Option<LivePhase>, is_over: bool) -> CrowdNews {
        let settling = phase == Some(LivePhase::Settling);
        if is_over {
            self.settle();
        }
        CrowdNews {
            thread: self.plan.thread,
            phase,
            open: self.open,
            awaited: if settling && !is_over { self.awaited() } else { 0 },
            counts: self.meter.counts,
            delay_max_ns: self.meter.take_delay_max_ns(),
            first_fault: self.meter.first_fault.clone(),
            last: is_over.then(|| {
                let meter = std::mem::replace(&mut self.meter, Meter::new(None));
                let busy_ns = clock::thread_busy_ns() - self.busy_before_ns;
                (meter, busy_ns)
            }),
        }
    }

    /// Readers that have not had all they are to get.
    fn awaited(&self) -> u64 {
        let readers = self.readers.iter().filter(|reader| !reader.is_stalled);
        let lacks = |reader: &&LiveReader| {
            let gaps = !self.plan.may_skip && reader.ledger.has_gaps();
            gaps || reader.ledger.behind(self.shared.published(reader.topic)) > 0
        };
        readers.filter(lacks).count() as u64
    }

    fn settle(&mut self) {
        let mut behind = 0;
        for reader in self.readers.iter().filter(|reader| !reader.is_stalled) {
            let published = self.shared.published(reader.topic);
            behind += reader.ledger.behind(published);
            self.meter.settle(&reader.ledger, published);
        }
        if self.plan.may_skip {
            self.meter.allow_skips(behind);
        }
    }
}

impl End {
    /// Counts a connection that a reader could not make.
    fn count_reader(self, meter: &mut Meter) {
        let (count, words) = match self {
            Self::Refused => (&mut meter.counts.refused, "the connection of a reader was refused"),
            Self::Reset => (&mut meter.counts.reset, "the connection of a reader was reset"),
            Self::Unsent => (
                &mut meter.counts.unsent,
                "there was no descriptor, port or memory for the connection of a reader",
            ),
            Self::WrongAnswer | Self::TimedOut | Self::Failed => {
                (&mut meter.counts.failed, "the connection of a reader could not be made")
            }
        };
        *count += 1;
        meter.note_fault(|| words.to_owned());
    }
}
