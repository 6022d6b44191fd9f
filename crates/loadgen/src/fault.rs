//! What keeps a plan from being carried out, in one sentence for the person who wrote it.
//!
//! It must never describe what a server did: that is counted, not reported as a fault.

use std::fmt;

/// A sentence that names the fault and its place. Shown as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(String);

impl Fault {
    /// From a sentence, without a full stop at its end.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}
