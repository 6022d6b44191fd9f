//! Why a server has not answered, and what its client is told of it.
//!
//! A trouble must never repeat bytes of a peer.

use std::sync::atomic::Ordering::Relaxed;
use std::{fmt, io};

use rustix::io::Errno;
use staunch_engine::{UpstreamDeadline, UpstreamLoss};
use staunch_protocol::http1::relay::RelayFault;
use staunch_tls::OutgoingFault;

use super::application::AppServer;
use super::exchange::Failure;

/// Errors of a system that has nothing left to connect with: ports or descriptors.
const NOTHING_TO_CONNECT: [i32; 3] =
    [Errno::ADDRNOTAVAIL.raw_os_error(), Errno::MFILE.raw_os_error(), Errno::NFILE.raw_os_error()];

/// Why a server has not answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trouble {
    Lost(UpstreamLoss),
    Fault(RelayFault),
    /// No keys were agreed upon with it, or what it sends cannot be opened.
    Secured(OutgoingFault),
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(formatter),
            Self::Secured(fault) => write!(formatter, "TLS: {fault}"),
            Self::Lost(UpstreamLoss::Failed(errno)) => io::Error::from_raw_os_error(*errno).fmt(formatter),
            Self::Lost(UpstreamLoss::TimedOut(UpstreamDeadline::Connect)) => {
                formatter.write_str("no connection in time (proxy_connect_timeout)")
            }
            Self::Lost(UpstreamLoss::TimedOut(UpstreamDeadline::Send)) => {
                formatter.write_str("takes nothing of a request (send_timeout)")
            }
            Self::Lost(UpstreamLoss::TimedOut(UpstreamDeadline::Receive)) => {
                formatter.write_str("no answer in time (proxy_answer_timeout)")
            }
            Self::Lost(UpstreamLoss::Overrun) => formatter.write_str("takes its request too slowly"),
            Self::Lost(UpstreamLoss::NoMemory) => {
                formatter.write_str("no memory is left for its answer (memory_budget)")
            }
            Self::Lost(UpstreamLoss::Drained) => formatter.write_str("this server ends"),
        }
    }
}

impl Trouble {
    /// Whether the server has only closed.
    pub(super) fn is_end(self) -> bool {
        match self {
            Self::Fault(fault) => matches!(fault, RelayFault::NothingCame),
            Self::Lost(loss) => matches!(loss, UpstreamLoss::Failed(_)),
            Self::Secured(_) => false,
        }
    }

    /// Whether the server may still be at work on it.
    pub(super) fn is_slow(self) -> bool {
        matches!(self, Self::Lost(UpstreamLoss::TimedOut(_)))
    }

    /// Whether the queue of a server's socket file is full (EAGAIN of connect(2)): it is at work on others.
    pub(super) fn is_full(self) -> bool {
        matches!(self, Self::Lost(UpstreamLoss::Failed(errno)) if errno == Errno::AGAIN.raw_os_error())
    }

    pub(super) fn failure(self) -> Failure {
        match self {
            _ if self.is_full() => Failure::Crowded { spread_s: 1 },
            Self::Lost(UpstreamLoss::TimedOut(UpstreamDeadline::Connect)) => Failure::Unreachable,
            Self::Lost(UpstreamLoss::TimedOut(_)) => Failure::TimedOut,
            Self::Lost(UpstreamLoss::NoMemory) => Failure::NoLink,
            Self::Lost(UpstreamLoss::Failed(errno)) if NOTHING_TO_CONNECT.contains(&errno) => Failure::NoLink,
            Self::Lost(_) | Self::Secured(_) => Failure::Unreachable,
            Self::Fault(_) if self.is_end() => Failure::Unreachable,
            Self::Fault(RelayFault::Overloaded) => Failure::Crowded { spread_s: 1 },
            Self::Fault(_) => Failure::BadAnswer,
        }
    }

    pub(super) fn count(self, server: &AppServer, has_begun: bool) {
        let counts = &server.counts;
        let count = match (self, self.failure()) {
            (_, Failure::TimedOut) => &counts.timed_out,
            (Self::Fault(RelayFault::EndedInHead | RelayFault::EndedInBody), _) => &counts.short,
            (_, Failure::BadAnswer) => &counts.broken,
            (Self::Lost(_) | Self::Secured(_), _) if has_begun => &counts.short,
            _ => &counts.unreachable,
        };
        count.fetch_add(1, Relaxed);
    }
}
