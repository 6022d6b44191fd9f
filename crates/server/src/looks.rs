//! A queue of looks, which a thread of its own takes: at entries that are used, and at what sites were opened
//! by.
//!
//! It must never hold up who asks: what finds no room is asked for again by a later request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::content::entry::Entry;
use crate::content::signal::Signal;
use crate::limits::LOOKS_QUEUED_MAX;

/// What of a site is looked at.
#[derive(Debug)]
pub(crate) enum Look {
    /// What it was opened by alone.
    Site,
    /// That, and an entry.
    Entry(Arc<Entry>),
    /// That, and every entry.
    All,
}

/// A look, for which site, and in which second since 1970.
pub(crate) struct LookJob<S> {
    pub(crate) site: S,
    pub(crate) look: Look,
    pub(crate) unix_s: u64,
}

/// The jobs that wait.
pub(crate) struct Looks<S> {
    jobs: Mutex<VecDeque<LookJob<S>>>,
    pub(crate) signal: Signal,
}

impl<S> Looks<S> {
    pub(crate) fn new() -> Self {
        Self { jobs: Mutex::default(), signal: Signal::default() }
    }

    /// Adds a job, if there is room. That of all entries always finds some: an operator has asked.
    pub(crate) fn add(&self, job: LookJob<S>) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.len() >= LOOKS_QUEUED_MAX && !matches!(job.look, Look::All) {
            return;
        }
        jobs.push_back(job);
        drop(jobs);
        self.signal.ring();
    }

    /// Lets all go.
    pub(crate) fn clear(&self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn take(&self) -> Option<LookJob<S>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_more_than_that() {
        let looks = Looks::new();
        for number in 0..LOOKS_QUEUED_MAX + 7 {
            looks.add(LookJob { site: number, look: Look::Site, unix_s: 0 });
        }
        looks.add(LookJob { site: usize::MAX, look: Look::All, unix_s: 0 });
        let taken: Vec<usize> = std::iter::from_fn(|| looks.take()).map(|job| job.site).collect();
        assert_eq!(taken.len(), LOOKS_QUEUED_MAX + 1);
        assert_eq!(taken.last(), Some(&usize::MAX));
    }
}
