//! Which way to the network a run takes, and why.
//!
//! It must never be asked on the way: once a run, before its threads start.

use staunch_netio::uring::{self, Features};

use crate::fault::Fault;
use crate::plan::IoChoice;

/// What a thread makes its backend from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Backend {
    Uring(Features),
    Epoll,
}

impl Backend {
    /// Tries what was chosen.
    ///
    /// # Errors
    /// When io_uring was asked for and does not work here, with the reason.
    pub(crate) fn choose(choice: IoChoice) -> Result<Self, Fault> {
        match choice {
            IoChoice::Epoll => Ok(Self::Epoll),
            IoChoice::Auto => Ok(uring::probe().map_or(Self::Epoll, Self::Uring)),
            IoChoice::Uring => uring::probe()
                .map(Self::Uring)
                .map_err(|refusal| Fault::new(format!("io_uring does not work here: {refusal}"))),
        }
    }

    /// The name that reports give it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uring(_) => "io_uring",
            Self::Epoll => "epoll",
        }
    }
}
