//! What one thread has counted for one lane since it was last asked.
//!
//! It must never be shared: a thread hands it over, goes on with another, and gets it back empty when it was
//! added up. Its memory is touched before the run: new pages each step would delay what is due.

use std::sync::mpsc::Sender;

use crate::outcome::{Counts, Times, TlsOutcome};

/// When the first of some requests was meant to start, and when the last one ended, in nanoseconds on the
/// clock of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    first_ns: u64,
    last_ns: u64,
}

impl Default for Span {
    fn default() -> Self {
        Self { first_ns: u64::MAX, last_ns: 0 }
    }
}

impl Span {
    /// A request was meant to start then.
    #[inline]
    pub(crate) fn begin(&mut self, intended_ns: u64) {
        self.first_ns = self.first_ns.min(intended_ns);
    }

    /// A request was answered, given up or lost.
    #[inline]
    pub(crate) fn end(&mut self, now_ns: u64) {
        self.last_ns = self.last_ns.max(now_ns);
    }

    /// Takes another's in.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.begin(other.first_ns);
        self.end(other.last_ns);
    }

    /// From the first start to the last end; 0 when there was none.
    pub(crate) fn length_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}

/// Counts and times.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    pub(crate) times: Times,
    /// Answers by status; a handful at most.
    pub(crate) statuses: Vec<(u16, u64)>,
    pub(crate) tls: TlsOutcome,
    /// How far behind the schedule a request was begun at most.
    pub(crate) drift_max_ns: u64,
    /// From the first start to the last end.
    pub(crate) span: Span,
    /// Connections that a lane which holds held at the end of the step.
    pub(crate) held: u64,
}

impl Tally {
    /// An empty one whose memory is there, not only promised.
    pub(crate) fn touched() -> Self {
        let mut tally = Self::default();
        tally.empty();
        tally
    }

    /// Forgets everything and keeps the memory.
    fn empty(&mut self) {
        self.counts = Counts::default();
        self.times.reset();
        self.statuses.clear();
        self.tls.clear();
        self.drift_max_ns = 0;
        self.span = Span::default();
        self.held = 0;
    }

    /// An answer of this status came whole.
    #[inline]
    pub(crate) fn count_status(&mut self, status: u16) {
        match self.statuses.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += 1,
            None => self.statuses.push((status, 1)),
        }
    }

    /// A request was begun this long after it was meant to.
    #[inline]
    pub(crate) fn record_drift(&mut self, drift_ns: u64) {
        self.times.drift.record(drift_ns);
        self.drift_max_ns = self.drift_max_ns.max(drift_ns);
    }
}

/// What one thread reports for one step of the run.
#[derive(Debug)]
pub(crate) struct Report {
    /// Which thread.
    pub(crate) thread: usize,
    /// In the order of the lanes.
    pub(crate) tallies: Vec<Tally>,
    /// Connections open.
    pub(crate) connections: u64,
    /// Requests of the main lane under way.
    pub(crate) in_flight: u64,
    /// Processor time of the thread so far, in nanoseconds, without what it spun.
    pub(crate) busy_ns: u64,
    /// When it was made, on the clock of the run.
    pub(crate) at_ns: u64,
    /// From when on nothing was offered: later than `at_ns` while the run goes on.
    pub(crate) until_ns: u64,
    /// The main lane's part of the thread has come to its own end.
    pub(crate) main_over: bool,
    /// The thread has nothing left to do.
    pub(crate) over: bool,
    /// Where the tallies go when they are added up.
    pub(crate) back: Sender<Vec<Tally>>,
}

impl Report {
    /// Gives the thread its tallies back, empty. It may be gone.
    pub(crate) fn give_back(mut self) {
        self.tallies.iter_mut().for_each(Tally::empty);
        let _ = self.back.send(self.tallies);
    }
}
