//! Sites with live data before them: which requests and exchanges are whose.
//!
//! It must cost a request for a file nothing but a look at its path, and not even that while live data is
//! off.

use std::sync::Arc;

use staunch_engine::{
    Address, Answer, Answered, Body, Departure, Finished, Handler, Open, Outbox, Upstream, UpstreamEvent,
};
use staunch_protocol::{Request, Status};

use super::route::Endpoint;
use super::sites::{LiveParts, LiveSites};
use crate::shared::{Mail, MailContent};
use crate::sites::SitesHandler;

/// The handler of one worker.
pub struct LiveHandler {
    sites: SitesHandler,
    live: Option<Box<LiveParts>>,
}

impl LiveHandler {
    /// The sites alone, or with live data before those that have it.
    pub fn new(sites: SitesHandler, live: Option<&Arc<LiveSites>>, worker: u16) -> Self {
        Self { sites, live: live.map(|shared| Box::new(LiveParts::new(shared, worker))) }
    }

    /// See [`SitesHandler::look_again`].
    #[inline]
    pub(crate) fn look_again(&mut self) {
        self.sites.look_again();
    }

    /// The sites behind it, as they were looked at last.
    #[inline]
    pub(crate) fn sites(&self) -> &SitesHandler {
        &self.sites
    }

    /// As [`Handler::handle`], by the table of sites that was looked at last.
    #[inline]
    pub(crate) fn answer(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if let Some(live) = &mut self.live
            && let Some(endpoint) = Endpoint::of(request.path)
            && let Some(part) = live.of_host(request.host, &self.sites)
        {
            return part.handle(endpoint, request, answer);
        }
        self.sites.answer(request, answer)
    }
}

impl Handler for LiveHandler {
    type Mail = Mail;

    #[inline]
    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.look_again();
        self.answer(request, answer)
    }

    fn resume(&mut self, mail: Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match mail.content {
            MailContent::Live(number, mail) => {
                match self.live.as_mut().and_then(|live| live.at(number)) {
                    Some(part) => part.resume(mail, request, answer),
                    // Only live data sends such mail.
                    None => answer.bytes(Status::INTERNAL_SERVER_ERROR, b"Content-Length: 0\r\n", b""),
                }
            }
            MailContent::Site(site, letter) => self.sites.resume_site(site, letter, request, answer),
        }
    }

    fn woken(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.sites.woken(request, answer)
    }

    fn collected(&mut self, body: Vec<u8>, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if let Some(live) = &mut self.live
            && Endpoint::of(request.path).is_some()
            && let Some(part) = live.of_host(request.host, &self.sites)
        {
            return part.collected(&body, request, answer);
        }
        // Only live data collects bodies: a reload has given the host to a site that has none.
        self.sites.handle(request, answer)
    }

    fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        match self.live.as_mut().and_then(|live| live.of_exchange(open.address())) {
            Some(part) => part.body(body, open),
            None => self.sites.body(body, open),
        }
    }

    fn ready(&mut self, open: &mut Open<'_>) {
        match self.live.as_mut().and_then(|live| live.of_exchange(open.address())) {
            Some(part) => part.ready(open),
            None => self.sites.ready(open),
        }
    }

    fn mail(&mut self, mail: Mail, outbox: &Outbox) {
        match mail.content {
            MailContent::Live(number, mail) => {
                if let Some(part) = self.live.as_mut().and_then(|live| live.at(number)) {
                    part.mail(mail, outbox);
                }
            }
            content => self.sites.mail(Mail { content }, outbox),
        }
    }

    fn upstreams_max(&self) -> u32 {
        self.sites.upstreams_max()
    }

    fn upstream(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        self.sites.upstream(upstream, event, open, outbox);
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        match self.live.as_mut().and_then(|live| live.of_exchange(finished.address)) {
            Some(part) => part.finished(finished),
            None => self.sites.finished(finished),
        }
    }

    fn left(&mut self, address: Address, departure: Departure) {
        self.live.iter_mut().flat_map(|live| live.iter_mut()).for_each(|part| part.left(address, departure));
        self.sites.left(address, departure);
    }
}
