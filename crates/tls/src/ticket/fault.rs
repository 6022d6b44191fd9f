//! Why keys of tickets are refused, in sentences to which the path of a file is added.
//!
//! It must never show anything of a key.
use std::fmt;

use crate::limits::TICKET_FILES_MAX;

/// Why keys are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketFault {
    /// The file in that place (from 0) is neither 80 nor 48 bytes long.
    Length(usize),
    /// The file in that place has the name of a key before it.
    Twice(usize),
    /// There is no file, or there are more than 16.
    Count(usize),
    /// What the process before has left are no keys.
    Handed,
    /// The system gives no random numbers.
    Random,
}

impl TicketFault {
    /// The place of the file that is to blame, from 0.
    #[must_use]
    pub fn place(&self) -> Option<usize> {
        match self {
            Self::Length(place) | Self::Twice(place) => Some(*place),
            Self::Count(_) | Self::Handed | Self::Random => None,
        }
    }
}

impl fmt::Display for TicketFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(_) => {
                f.write_str("a file of 80 bytes is expected (`openssl rand 80`), or one of 48")
            }
            Self::Twice(_) => f.write_str("its first 16 bytes, the key's name, are those of another file"),
            Self::Count(count) => {
                write!(f, "{count} files with ticket keys; there may be 1 to {TICKET_FILES_MAX}")
            }
            Self::Handed => f.write_str("the process before this one left no keys in a form known here"),
            Self::Random => f.write_str("the system gives no random numbers"),
        }
    }
}

impl std::error::Error for TicketFault {}
