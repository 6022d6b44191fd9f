//! Whether the server speaks before its clients do, as those of mail do.
//!
//! It says so, and changes nothing else: who waits for a greeting has sent nothing, and waits all the same.

use super::history::History;

/// What is looked at.
const LOOK_NS: u64 = 1_000_000_000;
/// Fewer beginnings say nothing.
const COUNT_LEAST: u64 = 20;
/// A server speaks first if it did so on this share of connections, until it did on fewer than the second.
const SHARES: (f64, f64) = (0.5, 0.25);

/// What is known of the server's manners.
#[derive(Debug, Default)]
pub(crate) struct Greeting {
    /// The server speaks first.
    pub is_first: bool,
}

impl Greeting {
    /// Takes a tick in.
    pub(crate) fn see(&mut self, history: &History) {
        let last = history.last(LOOK_NS);
        if last.begun < COUNT_LEAST {
            return;
        }
        let share = last.spoken as f64 / last.begun as f64;
        self.is_first = share >= if self.is_first { SHARES.1 } else { SHARES.0 };
    }
}
