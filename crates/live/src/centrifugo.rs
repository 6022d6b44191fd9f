//! Centrifugo's client protocol, version 2: commands in, replies out, as JSON or as Protobuf.
//!
//! It owns the words on the wire (`client.proto`, after github.com/centrifugal/protocol; as JSON one command
//! or reply per line). It must never keep what a client has subscribed to. Pushes of updates are a form, made
//! by the hub.

mod command;
pub(crate) mod fields;
mod json;
mod protobuf;
mod reply;

use staunch_protocol::websocket::Opcode;

pub use command::{Ask, Command, History, Published, Subscription};
pub use reply::{ClientError, Reply};

use crate::name::TopicName;
use crate::update::Update;
use crate::version::Version;
use reply::VERSION;

/// In which of two ways commands and replies are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Lines of text.
    Json,
    /// Bytes, each message with its length before it.
    Protobuf,
}

impl Language {
    /// Reads the commands of a message.
    ///
    /// # Errors
    /// What is no command, or too many: the connection is closed with code 3501 (bad request).
    pub fn read_commands(self, message: &[u8]) -> Result<Vec<Command>, ClientError> {
        match self {
            Self::Json => json::read_commands(message),
            Self::Protobuf => protobuf::read_commands(message),
        }
    }

    /// Appends a reply to those that go in the same message.
    pub fn append_reply(self, id: u32, reply: &Reply<'_>, message: &mut Vec<u8>) {
        match self {
            Self::Json => json::append_reply(id, reply, message),
            Self::Protobuf => protobuf::append_reply(id, reply, message),
        }
    }

    /// The first message where the URL says what is read: from where, and after how many milliseconds to come
    /// back when the connection is cut.
    pub fn welcome(self, from: Version, retry_ms: u64) -> Vec<u8> {
        let Version { epoch, number } = from;
        let position = format!("\"epoch\":\"{epoch}\",\"offset\":{number},\"retry\":{retry_ms}");
        match self {
            Self::Json => {
                format!("{{\"push\":{{\"connect\":{{\"version\":\"{VERSION}\",{position}}}}}}}").into()
            }
            Self::Protobuf => protobuf::push_of_welcome(&format!("{{{position}}}")),
        }
    }

    /// The push of an update, or of the patch that leads to it.
    pub(crate) fn push(self, update: &Update, patch: Option<&[u8]>) -> Vec<u8> {
        match self {
            Self::Json => json::push(update, patch),
            Self::Protobuf => protobuf::push_of_update(update.topic().as_str(), update, patch),
        }
    }

    /// The push that tells a reader how much of a channel it missed.
    pub(crate) fn missed(self, channel: &TopicName, count: u64, at_least: bool) -> Vec<u8> {
        let at_least = if at_least { ",\"at_least\":true" } else { "" };
        let data = format!("{{\"missed\":{count}{at_least}}}");
        match self {
            Self::Json => json::push_of_message(channel.as_str(), &data),
            Self::Protobuf => protobuf::push_of_message(channel.as_str(), &data),
        }
    }

    /// The empty command, which is a sign of life, as either end says it.
    pub fn sign_of_life(self) -> &'static [u8] {
        match self {
            Self::Json => b"{}",
            Self::Protobuf => &[0],
        }
    }

    /// The kind of messages of a WebSocket that carry it.
    pub fn opcode(self) -> Opcode {
        match self {
            Self::Json => Opcode::Text,
            Self::Protobuf => Opcode::Binary,
        }
    }

    /// The sub-protocol by which it is asked for.
    pub fn sub_protocol(self) -> &'static str {
        match self {
            Self::Json => "centrifuge-json",
            Self::Protobuf => "centrifuge-protobuf",
        }
    }
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
