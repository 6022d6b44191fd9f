//! What a running worker can be told.
//!
//! It must never be needed for a request: orders are rare, and are obeyed between two completions.

use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;

use staunch_protocol::Timeouts;

use crate::clients::ClientPolicy;
use crate::pressure::Pressure;

/// How the connections of a worker come to their end.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    /// After so long what is left is closed, whatever it is.
    pub cap_ms: u32,
    /// Connections without a request under way are closed when they have been idle for so long since the
    /// order. `None`: their keep-alive time goes on as before.
    pub idle_ms: Option<u32>,
    /// Another process accepts at the same sockets: the connections in their queues are left to it. Else
    /// they are served first.
    pub leave_queues: bool,
}

/// Dropped when a worker no longer accepts anywhere.
pub(crate) type Left = Sender<u16>;

/// Name of an address that is listened at, the same for all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ListenerName {
    pub(crate) number: u32,
    /// Whether TLS is spoken there.
    pub(crate) is_secured: bool,
}

impl ListenerName {
    /// The device at which khttpd hands connections over: no address, so no number of one.
    pub(crate) const HANDOVER: Self = Self { number: u32::MAX, is_secured: false };
}

/// An order to a worker.
#[derive(Debug)]
pub(crate) enum Order {
    /// Accept no more, bring to its end what is under way, and stop.
    Drain(Drain, Left),
    /// Other deadlines from now on, also of the connections there are.
    Timeouts(Timeouts),
    /// Other rules for clients from now on.
    Clients(ClientPolicy),
    /// Another way to give way from now on.
    Pressure(Pressure),
    /// Whether connections may begin with the preface of HTTP/2 from now on.
    Http2(bool),
    /// Listen here too.
    Listen(ListenerName, OwnedFd),
    /// Serve what is in the queues of these listeners, then give them up; or give them up `at_once`, where
    /// the queues are somebody else's too.
    Leave { name: ListenerName, at_once: bool },
    /// Accept anew at every listener: another process no longer does, and what it was woken for may still
    /// wait.
    LookAgain,
    /// Say that the worker is alive, by its index.
    Answer(Sender<u16>),
}
