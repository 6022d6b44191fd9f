//! What all workers of a site share, and the threads behind them.
//!
//! Order of calls: `open`, then `start` once the workers' mailboxes exist, and `handler` once a worker.
//! Without `start` nothing is loaded and requests for what is not held wait.

use std::sync::Arc;
use std::thread;

use rustix::io::Errno;
use staunch_engine::Post;

use crate::config::{SiteConfig, SiteError};
use crate::content::encoder::Encoder;
use crate::content::load::{Load, Outcome};
use crate::content::loader::Loader;
use crate::content::path::Root;
use crate::content::store::{Room, Store};
use crate::content::walk::Walk;
use crate::content::watch::Watch;
use crate::limits::LOADER_THREADS;
use crate::problem::Problems;

/// The outcome of a load, on its way to the worker whose connection waits for it.
#[derive(Debug)]
pub struct Mail(pub(crate) Outcome);

/// How far preparation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Files found so far.
    pub files: usize,
    /// Entries held, ready to be sent.
    pub prepared: usize,
    /// Encodings made since the start.
    pub encodings_done: usize,
    /// Bytes of memory held, by the budget's count.
    pub bytes_held: u64,
    /// Whether everything is prepared that will be without being asked for.
    pub done: bool,
}

/// See the module's text.
pub struct SiteShared {
    pub(crate) load: Load,
    pub(crate) loader: Loader,
    walk: Walk,
    pub(crate) problems: Problems,
}

impl SiteShared {
    /// Opens a site. Quick: nothing is read yet.
    ///
    /// # Errors
    /// If the folder cannot be opened, or not safely.
    pub fn open(config: SiteConfig) -> Result<Arc<Self>, SiteError> {
        let root = Root::open(&config.root).map_err(|errno| match errno {
            Errno::NOSYS | Errno::PERM => SiteError::Confinement,
            errno => SiteError::Root { root: config.root.clone(), errno },
        })?;
        let no_cache = config.no_cache || config.cache_bytes_max == 0;
        let config = SiteConfig { no_cache, ..config };
        let store = Store::new(if no_cache { 0 } else { config.cache_bytes_max });
        let watch = Watch::new(root.name());
        let load = Load { config, root, store, watch, encoder: Encoder::default() };
        let (loader, walk) = (Loader::default(), Walk::default());
        Ok(Arc::new(Self { load, loader, walk, problems: Problems::new() }))
    }

    /// Starts the threads that load, prepare, encode and watch. They run until the process ends.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(self: &Arc<Self>, post: &Post<Mail>) -> Result<(), SiteError> {
        for number in 0..LOADER_THREADS {
            let (shared, post) = (Arc::clone(self), post.clone());
            self.spawn(&format!("load {number}"), move || {
                let load = |key: &[u8], moment| shared.load.load(key, moment, Room::Made);
                shared.loader.run(load, |address, outcome| post.send(address, Mail(outcome)));
            })?;
        }
        if self.load.config.no_cache {
            self.walk.skip();
            return Ok(());
        }
        self.spawn_shared("watch", |shared| shared.load.watch.run(|changes| shared.load.forget(changes)))?;
        self.spawn_shared("walk", |shared| shared.walk.run(&shared.load))?;
        for number in 0..encoder_threads() {
            self.spawn_shared(&format!("encode {number}"), |shared| {
                let load = &shared.load;
                load.encoder.run(&load.store, &load.config.encodings);
            })?;
        }
        Ok(())
    }

    /// How far preparation is. Takes a lock: for reports, not for requests.
    pub fn progress(&self) -> Progress {
        let store = &self.load.store;
        Progress {
            files: self.walk.files() as usize,
            prepared: store.entries(),
            encodings_done: self.load.encoder.encodings() as usize,
            bytes_held: store.held_bytes(),
            done: self.walk.is_done() && self.load.encoder.is_idle(),
        }
    }

    fn spawn_shared(self: &Arc<Self>, name: &str, run: fn(&Self)) -> Result<(), SiteError> {
        let shared = Arc::clone(self);
        self.spawn(name, move || run(&shared))
    }

    /// Budget of prepared content in bytes.
    pub fn budget_bytes(&self) -> u64 {
        self.load.config.cache_bytes_max
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), SiteError> {
        thread::Builder::new().name(name.to_owned()).spawn(run).map(drop).map_err(SiteError::Thread)
    }
}

/// Half of the processors, since encoding is the only work that never ends soon.
fn encoder_threads() -> usize {
    thread::available_parallelism().map_or(1, |count| (count.get() / 2).max(1))
}
