//! All figures of one moment, as `/status.json` gives them and `staunch top` reads them.
//!
//! It owns the names of refusals and deadlines. It must never change what it reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use staunch_engine::{Histogram, Stats, TlsHandshake, TlsRefusal};
use staunch_protocol::Deadline;

use super::fabric::FabricFigures;
use super::process::ProcessFigures;
use crate::dictionary::DictionaryFigures;
use crate::live::LiveFigures;
use crate::log::LogCounts;
use crate::proxy::ProxyFigures;

/// Counts by the name of their reason.
pub type ByReason = BTreeMap<String, u64>;

/// Whether requests should be sent here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Readiness {
    /// Not yet: workers do not accept yet, or folders are walked for the first time.
    Preparing,
    /// Yes.
    Ready,
    /// No longer: it is ending.
    Draining,
}

/// The server at one moment. Everything counts from its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Version of the server.
    pub version: String,
    /// Name of the network backend.
    pub io: String,
    /// Number of the process.
    pub process_id: u32,
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// Whether requests should be sent to it.
    pub readiness: Readiness,
    /// Most connections at a time, all workers together.
    pub connections_max: u64,
    /// Each worker, in order.
    pub workers: Vec<WorkerFigures>,
    /// Figures of each site.
    pub sites: Vec<SiteFigures>,
    /// Live data, if it is served.
    #[serde(default)]
    pub live: Option<LiveFigures>,
    /// Applications that requests are passed on to, if there are any.
    #[serde(default)]
    pub proxy: Option<ProxyFigures>,
    /// The other servers of the LAN, if they are told of.
    #[serde(default)]
    pub fabric: Option<FabricFigures>,
    /// Faults of single sites and of logs while the rest is served, in sentences.
    #[serde(default)]
    pub troubles: Vec<String>,
    /// The access log, if there is one.
    pub log: LogFigures,
    /// The server's own lines.
    #[serde(default)]
    pub error_log: ErrorLogFigures,
    /// What the kernel says of the process.
    pub process: ProcessFigures,
    /// What came of the last reload, if there was one.
    #[serde(default)]
    pub reload: Option<ReloadFigures>,
}

/// What came of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadFigures {
    /// Which one since the start, from 1.
    pub number: u64,
    /// Whether the configuration is in use.
    pub is_applied: bool,
    /// What the server said of it.
    pub text: String,
}

/// Figures of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerFigures {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections ended.
    pub closed: u64,
    /// Connections with an answer under way.
    pub sending: u64,
    /// Requests that wait for their answer.
    pub waiting: u64,
    /// Requests answered.
    pub requests: u64,
    /// Of them, those that had to wait for content to be loaded.
    pub requests_late: u64,
    /// Bytes handed to the kernel.
    pub sent_bytes: u64,
    /// Sends that failed.
    pub sends_failed: u64,
    /// Times accepting stopped.
    pub accept_stops: u64,
    /// Times accepting paused because more was accepted than patience allows.
    pub accept_pauses: u64,
    /// Times newcomers were kept out of the kernel's queue.
    pub newcomers_stopped: u64,
    /// Bytes that peers make it hold.
    #[serde(default)]
    pub memory_held_bytes: u64,
    /// Bytes that they may make it hold.
    #[serde(default)]
    pub memory_budget_bytes: u64,
    /// What was spoken in HTTP/2.
    #[serde(default)]
    pub http2: Http2Figures,
    /// Turns of the loop.
    pub turns: u64,
    /// Answers by class of their status: 1xx to 5xx.
    pub responses: [u64; 5],
    /// Connections and requests of clients that could not be counted.
    pub uncounted_clients: u64,
    /// Connections and requests refused.
    pub refusals: ByReason,
    /// Connections ended by a deadline.
    pub timeouts: ByReason,
    /// Secured connections.
    #[serde(default)]
    pub tls: TlsFigures,
    /// How long answers took.
    pub latency: HistogramFigures,
    /// How long requests may have waited before they were looked at.
    pub queue_age: HistogramFigures,
}

/// HTTP/2 of one worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Figures {
    /// Connections that spoke it.
    pub connections: u64,
    /// Requests that came by it.
    pub requests: u64,
    /// Of these, those that were over before their answers were complete.
    pub resets: u64,
    /// What came as a request and was none, or one too many.
    pub refused: u64,
    /// Connections that ended because their peers did too much that is odd.
    pub calmed: u64,
    /// WebSockets that were opened on a stream.
    pub websockets: u64,
}

/// Secured connections of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFigures {
    /// Handshakes that are over, by version and kind: `1.3 full`, `1.3 resumed` and so on.
    pub handshakes: ByReason,
    /// Handshakes with the hybrid key exchange, of all that are over.
    pub hybrid: u64,
    /// Handshakes that came to nothing.
    pub refusals: ByReason,
    /// Handshakes at work.
    pub shaking: u64,
    /// Connections with keys at hand.
    pub awake: u64,
    /// Connections that rest.
    pub asleep: u64,
    /// Connections ended for a fault of the peer's records.
    pub faults: u64,
    /// Connections whose peer left without saying so.
    pub truncated: u64,
    /// Empty records, warnings and key updates of peers.
    pub oddities: u64,
}

/// A histogram: counts by bucket, without sums over them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramFigures {
    /// How many, by bucket of [`staunch_engine::BOUNDS_NS`]; the last is what is above.
    pub buckets: Vec<u64>,
    /// The sum, in nanoseconds.
    pub sum_ns: u64,
}

/// Figures of a site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteFigures {
    /// Its name in the configuration.
    pub name: String,
    /// Files found.
    pub files: u64,
    /// Answers held.
    pub prepared: u64,
    /// Encodings made.
    pub encodings: u64,
    /// Bytes of content that are held.
    pub held_bytes: u64,
    /// Bytes that may be held.
    pub budget_bytes: u64,
    /// Differences to dictionaries, if any of its answers is one.
    #[serde(default)]
    pub dictionary: Option<DictionaryFigures>,
    /// Whether its folder was walked, and every file that has room was loaded.
    #[serde(default)]
    pub walked: bool,
    /// Whether everything is prepared that will be without being asked for, encodings too.
    pub done: bool,
}

/// Lines of the access log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFigures {
    /// Lines that were written.
    pub written: u64,
    /// Dropped, because the log was too slow.
    pub dropped: u64,
    /// Lost, because writing failed.
    pub failed: u64,
}

/// The server's own lines, in the error log, on standard error and on standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorLogFigures {
    /// Lines that were written.
    pub written: u64,
    /// Lost: they found no room, or writing failed.
    pub lost: u64,
}

const DEADLINES: [(&str, Deadline); 5] = [
    ("header", Deadline::Header),
    ("keep_alive", Deadline::KeepAlive),
    ("body", Deadline::Body),
    ("send", Deadline::Send),
    ("linger", Deadline::Linger),
];

fn refusals(stats: &Stats) -> [(&'static str, u64); 10] {
    [
        ("malformed", stats.connections.rejected.get()),
        ("patience", stats.pressure.shed_patience.get()),
        ("low_class", stats.pressure.shed_low.get()),
        ("full", stats.pressure.shed_full.get()),
        ("idle_for_others", stats.pressure.evicted_idle.get()),
        ("memory", stats.pressure.closed_for_memory.get()),
        ("client_connections", stats.clients.connections.get()),
        ("client_rate", stats.clients.rate.get()),
        ("client_denied", stats.clients.denied.get()),
        ("proxy_fault", stats.connections.proxy_faults.get()),
    ]
}

const HANDSHAKES: [(&str, TlsHandshake); 4] = [
    ("1.3 full", TlsHandshake::Full13),
    ("1.3 resumed", TlsHandshake::Resumed13),
    ("1.2 full", TlsHandshake::Full12),
    ("1.2 resumed", TlsHandshake::Resumed12),
];

const TLS_REFUSALS: [(&str, TlsRefusal); 12] = [
    ("plain_http", TlsRefusal::PlainHttp),
    ("unknown_name", TlsRefusal::UnknownName),
    ("refused", TlsRefusal::Refused),
    ("left", TlsRefusal::Left),
    ("timed_out", TlsRefusal::TimedOut),
    ("crowded", TlsRefusal::Crowded),
    ("certificate_missing", TlsRefusal::CertificateMissing),
    ("certificate_expired", TlsRefusal::CertificateExpired),
    ("certificate_revoked", TlsRefusal::CertificateRevoked),
    ("certificate_unknown", TlsRefusal::CertificateUnknown),
    ("revocation_unknown", TlsRefusal::RevocationUnknown),
    ("certificate_bad", TlsRefusal::CertificateBad),
];

impl TlsFigures {
    fn of(stats: &Stats) -> Self {
        let handshakes = HANDSHAKES.map(|(name, how)| (name.to_owned(), stats.tls.handshakes(how)));
        let refusals = TLS_REFUSALS.map(|(name, why)| (name.to_owned(), stats.tls.refusals(why)));
        Self {
            handshakes: handshakes.into(),
            refusals: refusals.into(),
            hybrid: stats.tls.hybrid.get(),
            shaking: stats.tls.shaking.get(),
            awake: stats.tls.awake.get(),
            asleep: stats.tls.asleep.get(),
            faults: stats.tls.faults.get(),
            truncated: stats.tls.truncated.get(),
            oddities: stats.tls.oddities.get(),
        }
    }
}

impl WorkerFigures {
    /// What a worker has counted.
    pub fn of(stats: &Stats) -> Self {
        let named = |(name, count): (&str, u64)| (name.to_owned(), count);
        let (requests, late) = (stats.requests.answered.get(), stats.requests.answered_late.get());
        let waits_over = stats.requests.waits_over.get() + stats.requests.waits_lost.get();
        Self {
            accepted: stats.connections.accepted.get(),
            closed: stats.connections.closed.get(),
            sending: stats.connections.sending.get(),
            waiting: stats.requests.waits.get().saturating_sub(waits_over),
            requests,
            requests_late: late,
            sent_bytes: stats.sends.bytes.get(),
            sends_failed: stats.sends.failed.get(),
            accept_stops: stats.pressure.accept_stops.get(),
            accept_pauses: stats.pressure.accept_pauses.get(),
            newcomers_stopped: stats.pressure.newcomers_stopped.get(),
            memory_held_bytes: stats.pressure.held_bytes.get(),
            memory_budget_bytes: stats.pressure.budget_bytes.get(),
            http2: Http2Figures::of(stats),
            turns: stats.turns.count.get(),
            responses: [1, 2, 3, 4, 5].map(|class| stats.requests.responses(class)),
            uncounted_clients: stats.clients.table_full.get(),
            refusals: refusals(stats).map(named).into(),
            timeouts: DEADLINES
                .map(|(name, deadline)| named((name, stats.connections.timeouts(deadline))))
                .into(),
            tls: TlsFigures::of(stats),
            latency: HistogramFigures::of(&stats.turns.latency),
            queue_age: HistogramFigures::of(&stats.turns.queue_age),
        }
    }

    /// Connections open.
    pub fn open(&self) -> u64 {
        self.accepted.saturating_sub(self.closed)
    }
}

impl Http2Figures {
    fn of(stats: &Stats) -> Self {
        Self {
            connections: stats.http2.connections.get(),
            requests: stats.http2.requests.get(),
            resets: stats.http2.resets.get(),
            refused: stats.http2.refused.get(),
            calmed: stats.http2.calmed.get(),
            websockets: stats.http2.websockets.get(),
        }
    }
}

impl HistogramFigures {
    fn of(histogram: &Histogram) -> Self {
        Self { buckets: histogram.buckets().to_vec(), sum_ns: histogram.sum_ns() }
    }
}

impl From<LogCounts> for LogFigures {
    fn from(counts: LogCounts) -> Self {
        Self { written: counts.written, dropped: counts.dropped, failed: counts.failed }
    }
}
