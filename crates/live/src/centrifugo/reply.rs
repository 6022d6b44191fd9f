//! What is said to commands, however it is written.
//!
//! It must never write one.

use crate::update::Update;
use crate::version::Version;

/// What servers are asked for their version, and clients are told.
pub(super) const VERSION: &str = "staunch";

/// What is said to a command.
#[derive(Debug, Clone, Copy)]
pub enum Reply<'a> {
    /// To `connect`: the client, how often the server gives a sign of life, and in how many seconds a token
    /// is to be shown anew.
    Connected {
        /// The name of the client.
        client: &'a str,
        /// Seconds between signs of life.
        ping_s: u32,
        /// Seconds that the token is good for; `None` for ever.
        expires_in_s: Option<u64>,
    },
    /// To `refresh`.
    Refreshed {
        /// The name of the client.
        client: &'a str,
        /// As above.
        expires_in_s: Option<u64>,
    },
    /// To `subscribe`: from where the channel is read. What the client lacked follows as pushes, each of
    /// which moves its place. `recovered` tells whether these are all, if it asked to recover.
    Subscribed {
        /// The place in the numbering.
        from: Version,
        /// Whether all that was missed follows.
        recovered: Option<bool>,
    },
    /// To `history`.
    History {
        /// That of all that there is.
        version: Version,
        /// Updates of the channel.
        publications: &'a [&'a Update],
    },
    /// To `unsubscribe`.
    Unsubscribed,
    /// To `publish`.
    Published,
    /// To `ping`.
    Ping,
    /// Why not, to whatever was asked.
    Refused(ClientError),
}

/// An error of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientError {
    /// Its number.
    pub code: u32,
    /// Its name.
    pub message: &'static str,
    /// Whether trying again may help.
    pub temporary: bool,
}

impl ClientError {
    /// The server failed, or has no room now.
    pub const INTERNAL: Self = Self { code: 100, message: "internal server error", temporary: true };
    /// No such channel can be.
    pub const UNKNOWN_CHANNEL: Self = Self { code: 102, message: "unknown channel", temporary: false };
    /// The token does not grant it.
    pub const PERMISSION_DENIED: Self = Self { code: 103, message: "permission denied", temporary: false };
    /// A channel that is subscribed to already.
    pub const ALREADY_SUBSCRIBED: Self = Self { code: 105, message: "already subscribed", temporary: false };
    /// More channels than allowed, or more bytes.
    pub const LIMIT_EXCEEDED: Self = Self { code: 106, message: "limit exceeded", temporary: false };
    /// A command that says nothing that is understood.
    pub const BAD_REQUEST: Self = Self { code: 107, message: "bad request", temporary: false };
    /// A command that is not served here.
    pub const NOT_AVAILABLE: Self = Self { code: 108, message: "not available", temporary: false };
    /// The token's time is over.
    pub const TOKEN_EXPIRED: Self = Self { code: 109, message: "token expired", temporary: false };
    /// Too many at once: later.
    pub const TOO_MANY_REQUESTS: Self = Self { code: 111, message: "too many requests", temporary: true };
    /// Offsets of another epoch.
    pub const UNRECOVERABLE: Self = Self { code: 112, message: "unrecoverable position", temporary: false };
}
