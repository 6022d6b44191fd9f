//! The signals a server obeys, as something that can be waited for beside others.
//!
//! It must never do anything when a signal comes but note it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    End,
    Reload,
    Reopen,
    Upgrade,
}

/// All signals that ask for something.
const SIGNALS: [i32; 6] = [SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2];

/// Signals from now on.
pub(super) struct Signals(SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    /// From now on signals wait to be asked for. A log that reaches the limit of a file's size (SIGXFSZ) ends
    /// nothing: writing fails.
    pub(super) fn new() -> io::Result<Self> {
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        let (read, write) = UnixStream::pair()?;
        SignalDelivery::with_pipe(read, write, SignalOnly, SIGNALS).map(Self)
    }

    /// Readable when `wishes` has something to tell.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }

    /// What was asked for since the last call. Never waits.
    pub(super) fn wishes(&mut self) -> Vec<Wish> {
        let wish = |signal| match signal {
            SIGHUP => Wish::Reload,
            SIGUSR1 => Wish::Reopen,
            SIGUSR2 => Wish::Upgrade,
            _ => Wish::End,
        };
        self.0.pending().map(wish).collect()
    }
}
