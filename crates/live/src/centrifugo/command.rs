//! Commands of a client, however they are written.
//!
//! It must never answer one.

/// A command of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The reply has the same; 0 for a command without a reply.
    pub id: u32,
    /// What is asked.
    pub ask: Ask,
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// The first command, with a token if the client has one.
    Connect(Option<String>),
    /// To read a channel.
    Subscribe(Subscription),
    /// To read it no more.
    Unsubscribe(String),
    /// A value for a channel.
    Publish(String, Published),
    /// The last updates of a channel.
    History(History),
    /// A token that follows the one of the connection.
    Refresh(String),
    /// Whether the server is there.
    Ping,
    /// A sign of life: the empty command, without a reply.
    Pong,
    /// Anything else: answered by error 108.
    Other,
}

/// A channel that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The topic.
    pub channel: String,
    /// The client has a token for the channel alone.
    pub has_token: bool,
    /// Where the client was: epoch and offset.
    pub recover: Option<(String, u64)>,
}

/// Last updates that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The topic.
    pub channel: String,
    /// So many at most; `None` for all that there are.
    pub limit: Option<usize>,
    /// Behind this epoch and offset.
    pub since: Option<(String, u64)>,
    /// The newest first.
    pub reverse: bool,
}

/// The bytes of a publication, and what is known of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// A whole document, as it stands.
    Json(Vec<u8>),
    /// Bytes, which may be JSON.
    Bytes(Vec<u8>),
}

impl Published {
    /// Bytes that it holds.
    pub fn capacity(&self) -> usize {
        match self {
            Self::Json(bytes) | Self::Bytes(bytes) => bytes.capacity(),
        }
    }
}
