//! What a worker counts. Each worker writes its own block; anyone may read it at any time.
//!
//! Counters only grow, gauges show the last turn. They must never be used to decide anything on a request's
//! path.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use staunch_protocol::{Deadline, Status};

use crate::counter::{Counter, Gauge};
use crate::histogram::Histogram;

/// Counters of one worker, alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Stats {
    /// Connections accepted.
    pub accepted: Counter,
    /// Connections ended. `accepted - closed` are open.
    pub closed: Counter,
    /// Requests answered by the application.
    pub requests: Counter,
    /// Connections ended by the session for a fault of the peer's bytes.
    pub rejected: Counter,
    /// Bytes handed to the kernel for sending.
    pub sent_bytes: Counter,
    /// Sends that failed before all was taken.
    pub sends_failed: Counter,
    /// Times accepting stopped for want of descriptors, memory or slots.
    pub accept_stops: Counter,
    /// Connections answered 429, or that would be (dry run), because their client had as many as it may.
    pub client_connections: Counter,
    /// Requests answered 429, or that would be (dry run), because their client asks too often.
    pub client_rate: Counter,
    /// Requests answered 403 because their client comes from a network that may not have what they are for.
    pub client_denied: Counter,
    /// Connections and requests of clients that were not limited for want of a place to count them.
    pub client_table_full: Counter,
    /// Connections closed because they did not begin with the PROXY header they should.
    pub proxy_faults: Counter,
    /// Idle connections closed for others, above the soft limit.
    pub evicted_idle: Counter,
    /// Requests answered 503 because only reserved slots were left when their connection came.
    pub shed_full: Counter,
    /// Requests answered 503 because they had waited longer than the patience.
    pub shed_patience: Counter,
    /// Times accepting paused because what was accepted in a turn was more work than may wait.
    pub accept_pauses: Counter,
    /// Times newcomers were kept out of the kernel's queue because too much waited.
    pub newcomers_stopped: Counter,
    /// Connections closed because peers made the worker hold more than it may.
    pub closed_for_memory: Counter,
    /// What connections hold: input kept, answers that stand to be sent or are in flight.
    pub memory_held_bytes: Gauge,
    /// What they may hold.
    pub memory_budget_bytes: Gauge,
    /// Turns of the loop: an idle worker makes none.
    pub turns: Counter,
    /// How often a request was told to wait: for a check, and then for what it publishes, counts twice.
    pub waits: Counter,
    /// Waits that ended by mail.
    pub waits_over: Counter,
    /// Requests that were answered after having waited.
    pub answered_late: Counter,
    /// Waits that ended with their connection. `waits - waits_over - waits_lost` last now.
    pub waits_lost: Counter,
    /// Connections that the handler has begun to make.
    pub upstreams_opened: Counter,
    /// Connections of these that are over. `upstreams_opened - upstreams_closed` are there now.
    pub upstreams_closed: Counter,
    /// Connections the handler has asked for that could not be made, have failed, or were too slow.
    pub upstreams_lost: Counter,
    /// Connections that spoke HTTP/2.
    pub http2_connections: Counter,
    /// Requests that came by HTTP/2.
    pub http2_requests: Counter,
    /// Requests of these that were over before their answers were complete: cancelled by their peers, or
    /// reset for what these sent, or for what they did not take or send in time.
    pub http2_resets: Counter,
    /// What came as a request by HTTP/2 and was none, or one too many: reset or answered without a handler.
    pub http2_refused: Counter,
    /// Connections that ended because their peers did too much that is odd.
    pub http2_calmed: Counter,
    /// Handshakes of TLS that are over: see [`TlsHandshake`].
    tls_handshakes: [Counter; 4],
    /// Handshakes with the hybrid key exchange, of all that are over.
    pub tls_hybrid: Counter,
    /// Handshakes that came to nothing: see [`TlsRefusal`].
    tls_refusals: [Counter; 12],
    /// Secured connections ended for a fault of the peer's records.
    pub tls_faults: Counter,
    /// Secured connections whose peer sent no more and had not said that this is its end.
    pub tls_truncated: Counter,
    /// Empty records, warnings and key updates of peers.
    pub tls_oddities: Counter,
    /// Handshakes at work.
    pub tls_shaking: Gauge,
    /// Secured connections with keys at hand.
    pub tls_awake: Gauge,
    /// Secured connections that rest.
    pub tls_asleep: Gauge,
    /// Connections that had an answer under way when the last turn ended.
    pub sending: Gauge,
    /// From the turn in which the last bytes of a request were reported to that turn's end, when its answer
    /// is handed to the kernel; for one that had to wait, from the turn in which it was told so to the one
    /// that answered it. While [`Stats::measure`] is on.
    pub latency: Histogram,
    /// How long requests may have waited in this process before they were looked at: the length of the turn
    /// before, as what a turn reports came while the one before it was at work, or later; or the time new
    /// connections stood in line, if that was longer. While [`Stats::measure`] is on.
    pub queue_age: Histogram,
    measuring: AtomicBool,
    responses: [Counter; 5],
    timeouts: [Counter; 5],
}

/// How a handshake of TLS went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsHandshake {
    /// TLS 1.3 with certificate and signature.
    Full13,
    /// TLS 1.3 with a ticket.
    Resumed13,
    /// TLS 1.2 with certificate and signature.
    Full12,
    /// TLS 1.2 with a ticket.
    Resumed12,
}

/// Why a handshake of TLS came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsRefusal {
    /// Plain HTTP came.
    PlainHttp,
    /// The handshake asked for a name that no certificate is for.
    UnknownName,
    /// The client broke a rule, or nothing is spoken that both know.
    Refused,
    /// The client ended it by an alert, or left.
    Left,
    /// The handshake took too long.
    TimedOut,
    /// Too many others were at work.
    Crowded,
    /// The client has to show a certificate, and has none.
    CertificateMissing,
    /// The client's certificate is not valid now.
    CertificateExpired,
    /// The client's certificate was revoked.
    CertificateRevoked,
    /// No authority named here vouches for the client's certificate.
    CertificateUnknown,
    /// No fresh list says whether the client's certificate was revoked.
    RevocationUnknown,
    /// The client's certificate is not good otherwise.
    CertificateBad,
}

/// Requests of a worker that were not counted before.
#[derive(Clone, Copy)]
pub(crate) struct Standing {
    /// Answered without waiting.
    pub(crate) answered_at_once: u64,
    /// Seen by a handler.
    pub(crate) looked_at: u64,
}

impl Stats {
    /// The application's responses with a status of this class (2 for 200 to 299). Refusals by the session
    /// itself are counted in `rejected`.
    pub fn responses(&self, class: u16) -> u64 {
        self.responses.get(usize::from(class).wrapping_sub(1)).map_or(0, Counter::get)
    }

    /// Connections that ran into this deadline.
    pub fn timeouts(&self, deadline: Deadline) -> u64 {
        self.timeouts[deadline as usize].get()
    }

    /// Handshakes of TLS that went so.
    pub fn tls_handshakes(&self, how: TlsHandshake) -> u64 {
        self.tls_handshakes[how as usize].get()
    }

    /// Handshakes of TLS that came to nothing for this reason.
    pub fn tls_refusals(&self, why: TlsRefusal) -> u64 {
        self.tls_refusals[why as usize].get()
    }

    pub(crate) fn count_handshake(&self, how: TlsHandshake) {
        self.tls_handshakes[how as usize].add(1);
    }

    pub(crate) fn count_refusal(&self, why: TlsRefusal) {
        self.tls_refusals[why as usize].add(1);
    }

    /// Lets the worker measure its turns, which costs it one more clock reading each, or no longer.
    pub fn measure(&self, on: bool) {
        self.measuring.store(on, Relaxed);
    }

    #[inline]
    pub(crate) fn is_measuring(&self) -> bool {
        self.measuring.load(Relaxed)
    }

    /// How far a worker has come.
    #[inline]
    pub(crate) fn standing(&self) -> Standing {
        let answered_at_once = self.requests.get() - self.answered_late.get();
        Standing { answered_at_once, looked_at: answered_at_once + self.waits.get() }
    }

    #[inline]
    pub(crate) fn count_response(&self, status: Status) {
        if let Some(counter) = self.responses.get(usize::from(status.code() / 100).wrapping_sub(1)) {
            counter.add(1);
        }
    }

    pub(crate) fn count_timeout(&self, deadline: Deadline) {
        self.timeouts[deadline as usize].add(1);
    }
}
