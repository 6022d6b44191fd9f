//! What the writer tells workers.
//!
//! It must never carry anything that changes afterwards.

use std::sync::Arc;

use staunch_engine::Address;
use staunch_live::{Accepted, Letter, TopicName, Version};

use super::tokens::Verdict;
use super::value_coding::ValueCoding;

/// A letter to a worker, or to an exchange of a worker.
pub(crate) enum LiveMail {
    /// What happened to topics: each worker gets the same.
    News(Letter),
    /// A second has passed.
    Tick(LiveTime),
    /// What became of a publication, for the request that waits for it.
    Published(BodyOutcome, ReplyForm),
    /// What became of lines of a feed, or for a command of a WebSocket.
    Fed(Address, Vec<LineOutcome>),
    /// A polled value in a coding.
    Coded(CodedValue),
    /// What a token grants, for the request or the WebSocket that showed it.
    Checked(Address, Verdict),
    /// A poll has waited for long enough; the version to ask for behind which.
    WaitedLong,
    /// The worker knows now what a request waits for.
    Again,
    /// The difference that a poll waits for was made, or is not worth it.
    Differed,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotTaken {
    pub(crate) status: u16,
    pub(crate) sentence: String,
    /// Whether the sentence itself says in which line of the body the fault is.
    pub(crate) names_line: bool,
}

impl NotTaken {
    /// With a sentence that says nothing of a line.
    pub(crate) fn new(status: u16, sentence: impl Into<String>) -> Self {
        Self { status, sentence: sentence.into(), names_line: false }
    }
}

/// The form of the answer to a request that publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    /// By what became of each line, as JSON.
    Own,
    /// By the id of the update, as Mercure has it.
    Mercure,
}

/// What became of a whole body, for the request that brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BodyOutcome {
    /// Whether it was a batch of lines.
    pub(crate) has_lines: bool,
    /// How many publications were taken.
    pub(crate) published: usize,
    /// Version of the last of them that was numbered.
    pub(crate) version: Option<Version>,
    /// Readers of the one that has most.
    pub(crate) readers: u64,
    /// The first line that was not taken, and why.
    pub(crate) fault: Option<(u64, NotTaken)>,
    /// The id that the publisher gave to the only publication.
    pub(crate) id: Option<Box<str>>,
}

impl BodyOutcome {
    /// The outcome of a body, from those of its lines.
    pub(crate) fn of(outcomes: &[LineOutcome]) -> Self {
        let accepted: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.became.as_ref().ok()).collect();
        let fault = |outcome: &LineOutcome| Some((outcome.line, outcome.became.as_ref().err()?.clone()));
        Self {
            has_lines: !matches!(outcomes, [one] if one.line == 0),
            published: accepted.len(),
            version: accepted.iter().rev().find_map(|accepted| accepted.version),
            readers: accepted.iter().map(|accepted| accepted.readers).max().unwrap_or(0),
            fault: outcomes.iter().find_map(fault),
            id: None,
        }
    }

    /// The outcome of a body of which nothing was taken.
    pub(crate) fn refused(refusal: NotTaken) -> Self {
        Self::of(&[LineOutcome { line: 0, became: Err(refusal) }])
    }
}

/// What became of what was handed to the writer at a time.
#[derive(Debug)]
pub(crate) enum Became {
    /// The outcome of each line, and the id that the publisher gave to the first.
    Lines(Vec<LineOutcome>, Option<Box<str>>),
    /// The outcome of the whole body.
    Body(BodyOutcome),
}

impl Became {
    /// Turns the outcomes of publications that were numbered into a refusal: the store could not be written.
    pub(crate) fn refuse(&mut self, refusal: &NotTaken) {
        match self {
            Self::Lines(outcomes, _) => {
                for outcome in outcomes {
                    if outcome.became.as_ref().is_ok_and(|accepted| accepted.version.is_some()) {
                        outcome.became = Err(refusal.clone());
                    }
                }
            }
            Self::Body(outcome) if outcome.version.is_some() => {
                *outcome = BodyOutcome::refused(refusal.clone())
            }
            Self::Body(_) => {}
        }
    }
}

/// A value in a coding, shared by all workers.
#[derive(Debug, Clone)]
pub(crate) struct CodedValue {
    pub(crate) topic: TopicName,
    pub(crate) number: u64,
    pub(crate) coding: ValueCoding,
    /// `None` where it would not be shorter.
    pub(crate) body: Option<Arc<[u8]>>,
}
