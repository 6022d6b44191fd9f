//! The record that the store keeps of each name beside its certificate: the outcome of the last attempt, and
//! when the next is due.
//!
//! It must never hold a secret: `staunch certificates` shows it.

use serde::{Deserialize, Serialize};

/// The outcome of the last attempt to get a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptOutcome {
    /// No attempt was made yet.
    #[default]
    None,
    /// The attempt brought a certificate.
    Obtained,
    /// The attempt brought none, for this reason.
    Failed(String),
}

/// The record of one name. Times are seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameRecord {
    /// URL of the directory of the authority that the record is about.
    pub directory: String,
    /// The outcome of the last attempt.
    pub outcome: AttemptOutcome,
    /// How many attempts have ended, with a certificate or without.
    pub attempts: u64,
    /// When the last attempt ended.
    pub attempted_unix_s: Option<u64>,
    /// How many of the last attempts in a row failed.
    pub failures: u32,
    /// The earliest time of the next attempt, after a failure.
    pub not_before_unix_s: Option<u64>,
    /// When the certificate is to be renewed.
    pub renew_unix_s: Option<u64>,
    /// When to ask the authority again for renewal information, which may move the renewal.
    pub ask_unix_s: Option<u64>,
}
