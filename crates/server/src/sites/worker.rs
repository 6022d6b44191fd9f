//! A worker's view of all sites: which site a request is for.
//!
//! With one site a request costs one comparison more than without this. It must never wait for an exchange of
//! the sites.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use staunch_engine::{Address, Answer, Answered, Departure, PlaceClass};
use staunch_protocol::{Method, Request};

use super::{Sites, SitesShared};
use crate::config::ClientDemand;
use crate::content::load::Outcome;
use crate::errand::Errand;
use crate::rules::auth::Tag;
use crate::shared::{Letter, SiteShared};
use crate::site::{PassedOn, Site};

/// A worker's part of all sites.
pub(crate) struct SitesWorker {
    shared: Arc<SitesShared>,
    generation: usize,
    sites: Arc<Sites>,
    /// The site that answers to all names no other has.
    default: Site,
    /// All sites by number, the default one apart. Empty where the host of a request decides nothing.
    others: Vec<Option<Site>>,
    /// Whether any site asks its clients for certificates.
    asks_clients: bool,
}

impl SitesWorker {
    /// As the sites are now.
    pub(crate) fn new(shared: &Arc<SitesShared>) -> Self {
        // The number first: a table that is newer than its number is only taken over once more.
        let generation = shared.generation.load(Ordering::Acquire);
        let sites = shared.sites.load_full();
        let default = Site::new(Arc::clone(&sites.sites[sites.hosts.default]));
        let asks_clients = sites.ask_clients();
        let shared = Arc::clone(shared);
        let mut worker = Self { shared, generation, sites, default, others: Vec::new(), asks_clients };
        worker.others = worker.parts();
        worker
    }

    /// Whether the table of sites was exchanged.
    #[inline]
    pub(crate) fn are_outdated(&self) -> bool {
        self.shared.generation.load(Ordering::Acquire) != self.generation
    }

    /// Goes by the current table from now on.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_over(&mut self) {
        *self = Self::new(&Arc::clone(&self.shared));
    }

    /// Whether there is one site, which answers to every host.
    pub(crate) fn are_one(&self) -> bool {
        self.others.is_empty()
    }

    /// Answers by the default site.
    #[inline]
    pub(crate) fn answer_by_default(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.default.handle(request, answer)
    }

    /// Answers by the site of the request's host, in the table that was taken over last.
    pub(crate) fn answer(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if self.are_one() {
            self.answer_by_default(request, answer)
        } else {
            self.answer_by_host(request, answer)
        }
    }

    /// Tells who answers a request: the site of its host, or an application for it.
    pub(crate) fn pass_on<'e>(&mut self, errand: Errand<'e>) -> PassedOn<'e> {
        if self.are_one() {
            return self.default.pass_on(errand);
        }
        let place = self.sites.hosts.find(errand.request.host);
        let is_read = matches!(errand.request.method, Method::Get | Method::Head);
        if is_read && self.sites.hosts.canonical(place).is_some() {
            return PassedOn::Site(errand);
        }
        match self.others.get_mut(place.site) {
            Some(Some(site)) => site.pass_on(errand),
            _ => self.default.pass_on(errand),
        }
    }

    /// How urgent a request is by the rules of its site, in the table that was taken over last.
    pub(crate) fn class(&self, request: &Request<'_>) -> PlaceClass {
        let of_host = || self.others.get(self.sites.hosts.find(request.host).site)?.as_ref();
        let site = if self.are_one() { None } else { of_host() };
        site.unwrap_or(&self.default).class(request)
    }

    /// Tells who answers a request for which another thread has looked what there is.
    pub(crate) fn pass_on_loaded<'e>(
        &mut self,
        site: Arc<SiteShared>,
        outcome: Outcome,
        errand: Errand<'e>,
    ) -> PassedOn<'e> {
        match self.worker_part(&site) {
            Some(part) => part.pass_on_loaded(outcome, errand),
            None => Site::new(site).pass_on_loaded(outcome, errand),
        }
    }

    /// Learns what a check has found out about the credentials of a request, which is then dealt with anew.
    /// [`SitesWorker::forget_verdict`] is due behind that.
    pub(crate) fn learn(&mut self, site: &Arc<SiteShared>, tag: Tag, since_s: Option<u32>) {
        if let Some(part) = self.worker_part(site) {
            part.learn(tag, since_s);
        }
    }

    /// See [`SitesWorker::learn`].
    pub(crate) fn forget_verdict(&mut self, site: &Arc<SiteShared>) {
        if let Some(part) = self.worker_part(site) {
            part.forget_verdict();
        }
    }

    /// Whether any site asks its clients for certificates.
    #[inline]
    pub(crate) fn ask_clients(&self) -> bool {
        self.asks_clients
    }

    /// What the site of a host asks of its clients' certificates.
    pub(crate) fn demand(&self, host: &[u8]) -> Option<ClientDemand> {
        self.sites.sites[self.sites.hosts.find(host).site].load.config.clients
    }

    /// Number of the site that answers to a host, in the table of `names`.
    pub(crate) fn site_of(&self, host: &[u8]) -> usize {
        if self.sites.sites.len() == 1 { 0 } else { self.sites.hosts.find(host).site }
    }

    /// Names of the sites by number, and what tells this table from those before it.
    pub(crate) fn names(&self) -> (usize, &[Box<str>]) {
        (self.generation, &self.sites.hosts.names)
    }

    /// Mail of the crew came for a request that waits.
    pub(crate) fn resume(
        &mut self,
        site: Arc<SiteShared>,
        letter: Letter,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        match self.worker_part(&site) {
            Some(part) => part.resume(letter, request, answer),
            // The site was removed meanwhile, and still owes this answer.
            None => Site::new(site).resume(letter, request, answer),
        }
    }

    /// The peer of a request that waits has left.
    pub(crate) fn left(&mut self, address: Address, departure: Departure) {
        self.shared.crew.queues.checks.leave(address, departure);
    }

    fn parts(&self) -> Vec<Option<Site>> {
        let default = self.sites.hosts.default;
        let part = |(number, site)| (number != default).then(|| Site::new(Arc::clone(site)));
        if self.sites.sites.len() == 1 && !self.sites.hosts.redirects() {
            return Vec::new();
        }
        self.sites.sites.iter().enumerate().map(part).collect()
    }

    #[inline(never)]
    fn answer_by_host(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let place = self.sites.hosts.find(request.host);
        let site = match self.others.get_mut(place.site) {
            Some(Some(site)) => site,
            _ => &mut self.default,
        };
        match self.sites.hosts.canonical(place) {
            Some(origin) if matches!(request.method, Method::Get | Method::Head) => {
                site.reply_elsewhere(origin, Errand { request, answer })
            }
            _ => site.handle(request, answer),
        }
    }

    fn worker_part(&mut self, shared: &Arc<SiteShared>) -> Option<&mut Site> {
        let mut parts = std::iter::once(&mut self.default).chain(self.others.iter_mut().flatten());
        parts.find(|part| Arc::ptr_eq(&part.shared, shared))
    }
}
