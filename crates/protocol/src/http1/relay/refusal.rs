//! Requests that are not passed on.
//!
//! It must never repeat bytes of the peer.

use std::error::Error;
use std::fmt;

use crate::status::Status;

/// Why a request is not passed on to an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayRefusal {
    /// The status to answer with.
    pub status: Status,
    /// What is wrong, as the end of a sentence.
    pub reason: &'static str,
}

impl fmt::Display for RelayRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.status, self.reason)
    }
}

impl Error for RelayRefusal {}
