//! A worker's parts of the live data of all sites: which part a request is for.
//!
//! Looking for the owner of a request must cost one for a file nothing: the path is looked at first.

use std::sync::Arc;

use super::sites::LiveSites;
use super::worker::LiveWorker;
use crate::sites::SitesWorker;

/// A worker's parts of the live data of all sites.
pub(crate) struct LiveParts {
    parts: Vec<LiveWorker>,
    names: Vec<Box<str>>,
    /// The number of the part of each site, by the site's number in the table of sites that was seen last.
    of_sites: Vec<Option<u16>>,
    generation: Option<usize>,
}

impl LiveParts {
    /// The parts of one worker.
    pub(crate) fn new(shared: &LiveSites, worker: u16) -> Self {
        let parts = shared.sites.iter().map(|site| LiveWorker::new(Arc::clone(site), worker)).collect();
        let names = shared.iter().map(|site| site.site().into()).collect();
        Self { parts, names, of_sites: Vec::new(), generation: None }
    }

    /// The part with a number.
    #[inline]
    pub(crate) fn at(&mut self, number: u16) -> Option<&mut LiveWorker> {
        self.parts.get_mut(usize::from(number))
    }

    /// The number of the part of the site that answers to a host, if that site has live data.
    pub(crate) fn of_host(&mut self, host: &[u8], sites: &SitesWorker) -> Option<u16> {
        let site = sites.site_of(host);
        let (generation, names) = sites.names();
        if self.generation != Some(generation) {
            let number = |name: &str| (0..).zip(&self.names).find(|(_, own)| ***own == *name);
            self.of_sites = names.iter().map(|name| number(name).map(|(number, _)| number)).collect();
            self.generation = Some(generation);
        }
        self.of_sites.get(site).copied().flatten()
    }
}
