//! Live data of all sites that have it, as the program and each worker's handler reach it.
//!
//! It owns the list, which stays as it was at the start: a site is found in it by its name, whatever tables of
//! sites come later. It must never let one site see anything of another.

use std::sync::Arc;

use staunch_engine::{Address, Notice, Post};

use super::config::{LiveConfig, LiveError};
use super::counts::LiveFigures;
use super::shared::LiveShared;
use super::worker::LiveWorker;
use crate::shared::Mail;
use crate::sites::SitesHandler;

/// See the module's text.
pub struct LiveSites {
    sites: Vec<Arc<LiveShared>>,
}

impl LiveSites {
    /// Live data of these sites for so many workers, with what their stores hold. `notice` logs a damaged
    /// store, a new epoch after a crash, and later failures of a store. No thread is started yet.
    ///
    /// # Errors
    /// A setting has no meaning, or a store cannot be used.
    pub fn open(configs: Vec<LiveConfig>, workers: u16, notice: &Notice) -> Result<Arc<Self>, LiveError> {
        let numbered = (0..).zip(configs);
        let open = |(number, config)| LiveShared::open(config, number, workers, Arc::clone(notice));
        Ok(Arc::new(Self { sites: numbered.map(open).collect::<Result<_, _>>()? }))
    }

    /// Starts the threads behind it. To be called once.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn start(&self, post: &Post<Mail>) -> Result<(), LiveError> {
        self.sites.iter().try_for_each(|site| site.start(post))
    }

    /// That of each site.
    pub fn iter(&self) -> impl Iterator<Item = &LiveShared> {
        self.sites.iter().map(|site| &**site)
    }

    /// Ends the writers' threads and waits until they have released their stores.
    pub fn end(&self) {
        self.iter().for_each(LiveShared::end);
    }

    /// Releases the stores for a new process, at the begin of an upgrade. Publications wait until `take_back`
    /// or `hand_over`.
    pub fn lend(&self) {
        self.iter().for_each(LiveShared::lend);
    }

    /// Takes the stores back, because the new process did not come to serve.
    pub fn take_back(&self) {
        self.iter().for_each(LiveShared::take_back);
    }

    /// Leaves the stores to the new process, which serves now. With a store, publications here get 503 from
    /// now on, so that publishers go to the new process.
    pub fn hand_over(&self) {
        self.iter().for_each(LiveShared::hand_over);
    }

    /// Readers are to leave, evenly within so many seconds.
    pub fn drain(&self, within_s: u64) {
        self.iter().for_each(|site| site.drain(within_s));
    }

    /// Everything that is counted, of all sites together.
    pub fn figures(&self) -> LiveFigures {
        let mut sum = LiveFigures::default();
        self.iter().for_each(|site| sum.add(&site.figures()));
        sum
    }
}

/// A worker's parts of the live data of all sites.
pub(super) struct LiveParts {
    parts: Vec<LiveWorker>,
    names: Vec<Box<str>>,
    /// Which part is that of a site, by the site's number in the table of sites that was seen last.
    of_sites: Vec<Option<usize>>,
    generation: Option<usize>,
    /// The part that had the last exchange: most often the next one is its too.
    last: usize,
}

impl LiveParts {
    /// The parts of one worker.
    pub(super) fn new(shared: &LiveSites, worker: u16) -> Self {
        let parts = shared.sites.iter().map(|site| LiveWorker::new(Arc::clone(site), worker)).collect();
        let names = shared.iter().map(|site| site.site().into()).collect();
        Self { parts, names, of_sites: Vec::new(), generation: None, last: 0 }
    }

    /// The part with a number.
    pub(super) fn at(&mut self, number: u16) -> Option<&mut LiveWorker> {
        self.parts.get_mut(usize::from(number))
    }

    /// The part of the site that answers to a host, if that site has live data.
    pub(super) fn of_host(&mut self, host: &[u8], sites: &mut SitesHandler) -> Option<&mut LiveWorker> {
        let site = sites.site_of(host);
        let (generation, names) = sites.names();
        if self.generation != Some(generation) {
            let place = |name: &Box<str>| self.names.iter().position(|own| own == name);
            self.of_sites = names.iter().map(place).collect();
            self.generation = Some(generation);
        }
        let place = self.of_sites.get(site).copied().flatten()?;
        self.parts.get_mut(place)
    }

    /// The part to which an exchange belongs, if it is one of live data.
    #[inline]
    pub(super) fn of_exchange(&mut self, address: Address) -> Option<&mut LiveWorker> {
        if !self.parts.get(self.last).is_some_and(|part| part.has(address)) {
            self.last = self.parts.iter().position(|part| part.has(address))?;
        }
        self.parts.get_mut(self.last)
    }

    /// All parts.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut LiveWorker> {
        self.parts.iter_mut()
    }
}
