//! A worker's view of all sites: which site a request is for.
//!
//! With one site a request costs one comparison more than without this. It must never wait for an exchange of
//! the sites.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use staunch_engine::{Address, Answer, Answered, Departure, Handler};
use staunch_protocol::{Method, Request, Status};

use super::{Sites, SitesShared};
use crate::config::ClientDemand;
use crate::errand::Errand;
use crate::shared::{Letter, Mail, MailContent, SiteShared};
use crate::site::Site;

/// The handler of one worker.
pub struct SitesHandler {
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

impl SitesShared {
    /// The handler of one worker.
    pub fn handler(self: &Arc<Self>) -> SitesHandler {
        SitesHandler::new(Arc::clone(self))
    }
}

impl Handler for SitesHandler {
    type Mail = Mail;

    #[inline]
    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.look_again();
        self.answer(request, answer)
    }

    fn resume(&mut self, mail: Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match mail.content {
            MailContent::Site(site, letter) => self.resume_site(site, letter, request, answer),
            // The mail is for the handler that stands before the sites.
            MailContent::Live(..) => {
                answer.bytes(Status::INTERNAL_SERVER_ERROR, b"Content-Length: 0\r\n", b"")
            }
        }
    }

    fn left(&mut self, address: Address, departure: Departure) {
        self.shared.crew.queues.checks.leave(address, departure);
    }
}

impl SitesHandler {
    /// Takes over the current table if it is another. What follows goes by one table until the next call, so
    /// nobody is admitted by one and answered by the next.
    #[inline]
    pub(crate) fn look_again(&mut self) {
        if self.shared.generation.load(Ordering::Acquire) != self.generation {
            self.take_over();
        }
    }

    /// As [`Handler::handle`], by the table that was looked at last.
    #[inline]
    pub(crate) fn answer(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if self.others.is_empty() {
            return self.default.handle(request, answer);
        }
        self.handle_by_host(request, answer)
    }

    /// Whether any site asks its clients for certificates.
    #[inline]
    pub(crate) fn asks_clients(&self) -> bool {
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

    /// See [`Handler::resume`].
    pub(crate) fn resume_site(
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

    fn new(shared: Arc<SitesShared>) -> Self {
        // The number first: a table that is newer than its number is only taken over once more.
        let generation = shared.generation.load(Ordering::Acquire);
        let sites = shared.sites.load_full();
        let default = Site::new(Arc::clone(&sites.sites[sites.hosts.default]));
        let asks_clients = sites.ask_clients();
        let mut handler = Self { shared, generation, sites, default, others: Vec::new(), asks_clients };
        handler.others = handler.parts();
        handler
    }

    /// The sites were exchanged.
    #[cold]
    #[inline(never)]
    fn take_over(&mut self) {
        *self = Self::new(Arc::clone(&self.shared));
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
    fn handle_by_host(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
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
