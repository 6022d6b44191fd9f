//! Counts of a worker, in groups by subject. Each worker writes its own block; anyone may read it at any
//! time.
//!
//! Counters only grow, gauges show the last turn. They must never be used to decide anything on a request's
//! path.

mod tls;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use staunch_protocol::{Deadline, Status};

pub use self::tls::{TlsHandshake, TlsRefusal, TlsStats};
use crate::counter::{Counter, Gauge};
use crate::histogram::Histogram;

/// Counters of one worker, alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Stats {
    /// Accepted connections.
    pub connections: ConnectionStats,
    /// Requests and their answers.
    pub requests: RequestStats,
    /// Bytes on their way out, on connections of all kinds.
    pub sends: SendStats,
    /// Clients that were limited.
    pub clients: ClientStats,
    /// Peers and requests that had to give way.
    pub pressure: PressureStats,
    /// Connections that the handler has made.
    pub upstreams: UpstreamStats,
    /// Connections and requests that came by HTTP/2.
    pub http2: Http2Stats,
    /// Handshakes, and what secured connections keep.
    pub tls: TlsStats,
    /// Turns of the loop, and how long requests took and waited.
    pub turns: TurnStats,
}

/// How accepted connections come and go.
#[derive(Debug, Default)]
pub struct ConnectionStats {
    /// Connections accepted.
    pub accepted: Counter,
    /// Connections ended. `accepted - closed` are open.
    pub closed: Counter,
    /// Connections ended by the session for a fault of the peer's bytes.
    pub rejected: Counter,
    /// Connections closed because they did not begin with the PROXY header they should.
    pub proxy_faults: Counter,
    /// Connections that had an answer under way when the last turn ended.
    pub sending: Gauge,
    timeouts: [Counter; 5],
}

/// Requests that were answered, and those that had to wait.
#[derive(Debug, Default)]
pub struct RequestStats {
    /// Requests answered by the application.
    pub answered: Counter,
    /// How often a request was told to wait: for a check, and then for what it publishes, counts twice.
    pub waits: Counter,
    /// Waits that ended by mail.
    pub waits_over: Counter,
    /// Requests that were answered after having waited.
    pub answered_late: Counter,
    /// Waits that ended with their connection. `waits - waits_over - waits_lost` last now.
    pub waits_lost: Counter,
    responses: [Counter; 5],
}

/// Sends, on each kind of wire.
#[derive(Debug, Default)]
pub struct SendStats {
    /// Bytes handed to the kernel for sending.
    pub bytes: Counter,
    /// Sends that failed before all was taken.
    pub failed: Counter,
}

/// Clients that had more than their rules allow.
#[derive(Debug, Default)]
pub struct ClientStats {
    /// Connections answered 429, or that would be (dry run), because their client had as many as it may.
    pub connections: Counter,
    /// Requests answered 429, or that would be (dry run), because their client asks too often.
    pub rate: Counter,
    /// Requests answered 403 because their client comes from a network that may not have what they are for.
    pub denied: Counter,
    /// Connections and requests of clients that were not limited for want of a place to count them.
    pub table_full: Counter,
}

/// How a worker has given way, and what it holds.
#[derive(Debug, Default)]
pub struct PressureStats {
    /// Idle connections closed for others, above the soft limit.
    pub evicted_idle: Counter,
    /// Requests answered 503 because only reserved slots were left when their connection came.
    pub shed_full: Counter,
    /// Requests answered 503 because they had waited longer than the patience.
    pub shed_patience: Counter,
    /// Requests that give way answered 503 because they had waited longer than a quarter of the patience.
    pub shed_low: Counter,
    /// Times accepting stopped for want of descriptors, memory or slots.
    pub accept_stops: Counter,
    /// Times accepting paused because what was accepted in a turn was more work than may wait.
    pub accept_pauses: Counter,
    /// Times newcomers were kept out of the kernel's queue because too much waited.
    pub newcomers_stopped: Counter,
    /// Connections closed because peers made the worker hold more than it may.
    pub closed_for_memory: Counter,
    /// What connections hold: input kept, answers that stand to be sent or are in flight.
    pub held_bytes: Gauge,
    /// What they may hold.
    pub budget_bytes: Gauge,
}

/// Connections that the handler has made.
#[derive(Debug, Default)]
pub struct UpstreamStats {
    /// Connections that the handler has begun to make.
    pub opened: Counter,
    /// Connections of these that are over. `opened - closed` are there now.
    pub closed: Counter,
    /// Connections the handler has asked for that could not be made, have failed, or were too slow.
    pub lost: Counter,
}

/// Connections and requests of HTTP/2.
#[derive(Debug, Default)]
pub struct Http2Stats {
    /// Connections that spoke it.
    pub connections: Counter,
    /// Requests that came by it.
    pub requests: Counter,
    /// Requests of these that were over before their answers were complete: cancelled by their peers, or
    /// reset for what these sent, or for what they did not take or send in time.
    pub resets: Counter,
    /// Streams that began as a request and were none, or one too many: reset or answered without a handler.
    pub refused: Counter,
    /// Connections that ended because their peers did too much that is odd.
    pub calmed: Counter,
    /// WebSockets that were opened on a stream (RFC 8441), of live data and of applications.
    pub websockets: Counter,
}

/// Turns of the loop, and what they took.
#[derive(Debug, Default)]
pub struct TurnStats {
    /// Turns of the loop: an idle worker makes none.
    pub count: Counter,
    /// From the turn in which the last bytes of a request were reported to that turn's end, when its answer
    /// is handed to the kernel; for one that had to wait, from the turn in which it was told so to the one
    /// that answered it. While [`TurnStats::measure`] is on.
    pub latency: Histogram,
    /// How long requests may have waited in this process before they were looked at: the length of the turn
    /// before, as what a turn reports came while the one before it was at work, or later; or the time new
    /// connections stood in line, if that was longer. While [`TurnStats::measure`] is on.
    pub queue_age: Histogram,
    measuring: AtomicBool,
}

/// Requests of a worker that were not counted before.
#[derive(Clone, Copy)]
pub(crate) struct Standing {
    /// Answered without waiting.
    pub(crate) answered_at_once: u64,
    /// Seen by a handler.
    pub(crate) looked_at: u64,
}

impl ConnectionStats {
    /// Connections that ran into this deadline.
    pub fn timeouts(&self, deadline: Deadline) -> u64 {
        self.timeouts[deadline as usize].get()
    }

    pub(crate) fn count_timeout(&self, deadline: Deadline) {
        self.timeouts[deadline as usize].add(1);
    }
}

impl RequestStats {
    /// The application's responses with a status of this class (2 for 200 to 299). Refusals by the session
    /// itself are counted as connections that were rejected.
    pub fn responses(&self, class: u16) -> u64 {
        self.responses.get(usize::from(class).wrapping_sub(1)).map_or(0, Counter::get)
    }

    #[inline]
    pub(crate) fn count_response(&self, status: Status) {
        if let Some(counter) = self.responses.get(usize::from(status.code() / 100).wrapping_sub(1)) {
            counter.add(1);
        }
    }

    /// How far a worker has come.
    #[inline]
    pub(crate) fn standing(&self) -> Standing {
        let answered_at_once = self.answered.get() - self.answered_late.get();
        Standing { answered_at_once, looked_at: answered_at_once + self.waits.get() }
    }
}

impl TurnStats {
    /// Lets the worker measure its turns, which costs it one more clock reading each, or no longer.
    pub fn measure(&self, on: bool) {
        self.measuring.store(on, Relaxed);
    }

    #[inline]
    pub(crate) fn is_measuring(&self) -> bool {
        self.measuring.load(Relaxed)
    }
}
