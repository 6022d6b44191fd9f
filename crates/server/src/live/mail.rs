//! What the writer tells workers.
//!
//! It must never carry anything that changes afterwards.

use std::sync::Arc;

use staunch_engine::Address;
use staunch_live::{Accepted, Letter, TopicName};

use super::tokens::Verdict;
use crate::content::negotiate::Encoding;

/// One letter to a worker, or to one of its exchanges.
pub(crate) enum LiveMail {
    /// What happened to topics: each worker gets the same.
    News(Letter),
    /// A second has passed.
    Tick(LiveTime),
    /// What became of a publication, for the request that waits for it.
    Published(Vec<LineOutcome>),
    /// The same for lines of a feed, or for a command of a WebSocket.
    Fed(Address, Vec<LineOutcome>),
    /// A polled value in a coding.
    Coded(CodedValue),
    /// What a token grants, for the request or the WebSocket that showed it.
    Checked(Address, Verdict),
    /// A poll has waited for long enough; the version to ask for behind which.
    WaitedLong,
    /// The worker knows now what a request waits for.
    Again,
    /// There is more of a wave to do.
    GoOn,
}

/// The time, as often as readers need it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LiveTime {
    /// Since the start, in seconds.
    pub(crate) up_s: u32,
    /// Since 1970, in seconds.
    pub(crate) unix_s: u64,
    /// Seconds until readers have to be gone, if they have to.
    pub(crate) leaving_s: Option<u32>,
}

/// What became of one line, or of the only publication of a body.
#[derive(Debug, Clone)]
pub(crate) struct LineOutcome {
    /// From 1; 0 where the body has no lines.
    pub(crate) line: u64,
    pub(crate) became: Result<Accepted, NotTaken>,
}

/// Why a publication was not taken.
#[derive(Debug, Clone)]
pub(crate) struct NotTaken {
    pub(crate) status: u16,
    pub(crate) sentence: String,
}

/// A value in a coding, shared by all workers.
#[derive(Debug, Clone)]
pub(crate) struct CodedValue {
    pub(crate) topic: TopicName,
    pub(crate) number: u64,
    pub(crate) encoding: Encoding,
    /// `None` where it would not be shorter.
    pub(crate) body: Option<Arc<[u8]>>,
}
