//! What keeps an engine from starting, or from listening somewhere else later.
//!
//! It must always be a sentence for the one who wants it to.

use std::fmt;

/// Why an engine cannot start, in a sentence for the one who started it.
#[derive(Debug)]
pub struct StartError(pub(crate) String);

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}
