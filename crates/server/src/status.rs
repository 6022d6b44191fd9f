//! The page about the server, as JSON at a path of the operator's choice.
//!
//! The page must never be reachable unless asked for, and never cost a request elsewhere more than a
//! comparison.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use staunch_engine::{Answer, Answered, Stats};
use staunch_protocol::{Deadline, Method, Request, Status};

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

    /// Whether a request asks for the page.
    pub(crate) fn is_asked(&self, request: &Request<'_>) -> bool {
        request.path == self.path.as_bytes() && matches!(request.method, Method::Get | Method::Head)
    }

    /// Kept apart from the path of all other requests, which else carries its code and its stack frame.
    #[cold]
    #[inline(never)]
    pub(crate) fn answer(&self, answer: Answer<'_>) -> Answered {
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
        let accepted = sum(&|stats| stats.connections.accepted.get());
        let closed = sum(&|stats| stats.connections.closed.get());
        let responses: serde_json::Map<_, _> = (1..=5)
            .map(|class| (format!("{class}xx"), json!(sum(&|stats| stats.requests.responses(class)))))
            .collect();
        let timeouts = json!({
            "header": sum(&|stats| stats.connections.timeouts(Deadline::Header)),
            "keep_alive": sum(&|stats| stats.connections.timeouts(Deadline::KeepAlive)),
            "body": sum(&|stats| stats.connections.timeouts(Deadline::Body)),
            "send": sum(&|stats| stats.connections.timeouts(Deadline::Send)),
            "linger": sum(&|stats| stats.connections.timeouts(Deadline::Linger)),
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
                "accept_stops": sum(&|stats| stats.pressure.accept_stops.get()),
            },
            "requests_total": sum(&|stats| stats.requests.answered.get()),
            "rejected_total": sum(&|stats| stats.connections.rejected.get()),
            "bytes_sent_total": sum(&|stats| stats.sends.bytes.get()),
            "clients": {
                "connections_over": sum(&|stats| stats.clients.connections.get()),
                "requests_over": sum(&|stats| stats.clients.rate.get()),
                "denied": sum(&|stats| stats.clients.denied.get()),
                "table_full": sum(&|stats| stats.clients.table_full.get()),
                "proxy_faults": sum(&|stats| stats.connections.proxy_faults.get()),
            },
            "turns_total": sum(&|stats| stats.turns.count.get()),
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
