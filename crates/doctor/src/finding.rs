//! What one check found.
//!
//! It owns the five states. It must never know how a state is shown.

use serde::Serialize;

/// How it stands with one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Costs requests or connections as it is.
    Matters,
    /// Would be better otherwise.
    Advice,
    /// Right as it is.
    Ok,
    /// There, but cannot be read or understood.
    Unknown,
    /// This host has no such thing.
    NotHere,
}

impl State {
    /// The state in the words of a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Matters => "matters",
            Self::Advice => "advice",
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::NotHere => "not here",
        }
    }
}

/// What one check found on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the setting; of an interface's, with the interface behind a blank.
    pub name: String,
    /// The part of the host it belongs to.
    pub group: &'static str,
    /// How it stands.
    pub state: State,
    /// What is set or seen now; empty if there is none.
    pub value: String,
    /// What it should be; empty if it is right.
    pub advice: String,
    /// Why, in one or two sentences.
    pub reason: String,
    /// Where that is written.
    pub source: &'static str,
    /// The value to write to the sysctl of this name, if `--apply` is to do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysctl: Option<String>,
}
