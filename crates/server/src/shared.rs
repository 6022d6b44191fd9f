//! What all workers of one site share, and what they hand to the threads behind all sites.
//!
//! It must never start a thread: those are the crew's. Without a crew nothing is loaded, and requests for
//! what is not held wait.

use std::sync::Arc;

use rustix::io::Errno;
use staunch_engine::{Address, Notice};

use crate::checks::{Asker, Checks, Excess};
use crate::config::{SiteConfig, SiteError};
use crate::content::encoder::Encoder;
use crate::content::load::{Load, Outcome};
use crate::content::path::Root;
use crate::content::signal::Signal;
use crate::content::store::Store;
use crate::content::walk::Walk;
use crate::content::watch::Watch;
use crate::limits::{LOADS_AT_ONCE_PER_SITE_MAX, LOADS_QUEUED_MAX, LOADS_WAITING_MAX};
use crate::live::mail::LiveMail;
use crate::metrics::SiteFigures;
use crate::problem::{Problem, Problems};
use crate::queue::{Bounds, Full, Queue};
use crate::rules::auth::{Auth, Tag};
use crate::rules::{self, Rules, Ruling};

/// What another thread found out, on its way to the worker whose connection waits for it.
pub struct Mail {
    pub(crate) content: MailContent,
}

/// Whose mail it is, and what it says.
pub(crate) enum MailContent {
    /// Of a thread behind the sites.
    Site(Arc<SiteShared>, Letter),
    /// Of live data: that of the site with this number.
    Live(u16, LiveMail),
}

impl Mail {
    /// Of a thread behind the sites.
    pub(crate) fn of_site(site: Arc<SiteShared>, letter: Letter) -> Self {
        Self { content: MailContent::Site(site, letter) }
    }

    /// Of the live data with this number.
    pub(crate) fn of_live(number: u16, mail: LiveMail) -> Self {
        Self { content: MailContent::Live(number, mail) }
    }
}

/// What a mail says.
pub(crate) enum Letter {
    /// The outcome of a load, and what it was asked for.
    Loaded(Outcome, Purpose),
    /// Since when credentials are known to be good, if they are.
    Checked { tag: Tag, since_s: Option<u32> },
    /// Credentials are not checked, because others come first.
    PutOff(Excess),
}

/// What a load is asked for.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    /// It is the answer, or what the answer's folder is answered by.
    Content,
    /// It answers for what is not there.
    Fallback,
    /// It is the page of a problem.
    Page { problem: Problem, ruling: Option<Arc<Ruling>> },
}

/// Where the workers of all sites hand in work for other threads.
pub(crate) struct Queues {
    /// A key to load, by site.
    pub(crate) loads: Queue<LoadJob, (Address, Purpose)>,
    /// Credentials to check, by rule.
    pub(crate) checks: Checks<CheckJob>,
    /// Rung when there is something to encode.
    pub(crate) encode_signal: Arc<Signal>,
    /// Where lines for the operator go.
    notice: Notice,
}

/// A load: for which site, and the unix_s of the first wish.
pub(crate) struct LoadJob {
    pub(crate) site: Arc<SiteShared>,
    pub(crate) unix_s: u64,
}

/// Credentials, as they stand in the field, and the second of the first wish.
pub(crate) struct CheckJob {
    pub(crate) site: Arc<SiteShared>,
    pub(crate) auth: Arc<Auth>,
    pub(crate) field: Box<[u8]>,
    pub(crate) now_s: u32,
}

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
pub(crate) struct SiteShared {
    /// As it was told, but for what only concerns which hosts it answers to, and with files of users read.
    told: SiteConfig,
    pub(crate) load: Load,
    pub(crate) walk: Walk,
    pub(crate) problems: Problems,
    queues: Arc<Queues>,
}

impl Queues {
    /// Empty ones.
    pub(crate) fn new(notice: Notice) -> Self {
        let loads = Bounds {
            jobs_max: LOADS_QUEUED_MAX,
            waiting_max: LOADS_WAITING_MAX,
            at_once_max: LOADS_AT_ONCE_PER_SITE_MAX,
        };
        Self { loads: Queue::new(loads), checks: Checks::new(), encode_signal: Arc::default(), notice }
    }
}

impl SiteShared {
    /// Opens a site. Quick: nothing is read yet but files of users. If one of `current` was told the same and
    /// its folder is still the one of that name, it is that one.
    ///
    /// # Errors
    /// If the folder cannot be opened, or not safely, or a rule has no meaning.
    pub(crate) fn open(
        config: &SiteConfig,
        queues: &Arc<Queues>,
        current: &[Arc<Self>],
    ) -> Result<Arc<Self>, SiteError> {
        let root = Root::open(&config.root).map_err(|errno| match errno {
            Errno::NOSYS | Errno::PERM => SiteError::Confinement,
            errno => SiteError::Root { root: config.root.clone(), errno },
        })?;
        let fault = |fault| SiteError::Rule { site: config.title(), fault };
        let rules = rules::with_users_files(&config.rules).map_err(fault)?;
        let told =
            SiteConfig { rules, hosts: Vec::new(), canonical_host: None, default: false, ..config.clone() };
        let same = |one: &&Arc<Self>| one.told == told && one.load.root.is_same_folder(&root);
        if let Some(same) = current.iter().find(same) {
            return Ok(Arc::clone(same));
        }
        let rules = Rules::new(&told.rules).map_err(fault)?;
        let no_cache = config.no_cache || config.cache_bytes_max == 0;
        let load = Load {
            store: Store::new(if no_cache { 0 } else { config.cache_bytes_max }),
            watch: Watch::new(root.name(), Arc::clone(&queues.notice)),
            config: SiteConfig { no_cache, ..told.clone() },
            root,
            encoder: Encoder::new(Arc::clone(&queues.encode_signal)),
            rules,
        };
        let (walk, queues) = (Walk::default(), Arc::clone(queues));
        Ok(Arc::new(Self { told, load, walk, problems: Problems::new(), queues }))
    }

    /// How far preparation is. Takes a lock: for reports, not for requests.
    pub(crate) fn progress(&self) -> Progress {
        let store = &self.load.store;
        Progress {
            files: self.walk.files() as usize,
            prepared: store.entries(),
            encodings_done: self.load.encoder.encodings() as usize,
            bytes_held: store.held_bytes(),
            done: self.walk.is_done() && self.load.encoder.is_idle(),
        }
    }

    /// Asks for a load; its outcome will be mailed to the address.
    pub(crate) fn ask_for(
        self: &Arc<Self>,
        key: &[u8],
        unix_s: u64,
        purpose: Purpose,
        address: Address,
    ) -> Result<(), Full> {
        let job = || LoadJob { site: Arc::clone(self), unix_s };
        self.queues.loads.ask((Arc::as_ptr(self) as usize, key.into()), job, (address, purpose))
    }

    /// Asks whether credentials are good; it will be mailed to the asker's connection.
    pub(crate) fn ask_whether(
        self: &Arc<Self>,
        auth: &Arc<Auth>,
        field: &[u8],
        now_s: u32,
        asker: Asker,
    ) -> Result<(), Excess> {
        let job = || CheckJob { site: Arc::clone(self), auth: Arc::clone(auth), field: field.into(), now_s };
        self.queues.checks.ask(auth.number(), auth.tag(field), asker, job)
    }

    /// The same, as metrics tell it. A site without names is called `default`.
    pub(crate) fn figures(&self) -> SiteFigures {
        let (progress, config) = (self.progress(), &self.load.config);
        SiteFigures {
            name: config.hosts.first().map_or("default", String::as_str).to_owned(),
            files: progress.files as u64,
            prepared: progress.prepared as u64,
            encodings: progress.encodings_done as u64,
            held_bytes: progress.bytes_held,
            budget_bytes: config.cache_bytes_max,
            walked: self.walk.is_done(),
            done: progress.done,
        }
    }

    /// Nobody will ask for it any more: what it holds is let go, even if a worker that has nothing to do
    /// keeps it for a while.
    pub(crate) fn give_up(&self) {
        self.walk.give_up();
        self.load.store.close();
    }
}
