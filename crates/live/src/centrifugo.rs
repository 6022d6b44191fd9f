//! Centrifugo's JSON client protocol, version 2: commands in, replies out.
//!
//! It owns the words on the wire (github.com/centrifugal/protocol, `client.proto`, as JSON, one command or
//! reply per line). It must never keep what a client has subscribed to. Pushes of updates are a form, made by
//! the hub.

mod command;
mod reply;

pub use command::{Ask, Command, History, Subscription, read_commands};
pub use reply::{connected, done, history, refreshed, refused, subscribed, welcome};

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

/// Why a connection is closed, with codes of Centrifugo's own: clients come back after 3000 to 3499, and stay
/// away after 3500 to 3999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnect {
    /// The code of the close frame.
    pub code: u16,
    /// The text behind the code.
    pub reason: &'static str,
}

impl Disconnect {
    /// The token's time is over.
    pub const EXPIRED: Self = Self { code: 3005, reason: "connection expired" };
    /// A sign of life was not answered.
    pub const NO_PONG: Self = Self { code: 3012, reason: "no pong" };
    /// More commands than are kept wait for their turn.
    pub const TOO_MANY_REQUESTS: Self = Self { code: 3013, reason: "too many requests" };
    /// A token that does not hold.
    pub const INVALID_TOKEN: Self = Self { code: 3500, reason: "invalid token" };
    /// What came is no command, or out of order.
    pub const BAD_REQUEST: Self = Self { code: 3501, reason: "bad request" };
    /// The client has said nothing.
    pub const STALE: Self = Self { code: 3502, reason: "stale" };
}
