//! The messages of the resolver to its server, each a packet of JSON.
//!
//! No message may ask for anything: the server only hears.

use serde::{Deserialize, Serialize};

use super::lookup::Addresses;

/// A message of the resolver.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ToServer {
    /// A name leads elsewhere than it was told last, or it was not told before.
    Found(Found),
    /// A line for the log.
    Say(String),
}

/// The outcome of a lookup.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The name, with its port.
    pub(crate) name: String,
    /// Where it leads, or why it leads nowhere.
    pub(crate) outcome: Result<Addresses, String>,
}
