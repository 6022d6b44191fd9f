//! What the threads of a run tell while they work.
//!
//! It must never be answered: news go one way.

use super::meter::Meter;
use super::outcome::{LiveCounts, LivePhase, Publications};
use crate::fault::Fault;
use crate::histogram::Histogram;

/// What a thread tells.
#[derive(Debug)]
pub(crate) enum CrewNews {
    /// Where the readers of a thread stand.
    Crowd(Box<CrowdNews>),
    /// All is published: what became of it, times of answers, and how late it was sent.
    Published(Box<(Publications, Histogram, Histogram)>),
    /// A thread has ended with a fault.
    Failed(Fault),
}

/// Where the readers of a thread stand.
#[derive(Debug)]
pub(crate) struct CrowdNews {
    pub(crate) thread: usize,
    /// The phase in which this was true.
    pub(crate) phase: Option<LivePhase>,
    /// Readers whose stream is open.
    pub(crate) open: u64,
    /// While the last deliveries are awaited: readers that lack something.
    pub(crate) awaited: u64,
    pub(crate) counts: LiveCounts,
    pub(crate) delay_max_ns: u64,
    pub(crate) first_fault: Option<String>,
    /// At the end: everything, and the processor time of the thread in nanoseconds.
    pub(crate) last: Option<(Meter, u64)>,
}
