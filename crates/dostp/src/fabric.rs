//! The fabric: nodes of one cluster tell each other how busy they are, and the last values of their topics.
//!
//! The fabric owns three things: which messages a node tells, asks and answers, which values other nodes
//! lack, and which of two updates of a topic counts. It must never read a clock, send anything or hold a
//! value: time and received bytes are arguments, messages to be sent are handed back, and a [`Held`] writes
//! its value.
//!
//! Load is told each second (`collect`). What was published at a node is told by that node alone, to all
//! (`publish`). Who hears a node for the first time, or misses something of its stream, asks it (`transact`)
//! for everything that differs, page by page; and so does who holds other values than it for some seconds.
//! Updates of real-time topics are told in messages with a deadline (`realtime`): what comes later is dropped
//! as if it were lost, and so is asked for.
//! Of two updates of a topic the one with the greater [`Stamp`] counts, so all nodes come to hold the same.
//!
//! Order of calls: [`Fabric::updated`] for what is held already, then in any order [`Fabric::heard`],
//! [`Fabric::updated`], [`Fabric::forgotten`], and [`Fabric::tick`] when [`Fabric::due_ms`] has come; after
//! each of them what [`Fabric::poll_outgoing`] gives is to be sent.

mod asking;
mod figures;
mod hearing;
pub mod limits;
mod nodes;
mod question;
mod record;
mod report;
mod stamp;
mod table;
mod telling;
mod wire;

use std::collections::VecDeque;

pub use figures::{FabricCounts, FabricNode};
pub use hearing::{Became, HeardMessage, ToldUpdate};
pub use record::TopicRecord;
pub use report::NodeLoad;
pub use stamp::Stamp;
pub use telling::Updated;

use crate::header::Kind;
use crate::kinds::collect::{Collector, Reporter};
use crate::kinds::publish::Publisher;
use crate::kinds::transact::{Caller, Service};
use limits::{REPORTS_PER_SECOND, TOLD_MS};
use nodes::Nodes;
use table::Table;

/// The time, on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Milliseconds on a clock that never goes back.
    pub ms: u64,
    /// Milliseconds since 1970.
    pub wall_ms: u64,
}

/// A handle to an update whose value the program holds: the fabric has the value written only when a message
/// tells it.
pub trait Held {
    /// The topics of the update.
    fn topics(&self) -> Vec<&str>;
    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);
    /// How many bytes that are.
    fn length(&self) -> usize;
}

/// A site whose topics are told.
#[derive(Debug, Clone)]
pub struct FabricSite {
    /// Its name, which is the same on all nodes.
    pub name: String,
    /// Most topics.
    pub topics_max: usize,
}

/// Settings with which a node's fabric begins.
#[derive(Debug, Clone)]
pub struct FabricSettings {
    /// The node's address.
    pub address: u16,
    /// The port of the fabric, on all nodes.
    pub port: u16,
    /// Another one after each start: seconds since 1970.
    pub epoch: u32,
    /// A random number.
    pub seed: u64,
    /// Sites with topics, in the order in which they are numbered here.
    pub sites: Vec<FabricSite>,
    /// The longest that a message with updates of real-time topics may be held up.
    pub deadline_ms: u32,
}

/// A message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The node it goes to; `None` for all.
    pub to: Option<u16>,
    /// DATA, REQUEST, REPLY or ACK.
    pub kind: Kind,
    /// The id it has to bear, if it is one of a transaction.
    pub message_id: Option<u16>,
    /// Whether it is sent with PRIORITY.
    pub priority: bool,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// A notice for the operator that the clocks of two nodes differ too much, given once a minute at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AheadNotice {
    /// The node whose clock is ahead, or that says so.
    pub node: u16,
    /// By how many milliseconds.
    pub ahead_ms: u64,
    /// Updates that were refused for that since the start.
    pub refused: u64,
}

#[derive(Debug)]
struct Site<H> {
    name: String,
    digest: u64,
    table: Table<H>,
}

/// At most so many in a second.
#[derive(Debug, Default)]
struct Rate {
    second: u64,
    count: u32,
}

impl Rate {
    /// Counts one more in this second and returns true, if there is room for one.
    fn takes(&mut self, now_ms: u64, count_max: u32) -> bool {
        let is_left = self.is_left(now_ms, count_max);
        self.add(usize::from(is_left));
        is_left
    }

    fn is_left(&mut self, now_ms: u64, count_max: u32) -> bool {
        if self.second != now_ms / 1_000 {
            *self = Self { second: now_ms / 1_000, count: 0 };
        }
        self.count < count_max
    }

    fn add(&mut self, count: usize) {
        self.count = self.count.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// A node's part in the fabric: its sites, what it knows of other nodes, and what it is to send.
#[derive(Debug)]
pub struct Fabric<H> {
    address: u16,
    port: u16,
    sites: Vec<Site<H>>,
    nodes: Nodes,
    load: NodeLoad,
    reporter: Reporter,
    collector: Collector,
    publisher: Publisher,
    version: u64,
    /// Records of this node's updates that wait to be told together: those without a deadline, and those of
    /// real-time topics.
    gathered: [Vec<u8>; 2],
    deadline_us: u32,
    caller: Caller,
    service: Service,
    questions: Rate,
    answers: Rate,
    answered_bytes: Rate,
    report_ms: u64,
    outgoing: VecDeque<Outgoing>,
    notice: Option<AheadNotice>,
    noticed_ms: Option<u64>,
    counts: FabricCounts,
}

impl<H: Held> Fabric<H> {
    /// A fabric that knows nobody yet.
    pub fn new(settings: FabricSettings) -> Self {
        let site = |site: FabricSite| Site {
            digest: table::name_digest(&site.name),
            table: Table::new(site.topics_max),
            name: site.name,
        };
        Self {
            address: settings.address,
            port: settings.port,
            sites: settings.sites.into_iter().map(site).collect(),
            nodes: Nodes::default(),
            load: NodeLoad::default(),
            reporter: Reporter::new(settings.epoch.wrapping_mul(REPORTS_PER_SECOND)),
            collector: Collector::default(),
            publisher: Publisher::new(settings.epoch),
            version: 0,
            gathered: Default::default(),
            deadline_us: settings.deadline_ms.saturating_mul(1_000),
            caller: Caller::new(settings.seed),
            service: Service::default(),
            questions: Rate::default(),
            answers: Rate::default(),
            answered_bytes: Rate::default(),
            report_ms: 0,
            outgoing: VecDeque::new(),
            notice: None,
            noticed_ms: None,
            counts: FabricCounts::default(),
        }
    }

    /// Does what is due: tells load, repeats questions, asks.
    pub fn tick(&mut self, now: Now) {
        self.conclude_questions(now);
        if self.report_ms <= now.ms {
            self.report_ms = now.ms.saturating_add(limits::REPORT_MS);
            self.sites.iter_mut().for_each(|site| site.table.tidy(now.ms));
            self.nodes.tidy(now.ms);
            self.collector.forget_before(now.ms.saturating_sub(limits::COLLECTED_MS));
            self.tell_load(now);
        }
        self.ask_on(now);
    }

    /// When [`Fabric::tick`] has something to do at the latest.
    pub fn due_ms(&self, now: Now) -> u64 {
        let repeat_ms = self.caller.due_us().map(|due_us| due_us.div_ceil(1_000));
        let rest_ms = self.nodes.due_ms(now.ms).filter(|due_ms| *due_ms > now.ms);
        [repeat_ms, rest_ms].into_iter().flatten().fold(self.report_ms, u64::min)
    }

    /// The next message to be sent.
    pub fn poll_outgoing(&mut self) -> Option<Outgoing> {
        self.outgoing.pop_front()
    }

    /// The notice that the log should get about clocks that differ, if there is one.
    pub fn poll_notice(&mut self) -> Option<AheadNotice> {
        self.notice.take()
    }

    /// A stamp is further ahead than clocks may be.
    fn refuse_ahead(&mut self, stamp: Stamp, now: Now) {
        self.counts.ahead += 1;
        if self.noticed_ms.is_none_or(|noticed_ms| now.ms >= noticed_ms.saturating_add(TOLD_MS)) {
            self.noticed_ms = Some(now.ms);
            let ahead_ms = stamp.ms.saturating_sub(now.wall_ms);
            self.notice = Some(AheadNotice { node: stamp.node, ahead_ms, refused: self.counts.ahead });
        }
    }
}
