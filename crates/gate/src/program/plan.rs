//! What the program is to do, and where.
//!
//! It owns the wishes. It must never try whether they can be had.

use super::prefix::Prefix;

/// How the program gets at the frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Way {
    /// Native, and generic where the driver cannot.
    #[default]
    Auto,
    /// In the driver, before anything is allocated.
    Native,
    /// In the network stack: what is shed has cost an allocation, but not a connection.
    Generic,
}

/// What a SYN that was shed gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reject {
    /// Nothing: the sender tries again after a second.
    #[default]
    Drop,
    /// A reset: the sender knows at once.
    Reset,
    /// A SYN-ACK with a cookie: who answers it is let in by the kernel, provided that it let in a SYN to the
    /// same listener within the last two minutes. Window scaling and selective acknowledgement are lost.
    Cookie,
}

/// What the program is to do, and where.
#[derive(Debug, Clone, Default)]
pub struct Attach<'a> {
    /// The interface, in the network namespace of the calling thread.
    pub interface: &'a str,
    /// Ports that are protected, each once and with a line of its own: orders are given to a line, by its
    /// place here.
    pub ports: &'a [u16],
    /// How it gets at the frames.
    pub way: Way,
    /// What a SYN that was shed gets.
    pub reject: Reject,
    /// Count what would be shed, and let it in.
    pub dry_run: bool,
    /// Clients that are always let in.
    pub allow: &'a [Prefix],
    /// Clients that never are, unless they are on the other list.
    pub deny: &'a [Prefix],
    /// The addresses to which a SYN is judged; none: those of the host. A SYN to any other passes.
    pub addresses: &'a [Prefix],
    /// Whether connections are watched: without, no client becomes known.
    pub tracker: bool,
}
