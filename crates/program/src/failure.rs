//! Why a command ends without having done its work, and the code that its process ends with.

use std::fmt;

/// Exit code for a configuration that cannot be used (`EX_CONFIG` of sysexits.h).
pub const CODE_CONFIGURATION: u8 = 78;
/// Exit code for a command that was called wrongly.
const CODE_USAGE: u8 = 2;
/// Exit code for a missing right (`EX_NOPERM` of sysexits.h).
pub const CODE_NO_RIGHT: u8 = 77;
/// Exit code for what went wrong on the way.
const CODE_FAILURE: u8 = 1;

/// Why a command ends, and with which code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code of the process.
    pub code: u8,
    /// Sentences for the one who called it, one per line.
    pub text: String,
}

impl Failure {
    /// The command line is to blame.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { code: CODE_USAGE, text: text.into() }
    }

    /// The configuration is to blame.
    pub fn configuration(text: impl Into<String>) -> Self {
        Self { code: CODE_CONFIGURATION, text: text.into() }
    }

    /// A right is missing.
    pub fn no_right(text: impl Into<String>) -> Self {
        Self { code: CODE_NO_RIGHT, text: text.into() }
    }
}

/// A failure on the way, which is nobody's in particular.
impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { code: CODE_FAILURE, text }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}
