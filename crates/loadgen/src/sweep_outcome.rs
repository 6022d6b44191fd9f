//! What a sweep measured: the same load at several factors of the server's capacity, several rounds each.
//!
//! It must never average: rounds stay apart, so that their spread can be seen.

use std::time::Duration;

use crate::outcome::RunOutcome;

/// A whole sweep.
#[derive(Debug, Clone)]
pub struct SweepOutcome {
    /// What the server was found to answer at most, right answers a second.
    pub capacity_per_s: f64,
    /// Answers after more than this are late; `None`: clients waited for ever.
    pub patience: Option<Duration>,
    /// What has to be known of the sweep as a whole, each a sentence.
    pub notes: Vec<String>,
    /// What was offered, growing.
    pub points: Vec<SweepPoint>,
}

/// An offered load.
#[derive(Debug, Clone)]
pub struct SweepPoint {
    /// Offered load as a factor of the capacity.
    pub factor: f64,
    /// Offered load, requests a second.
    pub offered_per_s: f64,
    /// Each round of its own.
    pub rounds: Vec<RunOutcome>,
}
