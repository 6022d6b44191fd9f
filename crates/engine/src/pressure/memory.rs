//! What peers make a worker hold: input kept, answers that stand to be sent, containers in flight.
//!
//! It owns the sum and its bound, and knows when connections have to give way. It must never look for them:
//! the worker does (`worker/holding.rs`).

use crate::limits::{
    BEHIND_BYTES_MAX, EVENT_BYTES_MAX, QUIET_MS, QUIET_PEAK_BYTES_MIN, SPARE_BYTES_MAX, WRITTEN_BYTES_MAX,
};

/// The sum of what a worker's connections hold.
#[derive(Debug)]
pub(crate) struct Account {
    /// Bytes that all connections hold.
    held_bytes: u64,
    /// Of it, what comes back by itself: the connection was closed, and the kernel has to let go of it.
    leaving_bytes: u64,
    budget_bytes: u64,
    /// The most that was held since memory was given back last.
    peak_bytes: u64,
    /// What was held when memory was given back last.
    settled_bytes: u64,
    /// When memory is given back, and what was held when that was decided.
    quiet: Option<(u64, u64)>,
}

impl Account {
    /// No bound.
    pub(crate) fn new() -> Self {
        Self {
            held_bytes: 0,
            leaving_bytes: 0,
            budget_bytes: u64::MAX,
            peak_bytes: 0,
            settled_bytes: 0,
            quiet: None,
        }
    }

    pub(crate) fn set_budget(&mut self, budget_bytes: u64) {
        self.budget_bytes = budget_bytes;
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(crate) fn leaving_bytes(&self) -> u64 {
        self.leaving_bytes
    }

    pub(crate) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// A connection holds other than before.
    #[inline]
    fn change(&mut self, before_bytes: u32, now_bytes: u32) {
        self.held_bytes = self.held_bytes - u64::from(before_bytes) + u64::from(now_bytes);
        self.peak_bytes = self.peak_bytes.max(self.held_bytes);
    }

    /// Counts that a connection which is being closed holds other than before.
    fn change_leaving(&mut self, before_bytes: u32, now_bytes: u32) {
        self.leaving_bytes = self.leaving_bytes - u64::from(before_bytes) + u64::from(now_bytes);
    }

    /// A connection, of which so much is `counted`, holds other than before, and is about to give it back or
    /// not.
    #[inline]
    pub(crate) fn recount(
        &mut self,
        counted_bytes: &mut u32,
        is_counted_leaving: &mut bool,
        held_bytes: u32,
        is_leaving: bool,
    ) {
        let before_bytes = std::mem::replace(counted_bytes, held_bytes);
        let was_leaving = std::mem::replace(is_counted_leaving, is_leaving);
        self.change(before_bytes, held_bytes);
        if was_leaving || is_leaving {
            let leaving_bytes = |is_leaving, bytes| if is_leaving { bytes } else { 0 };
            self.change_leaving(
                leaving_bytes(was_leaving, before_bytes),
                leaving_bytes(is_leaving, held_bytes),
            );
        }
    }

    /// More than half is held: containers are to be filled less.
    #[inline]
    pub(crate) fn is_tight(&self) -> bool {
        self.held_bytes > self.budget_bytes / 2
    }

    /// How much is written into a container before it is sent.
    #[inline]
    pub(crate) fn written_bytes_max(&self) -> usize {
        if self.is_tight() { BEHIND_BYTES_MAX } else { WRITTEN_BYTES_MAX }
    }

    /// Connections have to give way.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.staying_bytes() > self.budget_bytes / 8 * 7
    }

    /// How much has to come back until it is calm again: so much below that nobody has to be looked for soon.
    pub(crate) fn excess_bytes(&self) -> u64 {
        self.staying_bytes().saturating_sub(self.budget_bytes / 4 * 3)
    }

    /// What one more event might add has no place.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.held_bytes > self.budget_bytes.saturating_sub(EVENT_BYTES_MAX)
    }

    /// Memory that empty containers may keep for their next use.
    pub(crate) fn spare_bytes_max(&self) -> usize {
        SPARE_BYTES_MAX.min(usize::try_from(self.budget_bytes / 8).unwrap_or(usize::MAX))
    }

    /// When it is to be asked whether memory can be given back, if ever.
    #[inline]
    pub(crate) fn quiet_ms(&self) -> Option<u64> {
        self.quiet.map(|(ms, _)| ms)
    }

    /// Whether memory is to be given back now: some time after much more, or much less, was held than when it
    /// was given back last, and once more some time later while the crowd still comes or goes. Where there
    /// never is much, nobody wakes for that.
    #[inline]
    pub(crate) fn is_quiet(&mut self, now_ms: u64) -> bool {
        match self.quiet {
            None if !self.has_moved() => false,
            None => {
                self.quiet = Some((now_ms + QUIET_MS, self.held_bytes));
                false
            }
            Some((quiet_ms, _)) if quiet_ms > now_ms => false,
            Some((_, decided_bytes)) => {
                let most_bytes = self.held_bytes.max(decided_bytes);
                let moves = self.held_bytes.abs_diff(decided_bytes) > most_bytes / 8;
                let once_more = moves && most_bytes >= QUIET_PEAK_BYTES_MIN;
                self.quiet = once_more.then_some((now_ms + QUIET_MS, self.held_bytes));
                (self.peak_bytes, self.settled_bytes) = (self.held_bytes, self.held_bytes);
                true
            }
        }
    }

    fn has_moved(&self) -> bool {
        let has_grown = self.peak_bytes >= QUIET_PEAK_BYTES_MIN && self.peak_bytes / 2 >= self.settled_bytes;
        let has_fallen =
            self.settled_bytes >= QUIET_PEAK_BYTES_MIN / 2 && self.held_bytes <= self.settled_bytes / 2;
        has_grown || has_fallen
    }

    fn staying_bytes(&self) -> u64 {
        self.held_bytes - self.leaving_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    #[test]
    fn one_step_comes_after_the_other() {
        let mut account = Account::new();
        account.set_budget(16 << 20);
        let mut steps = Vec::new();
        for mib in 0..=16 {
            account.change(0, if mib == 0 { 0 } else { MIB });
            steps.push((account.is_tight(), account.is_over(), account.is_full()));
        }
        let first = |step: fn(&(bool, bool, bool)) -> bool| steps.iter().position(step);
        assert_eq!(first(|step| step.0), Some(9));
        assert_eq!(first(|step| step.1), Some(15));
        assert_eq!(first(|step| step.2), Some(16));
        assert_eq!(account.excess_bytes(), 4 << 20);
    }

    #[test]
    fn who_leaves_need_not_be_looked_for() {
        let mut account = Account::new();
        account.set_budget(4 << 20);
        account.change(0, 4 * MIB);
        account.change_leaving(0, 2 * MIB);
        assert!(account.is_full() && !account.is_over());
        account.change(2 * MIB, 0);
        account.change_leaving(2 * MIB, 0);
        assert_eq!((account.held_bytes(), account.excess_bytes()), (2 << 20, 0));
    }

    #[test]
    fn memory_is_given_back_once_after_a_crowd() {
        let mut account = Account::new();
        account.change(0, 1000);
        assert!(!account.is_quiet(5) && account.quiet_ms().is_none(), "it was never much");
        account.change(0, 100 * MIB);
        assert!(!account.is_quiet(10));
        assert_eq!(account.quiet_ms(), Some(10 + QUIET_MS));
        assert!(account.is_quiet(10 + QUIET_MS));
        assert!(!account.is_quiet(10 + 9 * QUIET_MS) && account.quiet_ms().is_none(), "nothing has changed");
        account.change(100 * MIB, 0);
        assert!(!account.is_quiet(20 + 9 * QUIET_MS));
        assert!(account.is_quiet(20 + 10 * QUIET_MS));
        assert!(!account.is_quiet(20 + 99 * QUIET_MS) && account.quiet_ms().is_none());
    }

    /// What comes behind the first time leaves as much unused memory behind as what came before it.
    #[test]
    fn a_crowd_that_still_comes_is_settled_once_it_stands() {
        let mut account = Account::new();
        account.change(0, 8 * MIB);
        assert!(!account.is_quiet(0));
        account.change(0, 4 * MIB);
        assert!(account.is_quiet(QUIET_MS), "while it comes");
        assert_eq!(account.quiet_ms(), Some(2 * QUIET_MS));
        assert!(account.is_quiet(2 * QUIET_MS), "once it stands");
        assert!(!account.is_quiet(9 * QUIET_MS) && account.quiet_ms().is_none());
    }
}
