//! A worker's counts of TLS.
//!
//! Counts must never hold anything of a client.

use crate::counter::{Counter, Gauge};

/// Handshakes, faults, and what secured connections keep.
#[derive(Debug, Default)]
pub struct TlsStats {
    /// Handshakes that are over: see [`TlsHandshake`].
    handshakes: [Counter; 4],
    /// Handshakes with the hybrid key exchange, of all that are over.
    pub hybrid: Counter,
    /// Handshakes that came to nothing: see [`TlsRefusal`].
    refusals: [Counter; 12],
    /// Secured connections ended for a fault of the peer's records.
    pub faults: Counter,
    /// Secured connections whose peer sent no more and had not said that this is its end.
    pub truncated: Counter,
    /// Empty records, warnings and key updates of peers.
    pub oddities: Counter,
    /// Handshakes at work.
    pub shaking: Gauge,
    /// Secured connections with keys at hand.
    pub awake: Gauge,
    /// Secured connections that rest.
    pub asleep: Gauge,
}

impl TlsStats {
    /// Handshakes that went so.
    pub fn handshakes(&self, how: TlsHandshake) -> u64 {
        self.handshakes[how as usize].get()
    }

    /// Handshakes that came to nothing for this reason.
    pub fn refusals(&self, why: TlsRefusal) -> u64 {
        self.refusals[why as usize].get()
    }

    pub(crate) fn count_handshake(&self, how: TlsHandshake) {
        self.handshakes[how as usize].add(1);
    }

    pub(crate) fn count_refusal(&self, why: TlsRefusal) {
        self.refusals[why as usize].add(1);
    }
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
