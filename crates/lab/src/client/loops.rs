//! What a child has still to do, and what came of what it did.
//!
//! It must never ask again what failed. A child whose peer is silent gives up: it would wait for days.

use super::fault::Fault;
use super::tally::Tally;

/// So many time-outs in a row, and a child gives up.
const TIME_OUTS_MAX: u32 = 3;

/// The loops of one child.
pub(super) struct Loops<'a> {
    /// Where what came of them is written.
    pub(super) tally: Tally<'a>,
    left: u64,
    time_outs: u32,
}

impl<'a> Loops<'a> {
    pub(super) fn new(count: u64, tally: Tally<'a>) -> Self {
        Self { tally, left: count, time_outs: 0 }
    }

    /// Whether any is left.
    pub(super) fn are_left(&self) -> bool {
        self.left > 0
    }

    /// A connection has ended, after so many bytes of an answer.
    pub(super) fn end(&mut self, outcome: Result<(), Fault>, bytes: u64) {
        self.left -= 1;
        self.tally.received(bytes);
        let Err(fault) = outcome else {
            self.time_outs = 0;
            return self.tally.answered();
        };
        self.tally.failed(fault, 1);
        self.time_outs = if fault.is_time_out() { self.time_outs + 1 } else { 0 };
        if self.time_outs == TIME_OUTS_MAX && self.left > 0 {
            self.tally.failed(Fault::NotTried, std::mem::take(&mut self.left));
        }
    }
}
