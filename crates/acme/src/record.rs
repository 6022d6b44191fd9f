//! What is kept of a name beside its certificate: what came of the last attempt, and when the next is due.
//!
//! It must never hold a secret: it is shown.

use serde::{Deserialize, Serialize};

/// What came of the last attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptOutcome {
    /// None was made yet.
    #[default]
    None,
    /// A certificate.
    Obtained,
    /// No certificate, and why.
    Failed(String),
}

/// See the module's text. Times are seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameRecord {
    /// The authority that it is about: the address of its directory.
    pub directory: String,
    /// The last attempt.
    pub outcome: AttemptOutcome,
    /// Attempts that came to an end, whatever it was.
    pub attempts: u64,
    /// When the last one ended.
    pub attempted_unix_s: Option<u64>,
    /// Attempts in a row that came to nothing.
    pub failures: u32,
    /// No attempt before then.
    pub not_before_unix_s: Option<u64>,
    /// When the certificate is to be renewed.
    pub renew_unix_s: Option<u64>,
    /// When the authority is to be asked again when that is.
    pub ask_unix_s: Option<u64>,
}
