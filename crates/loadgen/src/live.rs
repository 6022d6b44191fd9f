//! Readers of live data: streams that stay open, updates that are published meanwhile, and what became of
//! each update at each reader.
//!
//! It must never use the server or the hub: a meter must not share what it measures. Order of calls: make a
//! [`LivePlan`], give it to [`run_live`], write the [`LiveOutcome`] with [`summary()`] or [`json`].

mod crew;
mod crowd;
mod head;
mod ledger;
mod meter;
mod news;
mod outcome;
mod plan;
mod publisher;
mod reader;
mod report;
mod request;
mod run;
mod shared;
mod socket;
mod stamp;
mod summary;
mod view;
mod warnings;

pub use outcome::{LIVE_STEP_MS, LiveCounts, LiveMoment, LiveOutcome, LivePhase, LiveTimes, Publications};
pub use plan::{LivePlan, LiveWay, PublishPlan, ReaderPlan, TOPIC_VARIABLE, VALUE_VARIABLE};
pub use report::{LiveDocument, json};
pub use run::run_live;
pub use stamp::STAMP_BYTES_MAX;
pub use summary::summary;
pub use view::LiveView;
