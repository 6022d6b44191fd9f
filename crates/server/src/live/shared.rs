//! What all workers and the writer of one site's live data share.
//!
//! It owns the writer's queue, the counters, and what was there at the start. It must never hold a topic: the
//! writer does, and each worker has its view.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use staunch_engine::{Notice, Post};
use staunch_live::limits::{HUB_QUEUE_BYTES_MAX, HUB_QUEUE_MAX};
use staunch_live::{Epoch, Hub, KeptState, Letter, TopicName};

use super::config::{LiveConfig, LiveError, LiveSync, ReadingRule};
use super::counts::{LiveFigures, WorkerCounts, WriterCounts, figures};
use super::follower::Follower;
use super::hands::{Carried, Hand, Hands};
use super::keeping::{self, Keeping};
use super::mail::LiveMail;
use super::queue::WriterQueue;
use super::script::Script;
use super::tokens::Tokens;
use crate::mail::Mail;
use crate::owner::OwnerPart;

/// State that the workers and the writer of a site's live data share.
pub struct LiveShared {
    pub(crate) config: LiveConfig,
    /// Its place among the live data of all sites, by which its mail finds it.
    pub(super) number: u16,
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
    /// The parts of rules of topics that concern readers.
    rules: Vec<ReadingRule>,
    /// Hub and store, until the writer's thread takes them.
    pub(super) hub: Mutex<Option<(Hub, Option<Keeping>)>>,
    /// Thread of the writer, until `end` waits for it.
    pub(super) writer: Mutex<Option<JoinHandle<()>>>,
    pub(super) hands: Hands,
    pub(super) follower: Follower,
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

    /// Live data of one site for so many workers, with what the store holds, or, without a store, with what
    /// was `carried` here from the process before. `notice` logs a damaged store, a new epoch after a crash,
    /// and later failures of the store. No thread is started yet.
    ///
    /// # Errors
    /// A setting has no meaning, or the store cannot be used.
    pub(crate) fn open(
        config: LiveConfig,
        number: u16,
        workers: u16,
        carried: Option<KeptState>,
        notice: Notice,
    ) -> Result<Arc<Self>, LiveError> {
        config.check()?;
        let tokens = Tokens::new(config.tokens()?, title(&config.site), Arc::clone(&notice));
        let writer_counts: Arc<WriterCounts> = Arc::default();
        let (hub, keeping) = match keeping::open(&config)? {
            None => match carried {
                Some(kept) => (Hub::restore(config.hub(workers)?, kept, draw_epoch(), 0), None),
                None => (Hub::new(config.hub(workers)?, draw_epoch()), None),
            },
            Some((mut store, kept)) => {
                tell(&config.site, &kept, &notice);
                let hub = Hub::restore(config.hub(workers)?, kept, draw_epoch(), 0);
                store.agree(&hub.introduction()).map_err(LiveError::State)?;
                let counts = Arc::clone(&writer_counts);
                let sync = config.state.as_ref().map_or(LiveSync::Always, |state| state.sync);
                let title = title(&config.site);
                (hub, Some(Keeping::new(store, sync, counts, notice, title)))
            }
        };
        let last = hub.version();
        writer_counts.topics.store(hub.topics() as u64, Relaxed);
        writer_counts.memory_bytes.store(hub.memory_bytes() as u64, Relaxed);
        Ok(Arc::new(Self {
            number,
            epoch: last.epoch,
            queue: WriterQueue::new(HUB_QUEUE_MAX, HUB_QUEUE_BYTES_MAX),
            introduction: hub.introduction(),
            posted: AtomicU64::new(last.number),
            leaving_s: AtomicU64::new(0),
            writer_counts,
            worker_counts: (0..workers).map(|_| WorkerCounts::default()).collect(),
            tokens,
            script: Script::new(),
            rules: config.reading_rules(),
            hub: Mutex::new(Some((hub, keeping))),
            writer: Mutex::default(),
            hands: Hands::default(),
            follower: Follower::default(),
            post: OnceLock::new(),
            config,
        }))
    }

    /// Ends the writer's thread and waits until it has released the store.
    pub fn end(&self) {
        self.queue.end();
        self.tokens.end();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // An error here is a panic of the writer, which the panic itself has reported.
        let _ = writer.map(JoinHandle::join);
    }

    /// Stops numbering for a new process, at the begin of an upgrade: the store is released to it, or what is
    /// held without one is given to `carry`. Publications wait until `go_on` or `hand_over`.
    pub(super) fn lend(&self, carry: &Sender<Carried>) {
        self.hands.lend(self.config.state.is_none().then(|| carry.clone()));
        self.queue.ring();
    }

    /// Numbers nothing until `go_on`: this is the new process, and the former one may still come back.
    pub(super) fn await_former(&self) {
        self.settle(Hand::Awaited);
    }

    /// Numbers from now on, because no other process does.
    pub(super) fn go_on(&self) {
        self.settle(Hand::Own);
    }

    /// Leaves the numbering to the new process, which serves now. Publications here get 503 from now on, so
    /// that publishers go to the new process.
    pub(super) fn hand_over(&self) {
        self.settle(Hand::Gone);
    }

    fn settle(&self, hand: Hand) {
        self.hands.settle(hand);
        self.queue.ring();
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
            tokens_refused: self.tokens.refused(),
            ..figures(&self.writer_counts, &self.worker_counts)
        }
    }

    /// Readers at this moment.
    pub(super) fn readers(&self) -> u64 {
        self.worker_counts.iter().map(WorkerCounts::all_readers).sum()
    }

    /// Most topics.
    pub fn topics_max(&self) -> usize {
        self.config.topics_max
    }

    /// Folder of the store; none if values are kept in memory alone.
    pub fn state_folder(&self) -> Option<&Path> {
        self.config.state.as_ref().map(|state| state.folder.as_path())
    }

    /// Whether anybody may publish.
    pub fn may_publish(&self) -> bool {
        self.config.publish_token.is_some() || self.tokens.has_issuers()
    }

    /// Name of the site: its first host, or nothing.
    pub fn site(&self) -> &str {
        &self.config.site
    }

    /// Tells something to the part of a worker that belongs to this.
    pub(crate) fn tell_worker(&self, post: &Post<Mail>, worker: u16, mail: LiveMail) {
        post.send_to_worker(worker, OwnerPart::Live(self.number).into(), Mail::of_live(mail));
    }

    /// Mail to workers, once they are there.
    pub(crate) fn post(&self) -> Option<&Post<Mail>> {
        self.post.get()
    }

    /// What Cache-Control says of a topic's value.
    pub(crate) fn cache_control(&self, topic: &TopicName) -> &str {
        self.rule(topic).map_or("no-cache", |rule| &rule.cache_control)
    }

    /// Whether a rule makes every update of a topic private, whether or not there is one.
    pub(crate) fn is_private(&self, topic: &TopicName) -> bool {
        self.rule(topic).is_some_and(|rule| rule.private)
    }

    /// Whether a topic's polled values are told as differences.
    pub(crate) fn has_differences(&self, topic: &TopicName) -> bool {
        self.rule(topic).is_some_and(|rule| rule.dictionary)
    }

    fn rule(&self, topic: &TopicName) -> Option<&ReadingRule> {
        self.rules.iter().find(|rule| rule.names.cover(topic))
    }
}

/// Logs why a new epoch begins although there was a store: it was damaged, or its last number is not exact.
fn tell(site: &str, kept: &KeptState, notice: &Notice) {
    let title = title(site);
    if let Some(aside) = &kept.set_aside {
        let aside = aside.display();
        notice(&format!(
            "{title}: what was kept is damaged, and was set aside as {aside}: a new epoch begins"
        ));
    } else if kept.epoch.is_none() && kept.number > 0 {
        notice(&format!(
            "{title}: the server did not end in an orderly way, and live_sync was not `always`: \
             a new epoch begins"
        ));
    }
}

/// What lines of the log call the live data of a site.
pub(super) fn title(site: &str) -> String {
    if site.is_empty() { "live data".to_owned() } else { format!("live data of {site}") }
}

/// A number that no other start had: of 48 bits, so that a version stays short.
fn draw_epoch() -> Epoch {
    let drawn = RandomState::new().hash_one(std::process::id());
    Epoch((drawn & 0xffff_ffff_ffff).max(1))
}
