//! All sites: which one answers to which name, and how they are exchanged while they are served.
//!
//! A worker sees one immutable table of sites. A new table is picked up with the next request; connections
//! live on, and what waits for an outcome of a removed site is still answered by that. It must never leave
//! the sites half changed.
//!
//! Order of calls: [`SitesShared::open`] once, [`SitesShared::start`] once the workers' mailboxes exist,
//! [`crate::Front::new`] once per worker, [`SitesShared::prepare`] and [`PreparedSites::commit`] whenever
//! the settings change.

pub(crate) mod hosts;
mod worker;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use staunch_engine::{Notice, Post};

use crate::config::{SiteConfig, SiteError};
use crate::crew::Crew;
use crate::looks::Look;
use crate::mail::Mail;
use crate::metrics::SiteFigures;
use crate::shared::{Faulty, Progress, SiteShared};
use hosts::Hosts;
pub(crate) use worker::SitesWorker;

/// What all workers share. Its threads end when nobody has it any more.
pub struct SitesShared {
    sites: ArcSwap<Sites>,
    /// Counts the exchanges, so that a worker sees by one comparison that its table is the current one.
    generation: AtomicUsize,
    /// What the sites were told last. Held while they are exchanged.
    told: Mutex<Vec<SiteConfig>>,
    /// Why they could not be opened anew, as it was said last.
    fault: Mutex<String>,
    crew: Arc<Crew>,
}

/// The table of sites, which is exchanged as a whole.
struct Sites {
    sites: Vec<Arc<SiteShared>>,
    hosts: Hosts,
}

/// Sites that were opened and are not served yet. No others are opened until they are committed or dropped.
pub struct PreparedSites<'a> {
    shared: &'a SitesShared,
    told: MutexGuard<'a, Vec<SiteConfig>>,
    configs: Vec<SiteConfig>,
    old: Arc<Sites>,
    new: Arc<Sites>,
}

/// What an exchange has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replaced {
    /// Sites that go on as they were, with all they hold.
    pub kept: usize,
    /// Sites that are new, were told something else, or whose folder is another one now.
    pub opened: usize,
    /// Sites that are not served any more as they were.
    pub closed: usize,
}

impl SitesShared {
    /// Opens sites of which nobody is told anything. Quick: no content is read yet.
    ///
    /// # Errors
    /// Which site cannot be opened, and why.
    pub fn open(configs: Vec<SiteConfig>) -> Result<Arc<Self>, SiteError> {
        Self::open_with_notice(configs, Arc::new(|_| ()))
    }

    /// Opens sites. `notice` is told what cannot be watched, now or later.
    ///
    /// # Errors
    /// Which site cannot be opened, and why.
    pub fn open_with_notice(configs: Vec<SiteConfig>, notice: Notice) -> Result<Arc<Self>, SiteError> {
        Self::open_as(configs, notice, Faulty::Refused)
    }

    /// Opens sites. One of several whose folder or users cannot be had is closed as far as it has to be, and
    /// told of: the others are served.
    ///
    /// # Errors
    /// Which site cannot be opened, and why.
    pub fn open_what_can_be(configs: Vec<SiteConfig>, notice: Notice) -> Result<Arc<Self>, SiteError> {
        let faulty = if configs.len() > 1 { Faulty::Closed } else { Faulty::Refused };
        let sites = Self::open_as(configs, Arc::clone(&notice), faulty)?;
        sites.troubles().iter().for_each(|trouble| notice(trouble));
        Ok(sites)
    }

    fn open_as(configs: Vec<SiteConfig>, notice: Notice, faulty: Faulty) -> Result<Arc<Self>, SiteError> {
        let crew = Arc::new(Crew::new(Arc::clone(&notice))?);
        let sites = Sites::open(&configs, &crew, &[], faulty)?;
        crew.take_on(sites.sites.clone());
        let (sites, generation) = (ArcSwap::from_pointee(sites), AtomicUsize::new(0));
        let (told, fault) = (Mutex::new(configs), Mutex::default());
        let shared = Arc::new(Self { sites, generation, told, fault, crew });
        let weak = Arc::downgrade(&shared);
        shared.crew.when_other(move || weak.upgrade().iter().for_each(|sites| sites.reopen(&notice)));
        Ok(shared)
    }

    /// Opens the sites as they were told, because one is not what it was opened as.
    fn reopen(&self, notice: &Notice) {
        let exchanged = self.open_anew(<[SiteConfig]>::to_vec).map(PreparedSites::exchange);
        let said = match exchanged {
            Ok(replaced) if replaced.opened > 0 => {
                notice("a folder or a file of users is another one now: its site was opened again");
                String::new()
            }
            Ok(_) => String::new(),
            Err(error) => format!("a site cannot be opened again and goes on as it was: {error}"),
        };
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.is_empty() && *fault != said {
            notice(&said);
        }
        *fault = said;
    }

    /// What is wrong with sites at this moment, in sentences.
    pub fn troubles(&self) -> Vec<String> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of_sites = self.sites.load().sites.iter().flat_map(|site| site.troubles()).collect::<Vec<_>>();
        of_sites.into_iter().chain((!fault.is_empty()).then_some(fault)).collect()
    }

    /// Starts the threads that load, prepare, encode, watch and check credentials.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(&self, post: &Post<Mail>) -> Result<(), SiteError> {
        self.crew.start(post)
    }

    /// Opens other sites, to be served once they are committed. Those that were told the same, and whose
    /// folder's name still leads to the same folder, go on with all they hold. May read files of users, so
    /// this is nothing for a worker.
    ///
    /// # Errors
    /// Which site cannot be opened, and why.
    pub fn prepare(&self, configs: Vec<SiteConfig>) -> Result<PreparedSites<'_>, SiteError> {
        self.open_anew(|_| configs)
    }

    /// Opens sites by what the sites of now were told.
    fn open_anew(
        &self,
        configs: impl FnOnce(&[SiteConfig]) -> Vec<SiteConfig>,
    ) -> Result<PreparedSites<'_>, SiteError> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let (configs, old) = (configs(&told), self.sites.load_full());
        let new = Arc::new(Sites::open(&configs, &self.crew, &old.sites, Faulty::Refused)?);
        Ok(PreparedSites { shared: self, told, configs, old, new })
    }

    /// How far preparation is, of all sites together. Takes locks: for reports, not for requests.
    pub fn progress(&self) -> Progress {
        let none = Progress { done: true, ..Progress::default() };
        self.sites.load().sites.iter().map(|site| site.progress()).fold(none, |sum, one| Progress {
            files: sum.files + one.files,
            prepared: sum.prepared + one.prepared,
            encodings_done: sum.encodings_done + one.encodings_done,
            bytes_held: sum.bytes_held + one.bytes_held,
            done: sum.done && one.done,
        })
    }

    /// The progress of each site's preparation, under the first name it answers to.
    pub fn figures(&self) -> Vec<SiteFigures> {
        self.sites.load().sites.iter().map(|site| site.figures()).collect()
    }

    /// Budget of prepared content in bytes, of all sites together.
    pub fn budget_bytes(&self) -> u64 {
        self.sites.load().sites.iter().map(|site| site.load.config.cache_bytes_max).sum()
    }
}

impl PreparedSites<'_> {
    /// Serves them from now on.
    pub fn commit(self) -> Replaced {
        let new = Arc::clone(&self.new);
        let replaced = self.exchange();
        // An operator who asks for it has a reason to: what was not heard of is seen.
        new.sites.iter().for_each(|site| site.look_later(Look::All, site.next_look_s()));
        replaced
    }

    fn exchange(mut self) -> Replaced {
        let (old, new, crew) = (self.old, self.new, &self.shared.crew);
        *self.told = self.configs;
        let kept = new.sites.iter().filter(|site| old.has(site)).count();
        let gone: Vec<_> = old.sites.iter().filter(|site| !new.has(site)).collect();
        let replaced = Replaced { kept, opened: new.sites.len() - kept, closed: gone.len() };
        crew.take_on(new.sites.clone());
        self.shared.sites.store(new);
        self.shared.generation.fetch_add(1, Ordering::Release);
        for site in gone {
            site.give_up();
        }
        replaced
    }
}

impl Drop for SitesShared {
    fn drop(&mut self) {
        self.crew.end();
    }
}

impl Sites {
    fn open(
        configs: &[SiteConfig],
        crew: &Crew,
        current: &[Arc<SiteShared>],
        faulty: Faulty,
    ) -> Result<Self, SiteError> {
        let hosts = Hosts::new(configs)?;
        let open = |config: &SiteConfig| SiteShared::open(config, &crew.queues, current, faulty);
        Ok(Self { sites: configs.iter().map(open).collect::<Result<_, _>>()?, hosts })
    }

    fn ask_clients(&self) -> bool {
        self.sites.iter().any(|site| site.load.config.clients.is_some())
    }

    fn has(&self, site: &Arc<SiteShared>) -> bool {
        self.sites.iter().any(|one| Arc::ptr_eq(one, site))
    }
}

#[cfg(test)]
#[path = "sites/tests.rs"]
mod tests;
