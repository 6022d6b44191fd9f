//! The verdict of checks on one server.
//!
//! It owns the rule by which a server is ill and well again. It must never ask a server anything.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Mutex, PoisonError};

/// Checks in a row that must pass until an ill server is well, and that must fail until a well one is ill: as
/// HAProxy has them (`rise`, `fall`), so that one lost packet takes no server away.
const RISE: u32 = 2;
const FALL: u32 = 3;

/// The outcome of checks of a server, which is well until they have found it ill.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    is_ill: AtomicBool,
    /// Checks in a row that speak against what is believed.
    against: AtomicU32,
    passed: AtomicU64,
    failed: AtomicU64,
    /// The last one, in words.
    last: Mutex<String>,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) has_passed: bool,
    pub(super) words: String,
}

/// Figures of the checks of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct VerdictFigures {
    pub(super) is_well: bool,
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) last: String,
}

impl Verdict {
    /// Notes a check; one at a time. Gives whether the server is well, if that has changed.
    pub(super) fn note(&self, checked: Checked) -> Option<bool> {
        let is_ill = self.is_ill.load(Relaxed);
        let count = if checked.has_passed { &self.passed } else { &self.failed };
        count.fetch_add(1, Relaxed);
        let against = if checked.has_passed == is_ill { self.against.load(Relaxed) + 1 } else { 0 };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = checked.words;
        let has_changed = against >= if is_ill { RISE } else { FALL };
        self.against.store(if has_changed { 0 } else { against }, Relaxed);
        self.is_ill.store(is_ill != has_changed, Relaxed);
        has_changed.then_some(is_ill)
    }

    pub(super) fn is_well(&self) -> bool {
        !self.is_ill.load(Relaxed)
    }

    /// Figures, where there was a check.
    pub(super) fn figures(&self) -> Option<VerdictFigures> {
        let [passed, failed] = [&self.passed, &self.failed].map(|count| count.load(Relaxed));
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let figures = VerdictFigures { is_well: self.is_well(), passed, failed, last };
        (passed + failed > 0).then_some(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_make_a_server_ill_and_two_that_pass_make_it_well() {
        let verdict = Verdict::default();
        assert_eq!(verdict.figures(), None);
        let note = |sign: char| verdict.note(Checked { has_passed: sign == '+', words: sign.into() });
        let steps: Vec<Option<bool>> = "--+---+-++--+---".chars().map(note).collect();
        let changes: Vec<_> =
            steps.iter().enumerate().filter_map(|(at, step)| Some((at, (*step)?))).collect();
        assert_eq!(changes, [(5, false), (9, true), (15, false)]);
        let figures = verdict.figures().expect("figures");
        assert_eq!((figures.is_well, figures.passed, figures.failed), (false, 5, 11));
        assert_eq!(figures.last, "-");
    }
}
