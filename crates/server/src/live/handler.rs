//! Sites with live data before them: which requests and exchanges are whose.
//!
//! It must cost a request for a file nothing but a look at its path, and not even that while live data is
//! off.

use std::sync::Arc;

use staunch_engine::{
    Address, Answer, Answered, Body, Departure, Finished, Handler, Open, Outbox, Upstream, UpstreamEvent,
};
use staunch_protocol::Status;
use staunch_protocol::http1::Request;

use super::route::Endpoint;
use super::shared::LiveShared;
use super::worker::LiveWorker;
use crate::shared::{Mail, MailContent};
use crate::sites::SitesHandler;

/// The handler of one worker.
pub struct LiveHandler {
    sites: SitesHandler,
    live: Option<Box<LiveWorker>>,
}

impl LiveHandler {
    /// The sites alone, or with live data before them.
    pub fn new(sites: SitesHandler, live: Option<&Arc<LiveShared>>, worker: u16) -> Self {
        Self { sites, live: live.map(|shared| Box::new(LiveWorker::new(Arc::clone(shared), worker))) }
    }
}

impl Handler for LiveHandler {
    type Mail = Mail;

    #[inline]
    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if let Some(live) = &mut self.live
            && let Some(endpoint) = Endpoint::of(request.path)
        {
            return live.handle(endpoint, request, answer);
        }
        self.sites.handle(request, answer)
    }

    fn resume(&mut self, mail: Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match (mail.content, &mut self.live) {
            (MailContent::Live(mail), Some(live)) => live.resume(mail, request, answer),
            // Only live data sends such mail.
            (MailContent::Live(_), None) => {
                answer.bytes(Status::INTERNAL_SERVER_ERROR, b"Content-Length: 0\r\n", b"")
            }
            (MailContent::Site(site, letter), _) => self.sites.resume_site(site, letter, request, answer),
        }
    }

    fn woken(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.sites.woken(request, answer)
    }

    fn collected(&mut self, body: Vec<u8>, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match &mut self.live {
            Some(live) if Endpoint::of(request.path).is_some() => live.collected(&body, request, answer),
            _ => self.sites.collected(body, request, answer),
        }
    }

    fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        match &mut self.live {
            Some(live) if live.has(open.address()) => live.body(body, open),
            _ => self.sites.body(body, open),
        }
    }

    fn ready(&mut self, open: &mut Open<'_>) {
        match &mut self.live {
            Some(live) if live.has(open.address()) => live.ready(open),
            _ => self.sites.ready(open),
        }
    }

    fn mail(&mut self, mail: Mail, outbox: &Outbox) {
        match (mail.content, &mut self.live) {
            (MailContent::Live(mail), Some(live)) => live.mail(mail, outbox),
            (MailContent::Live(_), None) => {}
            (content, _) => self.sites.mail(Mail { content }, outbox),
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
        match &mut self.live {
            Some(live) if live.has(finished.address) => live.finished(finished),
            _ => self.sites.finished(finished),
        }
    }

    fn left(&mut self, address: Address, departure: Departure) {
        if let Some(live) = &mut self.live {
            live.left(address, departure);
        }
        self.sites.left(address, departure);
    }
}
