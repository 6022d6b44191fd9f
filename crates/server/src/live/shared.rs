//! What all workers and the writer of live data share.
//!
//! It owns the writer's queue, the counters, and what was there at the start. It must never hold a topic: the
//! writer does, and each worker has its view.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use staunch_engine::Post;
use staunch_live::limits::HUB_QUEUE_MAX;
use staunch_live::{Epoch, Grants, Hub, Letter, TopicName};

use super::config::{LiveConfig, LiveError};
use super::counts::{LiveFigures, WorkerCounts, WriterCounts, figures};
use super::queue::WriterQueue;
use super::script::Script;
use super::tokens::Tokens;
use crate::shared::Mail;

/// See the module's text.
pub struct LiveShared {
    pub(crate) config: LiveConfig,
    pub(crate) epoch: Epoch,
    pub(crate) queue: WriterQueue,
    /// What was there before the first worker.
    pub(crate) introduction: Letter,
    /// The number of the last update that workers were told of.
    pub(crate) posted: AtomicU64,
    /// When readers have to be gone, in seconds since the start, or 0: and for how long they may stay then.
    pub(crate) leaving_s: AtomicU64,
    pub(crate) writer_counts: Arc<WriterCounts>,
    pub(crate) worker_counts: Box<[WorkerCounts]>,
    pub(crate) tokens: Tokens,
    pub(crate) script: Script,
    /// Cache-Control by topic.
    caches: Vec<(Grants, String)>,
    /// Until the writer's thread has it.
    pub(super) hub: Mutex<Option<Hub>>,
    pub(super) post: OnceLock<Post<Mail>>,
}

impl LiveShared {
    /// Paths that are endpoints, and no files while live data is served.
    pub const PATHS: [&str; 9] = [
        "/events",
        "/quotes",
        "/publish",
        "/live",
        "/live.js",
        "/topics",
        "/ws",
        "/connection/websocket",
        "/.well-known/mercure",
    ];

    /// Live data for so many workers. Nothing is started yet.
    ///
    /// # Errors
    /// A value that has no meaning.
    pub fn open(config: LiveConfig, workers: u16) -> Result<Arc<Self>, LiveError> {
        config.check()?;
        let epoch = draw_epoch();
        let hub = Hub::new(config.hub(workers)?, epoch);
        Ok(Arc::new(Self {
            epoch,
            queue: WriterQueue::new(HUB_QUEUE_MAX),
            introduction: hub.introduction(),
            posted: AtomicU64::new(hub.version().number),
            leaving_s: AtomicU64::new(0),
            writer_counts: Arc::default(),
            worker_counts: (0..workers).map(|_| WorkerCounts::default()).collect(),
            tokens: Tokens::new(config.tokens()?),
            script: Script::new(),
            caches: config.caches(),
            hub: Mutex::new(Some(hub)),
            post: OnceLock::new(),
            config,
        }))
    }

    /// Ends the writer's thread.
    pub fn end(&self) {
        self.queue.end();
        self.tokens.end();
    }

    /// Readers are to leave, evenly within so many seconds.
    pub fn drain(&self, within_s: u64) {
        self.leaving_s.store(within_s.max(1), Relaxed);
        self.queue.ring();
    }

    /// Everything that is counted.
    pub fn figures(&self) -> LiveFigures {
        LiveFigures {
            readers_max: self.config.readers_max,
            memory_bytes_max: self.config.memory_bytes as u64,
            queued: self.queue.updates() as u64,
            ..figures(&self.writer_counts, &self.worker_counts)
        }
    }

    /// Whether anybody may publish.
    pub fn may_publish(&self) -> bool {
        self.config.publish_token.is_some() || self.tokens.has_issuers()
    }

    /// Mail to workers, once they are there.
    pub(crate) fn post(&self) -> Option<&Post<Mail>> {
        self.post.get()
    }

    /// What Cache-Control says of a topic's value.
    pub(crate) fn cache_control(&self, topic: &TopicName) -> &str {
        let fits = self.caches.iter().find(|(names, _)| names.cover(topic));
        fits.map_or("no-cache", |(_, cache_control)| cache_control)
    }
}

/// A number that no other start had: of 48 bits, so that a version stays short.
fn draw_epoch() -> Epoch {
    let drawn = RandomState::new().hash_one(std::process::id());
    Epoch((drawn & 0xffff_ffff_ffff).max(1))
}
