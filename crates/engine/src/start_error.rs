//! What keeps an engine from starting, or from listening somewhere else later.
//!
//! It must always be a sentence for the one who wants it to.

use std::fmt;

/// Why an engine cannot start, in a sentence for the one who started it.
#[derive(Debug)]
pub enum StartError {
    /// The settings ask for what cannot be.
    Configuration(String),
    /// The system refuses.
    System(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Configuration(text) | Self::System(text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for StartError {}
