//! What the server knows about itself, as JSON at a path of the operator's choice; and what stands before
//! all sites.
//!
//! The page must never be reachable unless asked for, and never cost a request elsewhere more than a
//! comparison.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use staunch_engine::{
    Address, Answer, Answered, Body, Departure, Finished, Handler, Open, Outbox, Stats, Upstream,
    UpstreamEvent,
};
use staunch_protocol::{Deadline, Status};
use staunch_protocol::{Method, Request};

use crate::admission;
use crate::https::HttpsHosts;
use crate::live::LiveHandler;
use crate::sites::SitesShared;

/// What only the program around the sites knows.
#[derive(Debug)]
pub struct About {
    /// Version of the server.
    pub version: &'static str,
    /// Name of the network backend.
    pub io: &'static str,
    /// Counters of every worker.
    pub stats: Vec<Arc<Stats>>,
}

/// The page: where it stands and what it tells.
pub struct StatusPage {
    path: String,
    about: About,
    sites: Arc<SitesShared>,
    started: Instant,
}

impl StatusPage {
    /// A page at `path` (as sent by peers, not decoded). `started` is when the server began.
    pub fn new(path: String, about: About, sites: Arc<SitesShared>, started: Instant) -> Self {
        Self { path, about, sites, started }
    }

    /// Kept apart from the path of all other requests, which else carries its code and its stack frame.
    #[cold]
    #[inline(never)]
    fn answer(&self, answer: Answer<'_>) -> Answered {
        let body = self.json();
        let length = body.len();
        let fields = format!(
            "Content-Type: application/json\r\nContent-Length: {length}\r\n\
             Cache-Control: no-store\r\n"
        );
        answer.bytes(Status::OK, fields.as_bytes(), &body)
    }

    fn json(&self) -> Vec<u8> {
        let sum = |of: &dyn Fn(&Stats) -> u64| self.about.stats.iter().map(|stats| of(stats)).sum::<u64>();
        let accepted = sum(&|stats| stats.accepted.get());
        let closed = sum(&|stats| stats.closed.get());
        let responses: serde_json::Map<_, _> = (1..=5)
            .map(|class| (format!("{class}xx"), json!(sum(&|stats| stats.responses(class)))))
            .collect();
        let timeouts = json!({
            "header": sum(&|stats| stats.timeouts(Deadline::Header)),
            "keep_alive": sum(&|stats| stats.timeouts(Deadline::KeepAlive)),
            "body": sum(&|stats| stats.timeouts(Deadline::Body)),
            "send": sum(&|stats| stats.timeouts(Deadline::Send)),
            "linger": sum(&|stats| stats.timeouts(Deadline::Linger)),
        });
        let content = self.sites.progress();
        let status = json!({
            "server": "staunch",
            "version": self.about.version,
            "io": self.about.io,
            "workers": self.about.stats.len(),
            "uptime_seconds": self.started.elapsed().as_secs(),
            "connections": {
                "open": accepted.saturating_sub(closed),
                "accepted": accepted,
                "accept_stops": sum(&|stats| stats.accept_stops.get()),
            },
            "requests_total": sum(&|stats| stats.requests.get()),
            "rejected_total": sum(&|stats| stats.rejected.get()),
            "bytes_sent_total": sum(&|stats| stats.sent_bytes.get()),
            "clients": {
                "connections_over": sum(&|stats| stats.client_connections.get()),
                "requests_over": sum(&|stats| stats.client_rate.get()),
                "denied": sum(&|stats| stats.client_denied.get()),
                "table_full": sum(&|stats| stats.client_table_full.get()),
                "proxy_faults": sum(&|stats| stats.proxy_faults.get()),
            },
            "turns_total": sum(&|stats| stats.turns.get()),
            "responses": responses,
            "timeouts": timeouts,
            "content": {
                "files": content.files,
                "prepared": content.prepared,
                "encodings": content.encodings_done,
                "held_bytes": content.bytes_held,
                "budget_bytes": self.sites.budget_bytes(),
                "done": content.done,
            },
        });
        let mut text = status.to_string().into_bytes();
        text.push(b'\n');
        text
    }
}

/// Sites with a page about the server, if one is asked for, with those of them that are led to HTTPS, and
/// with those that ask their clients for certificates.
pub struct Reporting {
    sites: LiveHandler,
    page: Option<Arc<StatusPage>>,
    https: Arc<HttpsHosts>,
}

impl Reporting {
    /// The handler of one worker.
    pub fn new(sites: LiveHandler, page: Option<Arc<StatusPage>>, https: Arc<HttpsHosts>) -> Self {
        Self { sites, page, https }
    }

    /// Answers for whom the request's site does not admit, by leading it to HTTPS or by a refusal.
    #[cold]
    #[inline(never)]
    fn admit<'a>(&self, request: &Request<'_>, answer: Answer<'a>) -> Result<Answer<'a>, Answered> {
        let answer = match admission::admit(self.sites.sites().demand(request.host), answer) {
            Ok(answer) => return Ok(answer),
            Err(answer) => answer,
        };
        let led = if self.https.is_on() { self.https.lead(request, answer) } else { Err(answer) };
        Err(led.unwrap_or_else(admission::refuse))
    }
}

impl Handler for Reporting {
    type Mail = <LiveHandler as Handler>::Mail;

    #[inline]
    fn handle(&mut self, request: &Request<'_>, mut answer: Answer<'_>) -> Answered {
        self.sites.look_again();
        if self.sites.sites().asks_clients() {
            match self.admit(request, answer) {
                Ok(admitted) => answer = admitted,
                Err(answered) => return answered,
            }
        }
        match &self.page {
            Some(page)
                if request.path == page.path.as_bytes()
                    && matches!(request.method, Method::Get | Method::Head) =>
            {
                page.answer(answer)
            }
            _ if self.https.is_on() => match self.https.lead(request, answer) {
                Ok(answered) => answered,
                Err(answer) => self.sites.answer(request, answer),
            },
            _ => self.sites.answer(request, answer),
        }
    }

    fn resume(&mut self, mail: Self::Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.sites.resume(mail, request, answer)
    }

    fn woken(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.sites.woken(request, answer)
    }

    /// The sites may be others than when the head of the request came.
    fn collected(&mut self, body: Vec<u8>, request: &Request<'_>, mut answer: Answer<'_>) -> Answered {
        self.sites.look_again();
        if self.sites.sites().asks_clients() {
            match self.admit(request, answer) {
                Ok(admitted) => answer = admitted,
                Err(answered) => return answered,
            }
        }
        self.sites.collected(body, request, answer)
    }

    fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        self.sites.body(body, open);
    }

    fn ready(&mut self, open: &mut Open<'_>) {
        self.sites.ready(open);
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

    fn mail(&mut self, mail: Self::Mail, outbox: &Outbox) {
        self.sites.mail(mail, outbox);
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        self.sites.finished(finished);
    }

    fn left(&mut self, address: Address, departure: Departure) {
        self.sites.left(address, departure);
    }
}
