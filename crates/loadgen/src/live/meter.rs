//! What readers of one thread measure together: counts, delays, statuses.
//!
//! It must never know a connection.

use std::collections::BTreeMap;

use staunch_protocol::websocket::Inflater;

use super::ledger::{Ledger, NumberArrival};
use super::outcome::LiveCounts;
use super::stamp::Stamp;
use crate::histogram::Histogram;

/// What a server calls an event that says how much a reader has lost.
const GAP_KIND: &str = "gap";

/// Counts and times of one thread.
#[derive(Debug)]
pub(crate) struct Meter {
    /// The run whose updates count; `None`: of whoever publishes.
    run: Option<u32>,
    /// The time of what is being handled, in nanoseconds since 1970.
    pub(crate) unix_ns: u64,
    pub(crate) counts: LiveCounts,
    pub(crate) delay: Histogram,
    pub(crate) open: Histogram,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) first_fault: Option<String>,
    /// What WebSockets read with, once there is one. No compression is offered, so it inflates nothing.
    pub(crate) inflater: Option<Inflater>,
    /// The longest delay since this was asked last.
    delay_max_ns: u64,
}

impl Meter {
    pub(crate) fn new(run: Option<u32>) -> Self {
        Self {
            run,
            unix_ns: 0,
            counts: LiveCounts::default(),
            delay: Histogram::new(),
            open: Histogram::new(),
            statuses: BTreeMap::new(),
            first_fault: None,
            inflater: None,
            delay_max_ns: 0,
        }
    }

    /// Keeps the first thing that went wrong.
    pub(crate) fn note_fault(&mut self, sentence: impl FnOnce() -> String) {
        if self.first_fault.is_none() {
            self.first_fault = Some(sentence());
        }
    }

    /// A reader was given an event or a message.
    pub(crate) fn note_event(&mut self, ledger: &mut Ledger, kind: &str, text: &[u8]) {
        let Some(stamp) = Stamp::find(text) else {
            let is_gap = kind == GAP_KIND;
            let count = if is_gap { &mut self.counts.gap_marks } else { &mut self.counts.unmarked };
            *count += 1;
            return;
        };
        if self.run.is_some_and(|run| run != stamp.run) || stamp.number == 0 {
            self.counts.foreign += 1;
            return;
        }
        match ledger.note(stamp.number) {
            NumberArrival::Ahead { missed } => self.counts.lost += missed,
            NumberArrival::Late => {
                self.counts.lost = self.counts.lost.saturating_sub(1);
                self.counts.out_of_order += 1;
            }
            NumberArrival::Repeated => {
                self.counts.duplicated += 1;
                return;
            }
        }
        self.counts.delivered += 1;
        let delay_ns = self.unix_ns.saturating_sub(stamp.meant_ns);
        self.delay.record(delay_ns);
        self.delay_max_ns = self.delay_max_ns.max(delay_ns);
    }

    /// The longest delay since this was asked last.
    pub(crate) fn take_delay_max_ns(&mut self) -> u64 {
        std::mem::take(&mut self.delay_max_ns)
    }

    /// The run is over: what a reader has not had is lost, or was skipped if it may be.
    pub(crate) fn settle(&mut self, ledger: &Ledger, published: u64) {
        let behind = ledger.behind(published);
        self.counts.due += ledger.due(published);
        self.counts.lost += behind;
        self.counts.without_last += u64::from(behind > 0);
    }

    /// What was passed over, and not what never came at the end, may be skipped.
    pub(crate) fn allow_skips(&mut self, behind: u64) {
        self.counts.skipped = self.counts.lost.saturating_sub(behind);
        self.counts.lost -= self.counts.skipped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(run: u32, number: u64, meant_ns: u64) -> Vec<u8> {
        let mut value = b"{\"topic\":\"a\",\"data\":\"".to_vec();
        Stamp { run, number, meant_ns }.append(80, &mut value);
        value
    }

    #[test]
    fn every_number_that_was_due_is_accounted_for() {
        for may_skip in [false, true] {
            let (mut meter, mut ledger) = (Meter::new(Some(1)), Ledger::default());
            meter.unix_ns = 2_000_000;
            ledger.expect_from(1);
            for (run, number) in [(2, 9), (1, 1), (1, 4), (1, 4), (1, 3), (1, 5)] {
                meter.note_event(&mut ledger, "message", &value(run, number, 500_000));
            }
            meter.note_event(&mut ledger, "message", b"hello");
            meter.note_event(&mut ledger, "gap", b"{\"missed\":1}");
            meter.settle(&ledger, 7);
            if may_skip {
                meter.allow_skips(2);
            }
            let counts = meter.counts;
            assert!(counts.add_up(), "{counts:?}");
            assert_eq!((counts.due, counts.delivered, counts.duplicated, counts.out_of_order), (7, 4, 1, 1));
            assert_eq!((counts.lost, counts.skipped), if may_skip { (2, 1) } else { (3, 0) });
            assert_eq!((counts.foreign, counts.unmarked, counts.gap_marks), (1, 1, 1));
            assert_eq!((counts.without_last, meter.delay.count(), meter.delay.max()), (1, 4, 1_500_000));
            assert_eq!((meter.take_delay_max_ns(), meter.take_delay_max_ns()), (1_500_000, 0));
        }
    }

    #[test]
    fn who_only_listens_takes_every_run() {
        let (mut meter, mut ledger) = (Meter::new(None), Ledger::default());
        meter.note_event(&mut ledger, "message", &value(77, 12, 0));
        meter.settle(&ledger, 0);
        assert_eq!((meter.counts.delivered, meter.counts.due, meter.counts.lost), (1, 1, 0));
    }
}
