//! What a run with readers measured: counts that add up, and times.
//!
//! Rule: of every reader that was there before the first update, each number that was published is delivered,
//! lost or skipped, and exactly one of them. What came twice is counted beside.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::histogram::Histogram;
use crate::live::plan::LiveWay;

/// Length of a step that is observed, in milliseconds.
pub const LIVE_STEP_MS: u64 = 100;

/// Everything a run measured.
#[derive(Debug, Clone)]
pub struct LiveOutcome {
    /// The command line, as it can be typed again.
    pub command: String,
    /// When it began.
    pub began: SystemTime,
    /// Where readers went, as it was given.
    pub target: String,
    /// What carried the load: backend, threads, processors.
    pub engine: String,
    /// How readers read.
    pub way: LiveWay,
    /// Whether it published.
    pub published: bool,
    /// Whether updates might be skipped.
    pub may_skip: bool,
    /// How many readers there were to be.
    pub readers: u64,
    /// How many of them were to stop reading.
    pub stalled: u64,
    /// How many were there when publishing or listening began.
    pub gathered: u64,
    /// From the first connection until that moment.
    pub gathering: Duration,
    /// From then until the last update was published, or listening was over.
    pub lasted: Duration,
    /// How many readers were there at the end.
    pub open_at_end: u64,
    /// What became of readers and updates.
    pub counts: LiveCounts,
    /// What became of publications.
    pub publications: Publications,
    /// Answers to readers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// The first thing that went wrong for a reader, as a sentence.
    pub first_fault: Option<String>,
    /// Processor time of the server's process from the first update to the last delivery, outside the kernel
    /// and in it, in milliseconds, in steps of 10; `None`: not asked for.
    pub server_ms: Option<(u64, u64)>,
    /// Histograms of what was measured in time.
    pub times: LiveTimes,
    /// What has to be known before a figure is believed, the gravest first.
    pub warnings: Vec<String>,
}

/// Times in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct LiveTimes {
    /// From the moment an update was meant to be published until a reader had it, for each delivery.
    pub delay: Histogram,
    /// From the begin of connecting until a reader's stream was open.
    pub open: Histogram,
    /// From a publication's last byte sent until its answer.
    pub publish: Histogram,
    /// From the moment a publication was meant to be sent until it was.
    pub drift: Histogram,
}

/// What became of publications.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Publications {
    /// Answered by a status from 200 to 299.
    pub published: u64,
    /// Answered otherwise.
    pub refused: u64,
    /// Sent, and not answered: nobody knows whether they were published.
    pub unanswered: u64,
    /// Not sent, because those before were not answered in time.
    pub unsent: u64,
    /// Refusals by status.
    pub statuses: BTreeMap<u16, u64>,
    /// The first thing that went wrong, as a sentence.
    pub first_fault: Option<String>,
}

/// What became of readers and updates. All are counted over all readers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LiveCounts {
    /// Connections begun: each sent at least one SYN.
    pub connections_begun: u64,
    /// Connections whose handshake was completed.
    pub connections_made: u64,
    /// Streams that were open: the answer was the right one.
    pub opened: u64,
    /// Of these, streams of readers that had been there before.
    pub returned: u64,
    /// Of these, streams that were asked for with the last id.
    pub resumed: u64,
    /// Streams that the generator cut off, as it was told.
    pub cut: u64,
    /// Streams that the server ended in order.
    pub ended: u64,
    /// Connections that were reset or failed.
    pub reset: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Connections for which the generator had no descriptor, port or memory.
    pub unsent: u64,
    /// Connections that could not be made for another reason.
    pub failed: u64,
    /// Answers that were no stream: another status, another type, or not HTTP.
    pub wrong_answer: u64,
    /// Streams that could not be read on: broken chunks, frames, or an event without end.
    pub broken: u64,
    /// Numbers that were due.
    pub due: u64,
    /// Numbers that came, each counted once.
    pub delivered: u64,
    /// Of these, numbers that came behind a later one.
    pub out_of_order: u64,
    /// Numbers that came again.
    pub duplicated: u64,
    /// Numbers that were due and never came.
    pub lost: u64,
    /// Numbers that a reader may skip, because a later one came.
    pub skipped: u64,
    /// Readers that have not had the last update of their topic.
    pub without_last: u64,
    /// Updates with the mark of another run.
    pub foreign: u64,
    /// Events without a mark.
    pub unmarked: u64,
    /// Events of the type `gap`, by which a server says that it has lost updates.
    pub gap_marks: u64,
    /// Comments, pings and answers without news: signs of life.
    pub signs_of_life: u64,
    /// Bytes received, all of them.
    pub received_bytes: u64,
    /// Of these, bytes of streams, heads of answers left out.
    pub stream_bytes: u64,
}

/// Where a count stands.
type CountOf = fn(&mut LiveCounts) -> &mut u64;

/// Every count, by its name.
const FIELDS: [(&str, CountOf); 26] = [
    ("connections_begun", |counts| &mut counts.connections_begun),
    ("connections_made", |counts| &mut counts.connections_made),
    ("opened", |counts| &mut counts.opened),
    ("returned", |counts| &mut counts.returned),
    ("resumed", |counts| &mut counts.resumed),
    ("cut", |counts| &mut counts.cut),
    ("ended", |counts| &mut counts.ended),
    ("reset", |counts| &mut counts.reset),
    ("refused", |counts| &mut counts.refused),
    ("unsent", |counts| &mut counts.unsent),
    ("failed", |counts| &mut counts.failed),
    ("wrong_answer", |counts| &mut counts.wrong_answer),
    ("broken", |counts| &mut counts.broken),
    ("due", |counts| &mut counts.due),
    ("delivered", |counts| &mut counts.delivered),
    ("out_of_order", |counts| &mut counts.out_of_order),
    ("duplicated", |counts| &mut counts.duplicated),
    ("lost", |counts| &mut counts.lost),
    ("skipped", |counts| &mut counts.skipped),
    ("without_last", |counts| &mut counts.without_last),
    ("foreign", |counts| &mut counts.foreign),
    ("unmarked", |counts| &mut counts.unmarked),
    ("gap_marks", |counts| &mut counts.gap_marks),
    ("signs_of_life", |counts| &mut counts.signs_of_life),
    ("received_bytes", |counts| &mut counts.received_bytes),
    ("stream_bytes", |counts| &mut counts.stream_bytes),
];

impl AddAssign for LiveCounts {
    fn add_assign(&mut self, mut other: Self) {
        for (_, field) in FIELDS {
            *field(self) += *field(&mut other);
        }
    }
}

impl LiveCounts {
    /// Every count, by its name.
    pub fn named(mut self) -> impl Iterator<Item = (&'static str, u64)> {
        FIELDS.into_iter().map(move |(name, field)| (name, *field(&mut self)))
    }

    /// Whether every number that was due is accounted for.
    pub fn add_up(&self) -> bool {
        self.due == self.delivered + self.lost + self.skipped
    }

    /// Connections that could not be made, or whose answer was wrong.
    pub fn not_opened(&self) -> u64 {
        self.refused + self.failed + self.wrong_answer + self.unsent
    }
}

impl LiveOutcome {
    /// Readers that opened their stream a second, while they gathered.
    pub fn opened_per_s(&self) -> f64 {
        self.gathered as f64 / self.gathering.as_secs_f64().max(1e-9)
    }

    /// Processor time of the server for each number delivered, in microseconds.
    pub fn server_us_per_delivery(&self) -> Option<f64> {
        let (user_ms, system_ms) = self.server_ms.filter(|_| self.counts.delivered > 0)?;
        Some((user_ms + system_ms) as f64 * 1000.0 / self.counts.delivered as f64)
    }

    /// Bytes of streams for each number delivered, with what stands around events.
    pub fn bytes_per_update(&self) -> Option<f64> {
        let received = self.counts.delivered + self.counts.duplicated;
        (received > 0).then(|| self.counts.stream_bytes as f64 / received as f64)
    }
}

/// What the run does at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LivePhase {
    /// Readers connect.
    #[default]
    Gathering,
    /// Updates are published, or listened to.
    Publishing,
    /// All is published: the last deliveries are awaited.
    Settling,
}

/// Where the run stands, each [`LIVE_STEP_MS`].
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveMoment {
    /// Milliseconds since the begin.
    pub at_ms: u64,
    /// Milliseconds since publishing or listening began.
    pub publishing_ms: u64,
    /// What is done.
    pub phase: LivePhase,
    /// Readers whose stream is open.
    pub open: u64,
    /// Updates published so far.
    pub published: u64,
    /// Counts so far; what is lost stands in `lost` only as far as a later number came.
    pub counts: LiveCounts,
    /// The longest delay in this step, in nanoseconds.
    pub delay_max_ns: u64,
}
