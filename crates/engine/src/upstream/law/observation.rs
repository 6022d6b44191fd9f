//! An observation of a server: the input of the law.

/// Counts of one server since the observation before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Observation {
    /// Seconds since the observation before.
    pub interval_s: f64,
    /// Answers that were complete.
    pub answers: u32,
    /// Seconds for which these were in work, added up.
    pub in_work_s: f64,
    /// The squares of these seconds, added up.
    pub in_work_s_squared: f64,
    /// Requests in work now.
    pub in_work: u32,
    /// Whether a request waited for its turn at any time.
    pub was_full: bool,
    /// Whether a request was refused because too many waited.
    pub was_shedding: bool,
}
