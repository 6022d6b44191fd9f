//! What a server and its agent tell each other: one message a packet, in JSON.
//!
//! It must never carry a key: certificates and keys are in the store.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::record::NameRecord;

/// A kind of challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeKind {
    /// A request in plain HTTP (RFC 8555, section 8.3).
    Http01,
    /// A handshake (RFC 8737).
    TlsAlpn01,
}

impl ChallengeKind {
    /// Its name in ACME.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

/// What is to be answered, when the authority asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// How it will ask.
    pub kind: ChallengeKind,
    /// The host name or address that is to be proved.
    pub name: String,
    /// The last part of the path it will ask for.
    pub token: String,
    /// The answer (RFC 8555, section 8.1: the key authorization).
    pub authorization: String,
}

/// What the agent is to look after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wishes {
    /// The authority: the address of its directory.
    pub directory: String,
    /// Certificates (PEM) that are trusted to say who the authority is; the system's if there is no such
    /// file.
    pub roots: Option<PathBuf>,
    /// Whom the authority may write to.
    pub contact: Option<String>,
    /// The account that the authority knows already: its name there, and the file with the key for it.
    pub binding: Option<(String, PathBuf)>,
    /// The kind of certificate, by the authority's own names.
    pub profile: Option<String>,
    /// Names and addresses, each of which gets a certificate of its own.
    pub names: Vec<String>,
    /// How it can be proved that they are ours, the preferred first.
    pub kinds: Vec<ChallengeKind>,
}

/// What a server tells its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// From now on these are looked after. May be told again at any time.
    Configure(Wishes),
    /// The challenges told last are answered.
    Presented,
}

/// How a name stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameState {
    /// The name.
    pub name: String,
    /// The last second of its certificate, since 1970, if there is one.
    pub expires_unix_s: Option<u64>,
    /// What came of the last attempt, and when the next is due.
    pub record: NameRecord,
}

/// What an agent tells its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToServer {
    /// These are to be answered from now on, and no others.
    Present(Vec<Challenge>),
    /// A line for the log.
    Say(String),
    /// How a name stands now.
    State(Box<NameState>),
    /// So many attempts were made since it was told last, by outcome.
    Attempted {
        /// Whether there was a certificate at the end.
        is_success: bool,
    },
}
