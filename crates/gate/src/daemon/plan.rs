//! What the daemon is told at its start.

use std::time::Duration;

use crate::controller::Settings;
use crate::program::{Prefix, Reject, Way};

/// What is to be protected, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Interfaces by name.
    pub interfaces: Vec<String>,
    /// TCP ports.
    pub ports: Vec<u16>,
    /// How the program is put on an interface.
    pub way: Way,
    /// What becomes of a SYN that is shed.
    pub reject: Reject,
    /// Only count.
    pub dry_run: bool,
    /// Clients that always come in.
    pub allow: Vec<Prefix>,
    /// Clients that never do.
    pub deny: Vec<Prefix>,
    /// Addresses to which a SYN is judged; none: those of the host, followed while they change.
    pub addresses: Vec<Prefix>,
    /// For how long, at most, the kernel may leave packets lie while too many come; zero: the interfaces'
    /// settings are left alone.
    pub coalescing: Duration,
    /// What the controller is told.
    pub settings: Settings,
    /// Whether an interface that went away may be waited for: not by a process that gave its rights up.
    pub comes_back: bool,
}
