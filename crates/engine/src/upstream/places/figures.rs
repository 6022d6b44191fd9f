//! Figures of a server's places, for people.
//!
//! Figures must never decide anything.

use crate::upstream::law::LawReason;

/// Figures of a server's places, for people.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PlacesFigures {
    /// Requests at once; `u32::MAX` for any number.
    pub limit: u32,
    /// Requests in work.
    pub in_work: u32,
    /// Requests in line.
    pub waiting: u32,
    /// Answers a second at the limit; 0 while it is not known.
    pub rate: f64,
    /// Seconds that a request is in work; 0 while it is not known.
    pub in_work_s: f64,
    /// Requests refused since the start, because they could not be answered in time.
    pub refused: u64,
    /// Answers since the start that nobody waited for any more.
    pub unanswered: u64,
}

/// A moment in the life of a server's places, for people.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacesStep {
    /// The moment, in milliseconds of the workers' clock.
    pub at_ms: u64,
    /// The figures then.
    pub figures: PlacesFigures,
    /// The reason of the law's last step; `None` where no law sets the limit.
    pub reason: Option<LawReason>,
}
