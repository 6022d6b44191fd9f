//! What a run is to do: where, by which lanes, for how long.
//!
//! It must never open anything: it is data, made by the command line or by a file.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use staunch_netio::Address;

use crate::flood::FloodPlan;
use crate::mix::MixPlan;
use crate::probe::ProbePlan;
use crate::schedule::{Arrivals, Profile};

/// A whole run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command line, as it can be typed again; for the reports.
    pub command: String,
    /// The target as it was given; for the reports.
    pub target: String,
    /// Where all lanes connect to.
    pub address: Address,
    /// Settings of TLS; `None` for a plain connection.
    pub tls: Option<TlsPlan>,
    /// Addresses to connect from, in turn; empty: the kernel chooses.
    pub sources: Vec<IpAddr>,
    /// What is done, all at the same time.
    pub lanes: Vec<LanePlan>,
    /// How long requests are offered; `None`: until stopped.
    pub duration: Option<Duration>,
    /// A thread per element; `Some` pins it to that processor.
    pub threads: Vec<Option<usize>>,
    /// Which way to the network.
    pub io: IoChoice,
    /// From which all randomness comes: the same seed offers the same requests at the same times.
    pub seed: u64,
    /// Samples the server's side, on the same machine.
    pub probe: Option<ProbePlan>,
}

impl Plan {
    /// Whether the run may be over before its duration is: every lane has an end of its own.
    pub fn ends_by_itself(&self) -> bool {
        self.lanes.iter().all(LanePlan::ends_by_itself)
    }

    /// Whether the run is over when its main lane is: nothing else says how long it is.
    pub(crate) fn ends_with_main(&self) -> bool {
        self.duration.is_none() && self.lanes.first().is_some_and(LanePlan::ends_by_itself)
    }
}

impl LanePlan {
    /// Whether the lane has an end of its own: so many requests, or those of a trace.
    pub fn ends_by_itself(&self) -> bool {
        match &self.kind {
            LaneKind::Closed { requests, .. } => requests.is_some(),
            LaneKind::Open { arrivals, .. } => matches!(arrivals, Arrivals::Trace(_)),
            _ => false,
        }
    }
}

/// TLS with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsPlan {
    /// Name or address of the server: asked for (SNI), and looked for in its certificate.
    pub server: String,
    /// Whose certificates are believed.
    pub trust: TlsTrust,
    /// Whether new connections resume the session of one before them, as browsers do.
    pub resumes: bool,
}

/// Whose certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TlsTrust {
    /// Certificates signed by the authorities that this system trusts.
    #[default]
    System,
    /// Certificates signed by the authorities in this file (PEM), and no others.
    File(PathBuf),
    /// All: neither name nor authority is looked at.
    Anything,
}

/// Which way to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IoChoice {
    /// io_uring where it works, else epoll.
    #[default]
    Auto,
    /// io_uring or nothing.
    Uring,
    /// By `epoll(7)`.
    Epoll,
}

/// The work of a lane.
#[derive(Debug, Clone)]
pub struct LanePlan {
    /// Its name, unique in the run.
    pub name: String,
    /// What it does.
    pub kind: LaneKind,
    /// Which requests it sends.
    pub mix: MixPlan,
    /// How long a client waits from the intended start of its request before it gives up. `None`: for ever.
    pub patience: Option<Duration>,
    /// Right answers that took longer count as late. `None`: as `patience`.
    pub late_after: Option<Duration>,
    /// Connections are closed by a reset and leave nothing behind in the kernel.
    pub reset_on_close: bool,
}

/// The work of a lane.
#[derive(Debug, Clone)]
pub enum LaneKind {
    /// Each connection sends its next request when it has the answer to the last.
    Closed {
        /// How many connections at a time.
        connections: u32,
        /// How many requests a connection sends ahead of the answers; 1 is none.
        pipeline: u32,
        /// A connection is closed after so many; 1 is a connection per request.
        requests_per_connection: Option<u32>,
        /// The lane ends after so many requests, all connections together.
        requests: Option<u64>,
    },
    /// Requests start when the schedule says so, whatever the server does.
    Open {
        /// How the starts are spread.
        arrivals: Arrivals,
        /// How many a second.
        profile: Profile,
        /// What a request travels on.
        slots: SlotPlan,
    },
    /// Connections that send their request's head byte by byte.
    SlowHeaders {
        /// How many at a time; one that ends is replaced.
        connections: u32,
        /// Pause between two bytes.
        interval: Duration,
    },
    /// Connections that send a request's body byte by byte.
    SlowBody {
        /// How many at a time; one that ends is replaced.
        connections: u32,
        /// Pause between two bytes.
        interval: Duration,
        /// The announced length in bytes.
        length_bytes: u64,
    },
    /// Connections that read their answer slowly.
    SlowReader {
        /// How many at a time; one that ends is replaced.
        connections: u32,
        /// Pause between two reads of one buffer.
        interval: Duration,
    },
    /// Connections that send nothing, or one request, and are held.
    Hold {
        /// How many are to be held.
        connections: u32,
        /// How many a second are begun; `None`: as fast as the server takes them.
        open_per_s: Option<f64>,
        /// Whether each sends one request first, so that the server sees a kept connection.
        request_first: bool,
    },
    /// Raw SYN segments with forged sources.
    Flood(FloodPlan),
}

/// What a request of an open lane travels on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotPlan {
    /// A connection of its own.
    PerRequest,
    /// A kept connection that is idle, or a new one if there is none, up to so many.
    Kept {
        /// Beyond these a request is counted as unsent, and the run says that the generator is at its limit.
        connections_max: u32,
    },
}
