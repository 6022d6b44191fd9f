//! The messages between a server and its agent, each a packet of JSON.
//!
//! No message may carry a private key: certificates and keys pass by the store alone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::record::NameRecord;

/// A kind of challenge: how the authority checks that a name is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeKind {
    /// The authority sends a request in plain HTTP (RFC 8555, section 8.3).
    Http01,
    /// The authority opens a TLS handshake (RFC 8737).
    TlsAlpn01,
}

impl ChallengeKind {
    /// The kind's name in ACME.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

/// A challenge that the server has to answer while an order is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// How the authority will check it.
    pub kind: ChallengeKind,
    /// The host name or address that is to be proved.
    pub name: String,
    /// The challenge's token: with HTTP-01 the last segment of the path that is requested.
    pub token: String,
    /// The key authorization, which is the answer (RFC 8555, section 8.1).
    pub authorization: String,
}

/// The agent's settings: which names get certificates, and from which authority.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wishes {
    /// URL of the authority's directory.
    pub directory: String,
    /// File with the root certificates (PEM) by which the authority itself is trusted; without it those of
    /// the system.
    pub roots: Option<PathBuf>,
    /// Mail address that the authority may write to.
    pub contact: Option<String>,
    /// External account binding (RFC 8555, section 7.3.4): the key id, and the file with the key.
    pub binding: Option<(String, PathBuf)>,
    /// The profile of certificates to ask for, by the authority's name for it.
    pub profile: Option<String>,
    /// Host names and IP addresses, each of which gets a certificate of its own.
    pub names: Vec<String>,
    /// Kinds of challenges that this server can answer, the preferred first.
    pub kinds: Vec<ChallengeKind>,
}

/// A message from a server to its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// The settings from now on. Sent at the start and after each reload.
    Configure(Wishes),
    /// The server now answers the challenges of the [`ToServer::Present`] with this number.
    Presented {
        /// The number that [`ToServer::Present`] gave.
        number: u64,
    },
}

/// The state of a name: its certificate, and its last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameState {
    /// The host name or IP address.
    pub name: String,
    /// Last second of the certificate's validity, since 1970; `None` without a certificate.
    pub expires_unix_s: Option<u64>,
    /// The outcome of the last attempt, and when the next is due.
    pub record: NameRecord,
}

/// A message from an agent to its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToServer {
    /// The server is to answer these challenges from now on, and no others.
    Present {
        /// By which the answer is known: one that comes late must not be taken for that to a later message.
        number: u64,
        /// The challenges that are to be answered.
        challenges: Vec<Challenge>,
    },
    /// A line for the log.
    Say(String),
    /// The state of one name, sent whenever it has changed.
    State(Box<NameState>),
    /// An attempt to get a certificate has ended.
    Attempted {
        /// Whether it brought a certificate.
        is_success: bool,
    },
}
