//! Which part of a schedule a thread has.
//!
//! It must never know what is divided.

use crate::Fault;

/// A part of several equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which one, from 0.
    pub part: u32,
    /// Of how many.
    pub parts: u32,
}

impl Share {
    /// The share of a thread that has the whole schedule.
    pub const WHOLE: Self = Self { part: 0, parts: 1 };

    pub(super) fn check(self) -> Result<(), Fault> {
        if self.part < self.parts {
            return Ok(());
        }
        Err(Fault::new(format!("there is no part {} of {}: parts are counted from 0", self.part, self.parts)))
    }
}
