//! What all workers of one site share, and what they hand to the threads behind all sites.
//!
//! It must never start a thread: those are the crew's. Without a crew nothing is loaded, and requests for
//! what is not held wait.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use rustix::io::Errno;
use staunch_engine::{Address, FileStamp, Notice};

use crate::checks::{Asker, Checks, Excess};
use crate::config::{ClientDemand, SiteConfig, SiteError, SiteRules};
use crate::content::branches::{Branch, Branches};
use crate::content::encoder::Encoder;
use crate::content::entry::Entry;
use crate::content::freshness;
use crate::content::load::{Load, Outcome};
use crate::content::mime::MediaTypes;
use crate::content::path::{FolderNow, Root, stamp_of_name};
use crate::content::signal::Signal;
use crate::content::store::Store;
use crate::content::versions::Versions;
use crate::content::walk::Walk;
use crate::content::watch::Watch;
use crate::dictionary::DictionaryCounts;
use crate::limits::{ENCODED_FILE_BYTES_MAX, HELD_FILE_BUDGET_PART};
use crate::limits::{LOADS_AT_ONCE_PER_SITE_MAX, LOADS_QUEUED_MAX, LOADS_WAITING_MAX, LOOK_AGAIN_S};
use crate::looks::{Look, LookJob, Looks};
use crate::metrics::SiteFigures;
use crate::problem::{Problem, Problems};
use crate::queue::{Bounds, Full, Queue};
use crate::rules::auth::{Auth, Tag};
use crate::rules::{self, Rules, Ruling};

/// A letter of the crew to an exchange that waits.
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
    /// The loaded content is the answer, or what the answer's folder is answered by.
    Content,
    /// The loaded content answers for what is not there.
    Fallback,
    /// The loaded content answers, or is the script that an application runs for it.
    Script,
    /// The loaded content is the page of a problem.
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
    /// What is to be looked at again.
    pub(crate) looks: Looks<Weak<SiteShared>>,
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

/// State that the workers of a site share.
pub(crate) struct SiteShared {
    /// As it was told, but for what only concerns which hosts it answers to, and with files of users read.
    told: SiteConfig,
    pub(crate) load: Load,
    pub(crate) walk: Walk,
    pub(crate) problems: Problems,
    /// Differences that were asked for and sent.
    pub(crate) dictionary: DictionaryCounts,
    queues: Arc<Queues>,
    /// Files of users, as they were read.
    users: Vec<(PathBuf, Option<FileStamp>)>,
    /// What was wrong when it was opened.
    troubles: Vec<String>,
    /// The millisecond since 1970 in which what it was opened by was looked at last.
    looked_ms: AtomicU64,
    /// Whether the folder's name led nowhere then.
    is_gone: AtomicBool,
    /// What the site is called in sentences.
    title: String,
}

/// What is done when a site cannot be opened as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Faulty {
    /// Nothing is opened.
    Refused,
    /// The site is closed as far as it has to be, so that others are served: without its folder it says so,
    /// and where its users cannot be read nobody comes in.
    Closed,
}

impl Queues {
    /// Empty ones.
    pub(crate) fn new(notice: Notice) -> Self {
        let loads = Bounds {
            jobs_max: LOADS_QUEUED_MAX,
            waiting_max: LOADS_WAITING_MAX,
            at_once_max: LOADS_AT_ONCE_PER_SITE_MAX,
        };
        let looks = Looks::new();
        Self { loads: Queue::new(loads), checks: Checks::new(), encode_signal: Arc::default(), looks, notice }
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
        faulty: Faulty,
    ) -> Result<Arc<Self>, SiteError> {
        // What was closed before is no reason to refuse what has nothing to do with it.
        let was_closed = current.iter().any(|one| !one.troubles.is_empty() && one.told.root == config.root);
        let may_be_closed = faulty == Faulty::Closed || was_closed;
        let mut troubles = Vec::new();
        let root = match Root::open(&config.root) {
            _ if config.has_no_folder() => Root::absent(&config.root),
            Ok(root) => root,
            Err(Errno::NOSYS | Errno::PERM) => return Err(SiteError::Confinement),
            Err(errno) => {
                let error = SiteError::Root { root: config.root.clone(), errno };
                if !may_be_closed {
                    return Err(error);
                }
                troubles.push(format!("site {}: {error}: 503 until it does", config.title()));
                Root::absent(&config.root)
            }
        };
        let fault = |fault| SiteError::Rule { site: config.title(), fault };
        let users = users_of(&config.rules);
        let close = |what: &str| troubles.push(format!("site {}: {what}: nobody comes in", config.title()));
        let rules = rules::with_users_files(&config.rules, may_be_closed.then_some(close)).map_err(fault)?;
        let rules = for_clients(rules, config.clients);
        let told =
            SiteConfig { rules, hosts: Vec::new(), canonical_host: None, default: false, ..config.clone() };
        let was_closed = |folder: &Path| current.iter().any(|one| one.load.branches.have_closed(folder));
        let may_be_closed = |folder: &Path| faulty == Faulty::Closed || was_closed(folder);
        let named = Branches::open(&told.rules, may_be_closed)?;
        let same = |one: &&Arc<Self>| {
            let load = &one.load;
            one.told == told && load.root.is_same_folder(&root) && load.branches.are(&named)
        };
        if let Some(same) = current.iter().find(same) {
            return Ok(Arc::clone(same));
        }
        let rules = Rules::new(&told.rules).map_err(fault)?;
        let branches = Branches::new(named, &queues.notice);
        let load = load_of(&told, root, branches, rules, queues);
        let (walk, queues) = (Walk::default(), Arc::clone(queues));
        let (looked_ms, is_gone) = (AtomicU64::new(0), AtomicBool::new(false));
        let (problems, title) = (Problems::new(), config.title());
        let dictionary = DictionaryCounts::default();
        Ok(Arc::new(Self {
            told,
            load,
            walk,
            problems,
            dictionary,
            queues,
            users,
            troubles,
            looked_ms,
            is_gone,
            title,
        }))
    }

    /// Whether an entry may be used without a look at the disk. What is used for long is looked at meanwhile.
    #[inline]
    pub(crate) fn is_true(self: &Arc<Self>, entry: &Arc<Entry>, unix_ms: u64) -> bool {
        entry.freshness.is_settled(unix_ms) || self.is_still_true(entry, unix_ms)
    }

    #[inline(never)]
    fn is_still_true(self: &Arc<Self>, entry: &Arc<Entry>, unix_ms: u64) -> bool {
        let holds = entry.freshness.holds_at(unix_ms);
        if holds && entry.freshness.claims_look(unix_ms) {
            self.look_later(Look::Entry(Arc::clone(entry)), unix_ms / 1000);
        }
        holds
    }

    /// Has what the site was opened by looked at, if that was long ago.
    pub(crate) fn ask_to_look(self: &Arc<Self>, unix_s: u64) {
        if freshness::is_long_ago(self.looked_ms.load(Relaxed), unix_s * 1000) {
            self.look_later(Look::Site, unix_s);
        }
    }

    /// Has something looked at by another thread.
    pub(crate) fn look_later(self: &Arc<Self>, look: Look, unix_s: u64) {
        self.queues.looks.add(LookJob { site: Arc::downgrade(self), look, unix_s });
    }

    /// A second in which a look is due, whenever the last one was.
    pub(crate) fn next_look_s(&self) -> u64 {
        self.looked_ms.load(Relaxed) / 1000 + LOOK_AGAIN_S
    }

    /// Looks whether the site is still what it was opened as; true if it was not long ago.
    pub(crate) fn is_as_opened(&self, unix_s: u64) -> bool {
        if !freshness::claims(&self.looked_ms, unix_s * 1000) {
            return true;
        }
        let place = self.load.root.place_of(&self.told.root);
        let is_gone = place == FolderNow::Gone;
        if is_gone && !self.is_gone.swap(true, Relaxed) && !self.load.root.is_absent() {
            (self.queues.notice)(&format!("site {}: {}", self.title, self.gone()));
        }
        self.is_gone.store(is_gone, Relaxed);
        let say = |gone: &str| (self.queues.notice)(&format!("site {}: {gone}", self.title));
        let look = |branch: &Branch| branch.look(say);
        // All branches are looked at, so that each that has gone is told of.
        let is_other =
            self.load.branches.iter().filter(|branch| look(branch) == FolderNow::Other).count() > 0;
        place != FolderNow::Other
            && !is_other
            && self.users.iter().all(|(file, stamp)| stamp_of_name(file) == *stamp)
    }

    fn gone(&self) -> String {
        format!("{} is gone: it is opened again when it is there", self.told.root.display())
    }

    /// What is wrong with the site, in sentences.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let gone = self.is_gone.load(Relaxed) && !self.load.root.is_absent();
        let gone = gone.then(|| format!("site {}: {}", self.title, self.gone()));
        let of_branches = self.load.branches.iter().filter_map(Branch::trouble);
        let of_branches = of_branches.map(|trouble| format!("site {}: {trouble}", self.title));
        self.troubles.iter().cloned().chain(gone).chain(of_branches).collect()
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

    /// The progress of preparation, as metrics tell it. A site without names is called `default`.
    pub(crate) fn figures(&self) -> SiteFigures {
        let (progress, config) = (self.progress(), &self.load.config);
        let has_dictionary = self.load.rules.as_ref().is_some_and(Rules::have_dictionary);
        SiteFigures {
            name: config.hosts.first().map_or("default", String::as_str).to_owned(),
            files: progress.files as u64,
            prepared: progress.prepared as u64,
            encodings: progress.encodings_done as u64,
            held_bytes: progress.bytes_held,
            budget_bytes: config.cache_bytes_max,
            dictionary: has_dictionary.then(|| self.dictionary.figures()),
            walked: self.walk.is_done(),
            done: progress.done,
        }
    }

    /// Gives the site up, for which no request comes any more: what it holds is let go, even if a worker that
    /// has nothing to do keeps it for a while.
    pub(crate) fn give_up(&self) {
        self.walk.give_up();
        self.load.store.close();
    }
}

/// The loader of the files of a site, which holds none yet.
fn load_of(told: &SiteConfig, root: Root, branches: Branches, rules: Option<Rules>, queues: &Queues) -> Load {
    let no_cache = told.no_cache || told.cache_bytes_max == 0;
    Load {
        store: Store::new(if no_cache { 0 } else { told.cache_bytes_max }),
        watch: Watch::new(root.name(), Arc::clone(&queues.notice)),
        config: SiteConfig { no_cache, ..told.clone() },
        root,
        branches,
        types: MediaTypes::new(&told.types, told.charset.as_deref()),
        encoder: Encoder::new(
            Arc::clone(&queues.encode_signal),
            ENCODED_FILE_BYTES_MAX.min(told.cache_bytes_max / HELD_FILE_BUDGET_PART),
        ),
        versions: Versions::default(),
        rules,
    }
}

/// The rules of a site that asks this of its clients: where each must be known, nothing is for everybody, and
/// so nothing is told as a dictionary.
fn for_clients(mut rules: SiteRules, clients: Option<ClientDemand>) -> SiteRules {
    if clients.is_some_and(|demand| demand.is_required) {
        rules.paths.iter_mut().for_each(|rule| rule.dictionary = None);
    }
    rules
}

/// The files of users that rules name, as they are now.
fn users_of(rules: &SiteRules) -> Vec<(PathBuf, Option<FileStamp>)> {
    let files = rules.paths.iter().filter_map(|rule| rule.basic_auth.as_ref()?.as_ref()?.users_file.clone());
    files.map(|file| (file.clone(), stamp_of_name(&file))).collect()
}
