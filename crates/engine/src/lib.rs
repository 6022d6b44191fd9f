//! The workers, one per processor: each is a loop between network operations and protocol sessions.
//!
//! It owns connections, deadlines and mailboxes. It must never know a URL, parse a byte, ask for a lock on a
//! request's path, or share anything mutable between workers but mailboxes and counters.
#![forbid(unsafe_code)]

mod clients;
mod connection;
mod control;
mod counter;
mod draining;
mod engine;
mod exchange;
mod handler;
mod histogram;
mod limits;
mod line_queue;
mod listening;
mod mailbox;
mod order;
mod pressure;
mod secured;
mod spare;
mod start_error;
mod stats;
mod time;
mod timer_wheel;
mod transport;
mod upstream;
mod worker;

pub use clients::{ClientPolicy, ClientRate, ClientTable, Trusted, client_of};
pub use control::{Change, Control};
pub use counter::{Counter, Gauge};
pub use engine::{Engine, IoChoice, Settings};
pub use exchange::Finished;
pub use exchange::address::{Address, StreamRef};
pub use exchange::answer::Answer;
pub use exchange::answered::Answered;
pub use exchange::context::Context;
pub use exchange::open::{Ended, Open};
pub use exchange::outbox::Outbox;
pub use exchange::owner::Owner;
pub use exchange::piece::Piece;
pub use exchange::reading::Reading;
pub use handler::{Body, Departure, Handler, Refused};
pub use histogram::{BOUNDS_NS, Histogram};
pub use line_queue::{Form, LineCounts, LineQueue, Notice};
pub use listening::Inherited;
pub use mailbox::{Mailbox, Post, Recipient};
pub use order::Drain;
pub use pressure::{Pressure, notice_on_standard_error};
pub use secured::TlsSettings;
pub use start_error::StartError;
pub use stats::{
    ClientStats, ConnectionStats, Http2Stats, PressureStats, RequestStats, SendStats, Stats, TlsHandshake,
    TlsRefusal, TlsStats, TurnStats, UpstreamStats,
};
pub use staunch_netio::clock::{now_ns as monotonic_ns, thread_busy_ns, unix_time};
pub use staunch_netio::named_file;
pub use staunch_netio::{
    Address as TargetAddress, FilePart, FileStamp, ListenPlace, Outgoing, Part, Slice, Target, UNIX_PEER,
};
pub use staunch_tls::ClientIdentity;
pub use upstream::{
    GivenBack, LawReason, LimitLaw, Observation, PlaceAnswer, PlaceClass, PlaceNews, Places, PlacesFigures,
    PlacesLimit, PlacesStep, Served, Standing, StandingFigures, Upstream, UpstreamDeadline, UpstreamEvent,
    UpstreamLoss, UpstreamTimeouts, Upstreams, WaitingLine,
};
pub use worker::{Worker, WorkerParts};
