//! What an engine is built from.
//!
//! It must never hold what is found out at the start: that is asked of the host.

use staunch_netio::ListenPlace;
use staunch_protocol::Timeouts;

use crate::clients::ClientPolicy;
use crate::line_queue::Notice;
use crate::pressure::Pressure;
use crate::secured::TlsSettings;

/// Which way to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoChoice {
    /// The one the evidence speaks for, of those that work here.
    Auto,
    /// io_uring, or an error that says what stands in its way.
    Uring,
    /// epoll, edge-triggered.
    Epoll,
}

/// What an engine is built from.
#[derive(Clone)]
pub struct Settings {
    /// Where to listen in plain text. Port 0 takes a free one.
    pub listen: Vec<ListenPlace>,
    /// Mode of socket files, which says who may connect.
    pub socket_mode: u32,
    /// Where TLS is spoken, and by what; without it nowhere.
    pub tls: Option<TlsSettings>,
    /// For each worker the processor it is bound to, or none.
    pub workers: Vec<Option<usize>>,
    /// Which way to the network.
    pub io: IoChoice,
    /// Most connections at a time, all workers together; `None` for what descriptors or memory allow.
    pub connections_max: Option<u64>,
    /// Descriptors that are kept for connections which handlers make ([`crate::Handler::upstreams_max`]), all
    /// workers together.
    pub upstream_descriptors: u64,
    /// How much peers may make it hold, all workers together, in bytes; `None` for a share of memory.
    pub memory_budget_bytes: Option<u64>,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// Rules for clients.
    pub clients: ClientPolicy,
    /// Whether connections may begin with the preface of HTTP/2 (RFC 9113, section 3.3).
    pub http2: bool,
    /// When to give way.
    pub pressure: Pressure,
    /// Where lines for the operator go.
    pub notice: Notice,
}
