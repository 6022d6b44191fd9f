//! Live data as it is served: publishing, polling, streams of events, and WebSockets.
//!
//! Each site has live data of its own (`shared`), and nothing of it is seen at another site. It owns the
//! endpoints, the thread that is the one writer (`writer`), and each worker's part (`worker`), which holds a
//! view of all topics and the readers of its connections. What updates, topics and readers are
//! stands in the crate of live data. It must never queue anything for a reader, nor share anything between
//! workers that changes but counters and the writer's queue.
//!
//! Order of calls: [`LiveSites::open`] once, [`LiveSites::start`] once the workers' mailboxes exist, then
//! one [`crate::Front`] per worker, [`LiveSites::drain`] when the server ends.

pub(crate) mod config;
mod counts;
mod differing;
mod document;
mod events;
mod feed;
mod follower;
mod foreign;
mod hands;
mod keeping;
pub(crate) mod mail;
pub(crate) mod parts;
mod pending;
mod permit;
mod publish;
mod queue;
mod quotes;
mod reply;
pub(crate) mod route;
mod script;
mod seat;
mod seats;
mod shared;
mod sites;
mod socket;
mod tokens;
mod told;
mod turns;
mod undelivered;
mod value_coding;
mod waiting;
pub(crate) mod worker;
mod writer;

pub use config::{
    LiveConfig, LiveError, LiveIssuer, LiveKeys, LiveState, LiveSync, LiveTopic, LiveTopicKind,
};
pub use counts::LiveFigures;
pub use follower::LiveFollowed;
pub use foreign::NotPublished;
pub use shared::LiveShared;
pub use sites::LiveSites;
