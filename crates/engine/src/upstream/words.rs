//! What is said of a connection that a worker makes for its handler: its name, its deadlines, what happens to
//! it.
//!
//! It must never hold anything.

/// Names a connection that a handler has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Upstream {
    pub(super) index: u32,
    /// Which use of the index.
    pub(super) generation: u32,
}

/// How long things may take on a connection that a handler has made, in milliseconds.
///
/// None of them runs while the handler holds the connection: then somebody else owes progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamTimeouts {
    /// Until it is connected.
    pub connect_ms: u32,
    /// While something is to be sent: between two steps of progress.
    pub send_ms: u32,
    /// While nothing is to be sent: until something comes, or the handler sends again.
    pub receive_ms: u32,
}

/// Five seconds to connect, a minute for the rest, as nginx has by default.
impl Default for UpstreamTimeouts {
    fn default() -> Self {
        Self { connect_ms: 5_000, send_ms: 60_000, receive_ms: 60_000 }
    }
}

/// Which deadline of [`UpstreamTimeouts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamDeadline {
    /// `connect_ms`.
    Connect,
    /// `send_ms`.
    Send,
    /// `receive_ms`.
    Receive,
}

/// What has happened on a connection that a handler has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamEvent<'a> {
    /// The upstream is connected.
    Connected,
    /// Bytes came, at least one.
    Received(&'a [u8]),
    /// There is room again to send, after there was none.
    Room,
    /// The peer sends no more. It may still read: who has nothing to send closes now.
    Ended,
    /// The connection is gone, and its name with it. Not told of one that the handler or the end of its
    /// exchange has closed.
    Lost(UpstreamLoss),
}

/// Why a connection was lost that a handler has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamLoss {
    /// The connection could not be made, or has failed: an error number of the system, such as ECONNREFUSED.
    Failed(i32),
    /// A deadline has passed.
    TimedOut(UpstreamDeadline),
    /// The handler has sent far more than there was room for.
    Overrun,
    /// The worker had no memory left for what it holds.
    NoMemory,
    /// The worker comes to its end, and no exchange is left.
    Drained,
}
