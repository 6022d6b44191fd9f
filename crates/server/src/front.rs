//! The front of a worker: the one handler, through which each request and each later event goes.
//!
//! A request passes the account of the log, the admission of clients, the page about the server and the way
//! to HTTPS, and is answered by its owner: the sites, or the live data of one of them. An exchange that is
//! not over at once has that owner until its end: each later event names it and goes there by one match. It
//! must never cost a request for prepared content of a single site more than three looks.

use std::sync::Arc;

use staunch_engine::{
    Address, Answer, Answered, Body, Departure, Finished, Handler, Open, Outbox, Owner, PlaceClass, Reading,
    Refused, Upstream, UpstreamEvent,
};
use staunch_protocol::{Request, Status};

use crate::admission;
use crate::class::{self, Clues};
use crate::errand::Errand;
use crate::https::HttpsHosts;
use crate::live::LiveSites;
use crate::live::parts::LiveParts;
use crate::live::route::Endpoint;
use crate::live::worker::LiveWorker;
use crate::log::AccessLog;
use crate::log::account::{Before, LogAccount, wants_passed};
use crate::mail::{Mail, Told};
use crate::owner::OwnerPart;
use crate::proxy::{Journey, ProxyErrand, ProxyShared, ProxyWorker};
use crate::rules::auth::Tag;
use crate::shared::{Letter, Purpose, SiteShared};
use crate::site::{PassedOn, PassedTo};
use crate::sites::{SitesShared, SitesWorker};
use crate::status::StatusPage;

/// The parts that requests pass and that answer them, shared by the fronts of all workers.
#[derive(Clone)]
pub struct FrontParts {
    /// The table of sites, which answer whatever nobody else does.
    pub sites: Arc<SitesShared>,
    /// The live data of those sites that have it.
    pub live: Option<Arc<LiveSites>>,
    /// The proxy, if any site passes requests on.
    pub proxy: Option<Arc<ProxyShared>>,
    /// The page about the server.
    pub page: Option<Arc<StatusPage>>,
    /// The hosts that are led to HTTPS.
    pub https: Arc<HttpsHosts>,
    /// The access log.
    pub log: Arc<AccessLog>,
}

impl FrontParts {
    /// Sites, and nothing beside them.
    pub fn of_sites(sites: &Arc<SitesShared>) -> Self {
        let (https, log) = (Arc::default(), AccessLog::new(Arc::new(|_| ())));
        Self { sites: Arc::clone(sites), live: None, proxy: None, page: None, https, log }
    }
}

/// The front of one worker.
pub struct Front {
    account: LogAccount,
    sites: SitesWorker,
    live: Option<Box<LiveParts>>,
    proxy: Option<Box<ProxyWorker>>,
    page: Option<Arc<StatusPage>>,
    https: Arc<HttpsHosts>,
    /// Whether a request can mean nothing but content of the only site, unless hosts are led to HTTPS.
    is_direct: bool,
}

impl Front {
    /// The front of one worker.
    pub fn new(parts: &FrontParts, worker: u16) -> Self {
        let live = parts.live.as_ref().map(|live| Box::new(LiveParts::new(live, worker)));
        let proxy = parts.proxy.as_ref().map(|proxy| Box::new(ProxyWorker::new(proxy, worker)));
        let (page, https) = (parts.page.clone(), Arc::clone(&parts.https));
        let (account, sites) =
            (LogAccount::new(Arc::clone(&parts.log), worker), SitesWorker::new(&parts.sites));
        let is_direct = is_direct(&sites, live.is_some() || proxy.is_some() || page.is_some());
        Self { account, sites, live, proxy, page, https, is_direct }
    }

    /// Takes over the table of sites if it is another. What follows goes by one table until the next call, so
    /// nobody is admitted by one and answered by the next.
    #[inline]
    fn look_again(&mut self) {
        if self.sites.are_outdated() {
            self.take_over();
        }
    }

    #[cold]
    #[inline(never)]
    fn take_over(&mut self) {
        self.sites.take_over();
        let has_others = self.live.is_some() || self.proxy.is_some() || self.page.is_some();
        self.is_direct = is_direct(&self.sites, has_others);
    }

    /// Asks about a request, and notes what was answered where a log wants it.
    #[inline]
    fn accounted(
        &mut self,
        request: &Request<'_>,
        answer: Answer<'_>,
        ask: impl FnOnce(&mut Self, Answer<'_>) -> Answered,
    ) -> Answered {
        let wanted = self.account.wanted();
        if wanted == 0 {
            return ask(self, answer);
        }
        let mut before = Before::of(wanted, request, &answer);
        if wants_passed(wanted) {
            // Drops the journey of an earlier request that no log asked for.
            self.take_journey();
        }
        let answered = ask(self, answer);
        if wants_passed(wanted) {
            before.tell_passed(self.journey_told());
        }
        self.account.note(wanted, request, &before, &answered);
        answered
    }

    /// The way of the request that the proxy has just answered, as the log is told it; empty if it has none.
    #[cold]
    fn journey_told(&mut self) -> Vec<u8> {
        self.take_journey().map(|journey| journey.record()).unwrap_or_default()
    }

    fn take_journey(&mut self) -> Option<Journey> {
        self.proxy.as_mut()?.take_journey()
    }

    /// The way of a request whose exchange is about to end, as the log is told it.
    fn journey_of(&mut self, owner: Owner, address: Address) -> Vec<u8> {
        if !wants_passed(self.account.wanted()) {
            return Vec::new();
        }
        self.proxy_of(owner).and_then(|proxy| proxy.journey_of(address)).unwrap_or_default()
    }

    /// Answers a request that has just come.
    #[inline]
    fn answer(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.look_again();
        if self.is_direct && !self.https.is_on() {
            return self.sites.answer_by_default(request, answer);
        }
        self.answer_by_owner(request, answer)
    }

    #[inline(never)]
    fn answer_by_owner(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let answer = match self.admit(request, answer) {
            Ok(answer) => answer,
            Err(answered) => return answered,
        };
        if let Some(page) = self.page.as_ref().filter(|page| page.is_asked(request)) {
            return page.answer(answer);
        }
        let answer = match self.lead(request, answer) {
            Ok(answered) => return answered,
            Err(answer) => answer,
        };
        if self.live.is_some()
            && let Some(endpoint) = Endpoint::of(request.path)
            && let Some((owner, part)) = self.live_of_host(request.host)
        {
            return part.handle(endpoint, request, answer).owned_by(owner);
        }
        self.answer_by_site(request, answer)
    }

    /// Answers by the site of the request's host, or by an application for it.
    fn answer_by_site(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if self.proxy.is_none() {
            return self.sites.answer(request, answer);
        }
        let told = self.sites.pass_on(Errand { request, answer });
        self.answer_by_told(told)
    }

    /// Answers by whom its site has told.
    fn answer_by_told(&mut self, told: PassedOn<'_>) -> Answered {
        match told {
            PassedOn::Application(to, mut errand) => {
                let PassedTo { ruling, lines, is_guarded, script } = to;
                errand.hint(Some(&ruling));
                let Errand { request, answer } = errand;
                let shows_times = ruling.server_timing;
                let Some(proxy) = &mut self.proxy else { return Self::answer_lost(answer) };
                let application = ruling.proxy.as_ref().map_or("", |proxy| &proxy.application);
                // A proxy in front resumes its own sessions, whoever its clients are.
                let has_ticket = answer.is_resumed() && !answer.is_from_trusted();
                let clues = Clues { of_path: ruling.class, cookies: &ruling.known_cookies, has_ticket };
                let standing = class::standing(&clues, request);
                let errand = ProxyErrand { application, lines, is_guarded, shows_times, standing, script };
                proxy.handle(errand, request, answer)
            }
            PassedOn::Site(Errand { request, answer }) => self.sites.answer(request, answer),
            PassedOn::Answered(answered) => answered,
        }
    }

    /// Deals anew with a request whose credentials were checked.
    fn answer_checked(
        &mut self,
        (site, tag, since_s): (&Arc<SiteShared>, Tag, Option<u32>),
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        self.sites.learn(site, tag, since_s);
        let answered = self.answer_by_site(request, answer);
        self.sites.forget_verdict(site);
        answered
    }

    /// Gives the answer back if the request's site admits the client. Else answers by leading it to HTTPS, or
    /// by a refusal.
    #[inline]
    fn admit<'a>(&self, request: &Request<'_>, answer: Answer<'a>) -> Result<Answer<'a>, Answered> {
        if self.sites.ask_clients() { self.admit_client(request, answer) } else { Ok(answer) }
    }

    #[cold]
    #[inline(never)]
    fn admit_client<'a>(&self, request: &Request<'_>, answer: Answer<'a>) -> Result<Answer<'a>, Answered> {
        let answer = match admission::admit(self.sites.demand(request.host), answer) {
            Ok(answer) => return Ok(answer),
            Err(answer) => answer,
        };
        Err(self.lead(request, answer).unwrap_or_else(admission::refuse))
    }

    /// Answers by leading to HTTPS, or gives the answer back.
    #[inline]
    fn lead<'a>(&self, request: &Request<'_>, answer: Answer<'a>) -> Result<Answered, Answer<'a>> {
        if self.https.is_on() { self.https.lead(request, answer) } else { Err(answer) }
    }

    /// The live data of the site that answers to a host, if it has some, and its owner's name.
    fn live_of_host(&mut self, host: &[u8]) -> Option<(Owner, &mut LiveWorker)> {
        let live = self.live.as_mut()?;
        let number = live.of_host(host, &self.sites)?;
        Some((OwnerPart::Live(number).into(), live.at(number)?))
    }

    /// The live data to which an exchange belongs, if it is one of live data.
    #[inline]
    fn live_of(&mut self, owner: Owner) -> Option<&mut LiveWorker> {
        match OwnerPart::of(owner) {
            OwnerPart::Sites | OwnerPart::Proxy => None,
            OwnerPart::Live(number) => self.live.as_mut()?.at(number),
        }
    }

    /// The proxy, if an exchange belongs to it.
    #[inline]
    fn proxy_of(&mut self, owner: Owner) -> Option<&mut ProxyWorker> {
        self.proxy.as_deref_mut().filter(|_| OwnerPart::of(owner) == OwnerPart::Proxy)
    }

    /// The owner of an exchange that waits hears that its peer has left, or that it was answered otherwise.
    fn tell_left(&mut self, owner: Owner, address: Address, departure: Departure, outbox: Option<&Outbox>) {
        if let Some(proxy) = self.proxy_of(owner) {
            match outbox {
                Some(outbox) if departure == Departure::SendsNoMore => proxy.give_up(address, outbox),
                _ => proxy.left(address),
            }
            return;
        }
        match self.live_of(owner) {
            Some(part) => part.left(address, departure),
            None => self.sites.left(address, departure),
        }
    }

    /// Answers 500: the owner of the exchange is not there.
    #[cold]
    fn answer_lost(answer: Answer<'_>) -> Answered {
        answer.bytes(Status::INTERNAL_SERVER_ERROR, b"Content-Length: 0\r\n", b"")
    }
}

/// Whether nothing but content of one site can be meant. `has_others`: something else may be.
fn is_direct(sites: &SitesWorker, has_others: bool) -> bool {
    sites.are_one() && !sites.ask_clients() && !has_others
}

impl Handler for Front {
    type Mail = Mail;

    #[inline]
    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.accounted(request, answer, |front, answer| front.answer(request, answer))
    }

    #[cold]
    fn gives_way(&self, request: &Request<'_>) -> bool {
        class::is_ahead(request) || self.sites.class(request) == PlaceClass::Low
    }

    fn resume(&mut self, mail: Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.accounted(request, answer, |front, answer| match mail.0 {
            Told::Site(site, Letter::Checked { tag, since_s }) if front.proxy.is_some() => {
                front.answer_checked((&site, tag, since_s), request, answer)
            }
            Told::Site(site, Letter::Loaded(outcome, Purpose::Script)) => {
                let told = front.sites.pass_on_loaded(site, outcome, Errand { request, answer });
                front.answer_by_told(told)
            }
            Told::Site(site, letter) => front.sites.resume(site, letter, request, answer),
            Told::Live(mail) => match front.live_of(answer.owner()) {
                Some(part) => part.resume(mail, request, answer),
                None => Self::answer_lost(answer),
            },
            // Such letters come to the worker, not to an exchange.
            Told::Proxy(_) => Self::answer_lost(answer),
        })
    }

    fn woken(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if self.proxy_of(answer.owner()).is_none() {
            return answer.later();
        }
        self.accounted(request, answer, |front, answer| match &mut front.proxy {
            Some(proxy) => proxy.woken(request, answer),
            None => Self::answer_lost(answer),
        })
    }

    /// The client is admitted anew: its site may demand other things than when the head of the request came.
    fn collected(&mut self, body: Vec<u8>, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.accounted(request, answer, |front, answer| {
            front.look_again();
            let answer = match front.admit(request, answer) {
                Ok(answer) => answer,
                Err(answered) => return answered,
            };
            // A reload may have given the host to another site since: that one judges the body, or has none.
            match front.live_of_host(request.host) {
                Some((_, part)) => part.collected(&body, request, answer),
                // Not by an application: the body that it would get is gone.
                None => front.sites.answer(request, answer),
            }
        })
    }

    /// Neither sites nor live data read a request before they answer it.
    fn reading(&mut self, body: Option<Body<'_>>, request: &Request<'_>, reading: Reading<'_>) -> Answered {
        if self.proxy_of(reading.owner()).is_none() {
            return self.accounted(request, reading.answer(), |_, answer| Self::answer_lost(answer));
        }
        let wanted = self.account.wanted();
        let before = (wanted != 0).then(|| Before::of(wanted, request, reading.pen()));
        self.take_journey();
        let Some(proxy) = &mut self.proxy else { return Self::answer_lost(reading.answer()) };
        let answered = proxy.reading(body, request, reading);
        if let Some(mut before) = before {
            if wants_passed(wanted) {
                before.tell_passed(self.journey_told());
            }
            self.account.note(wanted, request, &before, &answered);
        }
        answered
    }

    fn upstreams_max(&self) -> u32 {
        self.proxy.as_ref().map_or(0, |proxy| proxy.links_max())
    }

    /// Only the proxy makes connections.
    fn upstream(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        if let Some(proxy) = &mut self.proxy {
            proxy.upstream(upstream, event, open, outbox);
        }
    }

    fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        if let Some(proxy) = self.proxy_of(open.owner()) {
            proxy.body(body, open);
        } else if let Some(part) = self.live_of(open.owner()) {
            part.body(body, open);
        }
    }

    fn ready(&mut self, open: &mut Open<'_>) {
        if let Some(proxy) = self.proxy_of(open.owner()) {
            proxy.ready(open);
        } else if let Some(part) = self.live_of(open.owner()) {
            part.ready(open);
        }
        if self.account.wanted() != 0 {
            open.keep_request();
        }
    }

    fn mail(&mut self, owner: Owner, mail: Mail, outbox: &Outbox) {
        match mail.0 {
            Told::Live(mail) => {
                if let Some(part) = self.live_of(owner) {
                    part.mail(mail, outbox);
                }
            }
            Told::Proxy(mail) => {
                if let Some(proxy) = &mut self.proxy {
                    proxy.mail(mail, outbox);
                }
            }
            Told::Site(..) => {}
        }
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        let passed = self.journey_of(finished.owner, finished.address);
        self.account.note_finished(finished, &passed);
        if let Some(proxy) = self.proxy_of(finished.owner) {
            proxy.left(finished.address);
        } else if let Some(part) = self.live_of(finished.owner) {
            part.finished(finished);
        }
    }

    fn left(&mut self, owner: Owner, address: Address, departure: Departure, outbox: &Outbox) {
        self.tell_left(owner, address, departure, Some(outbox));
    }

    /// An exchange that was refused is over for its owner, as if its peer were gone.
    fn refused(&mut self, refused: &Refused<'_>) {
        let passed = refused.owner.map(|owner| self.journey_of(owner, refused.address)).unwrap_or_default();
        self.account.note_refused(refused, &passed);
        if let Some(owner) = refused.owner {
            self.tell_left(owner, refused.address, Departure::Gone, None);
        }
    }
}

#[cfg(test)]
mod tests;
