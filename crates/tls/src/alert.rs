//! Alerts, and why a connection ends.
//!
//! It must never hold a byte that a peer sent, so that a fault can be written to any log.
use std::fmt;

/// An alert's description (RFC 8446, section 6; numbers of IANA).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Alert {
    /// The sender will send no more.
    CloseNotify = 0,
    /// A record or message that must not stand here.
    UnexpectedMessage = 10,
    /// A record cannot be opened.
    BadRecordMac = 20,
    /// A record is longer than it may be.
    RecordOverflow = 22,
    /// No common parameters.
    HandshakeFailure = 40,
    /// A field has a value it must not have.
    IllegalParameter = 47,
    /// A message cannot be read.
    DecodeError = 50,
    /// The version is not spoken here.
    ProtocolVersion = 70,
    /// A fault of our own.
    InternalError = 80,
    /// The peer's user gave up; a warning.
    UserCanceled = 90,
    /// No second handshake; a warning of TLS 1.2.
    NoRenegotiation = 100,
    /// An extension is not there that the version cannot do without.
    MissingExtension = 109,
    /// No certificate for the name asked for.
    UnrecognizedName = 112,
    /// None of the protocols offered is spoken here.
    NoApplicationProtocol = 120,
}

impl Alert {
    /// Level and description as they stand on the wire.
    #[must_use]
    pub fn bytes(self) -> [u8; 2] {
        let is_warning = matches!(self, Self::CloseNotify | Self::UserCanceled | Self::NoRenegotiation);
        [if is_warning { 1 } else { 2 }, self as u8]
    }

    /// A whole record with this alert, not sealed: before there are keys.
    #[must_use]
    pub fn plain_record(self) -> [u8; 7] {
        let [level, description] = self.bytes();
        [21, 3, 3, 0, 2, level, description]
    }
}

/// Why a connection ends. Whoever gets one sends what was written to the output, and closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The peer broke a rule and was told so by this alert; the sentence is for a log.
    Refused(Alert, &'static str),
    /// The peer ended the connection by this alert.
    PeerAlert(u8),
    /// The client has not shown a certificate that is good here. rustls has told it why.
    Certificate(CertificateFault),
    /// A plain HTTP request came where TLS is spoken. The answer is a plain 400.
    PlainHttp,
    /// A key has sealed as many records as it may, and this version has no way to change it.
    Exhausted,
}

/// What is wrong with a client's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateFault {
    /// The client has to show a certificate, and has none.
    Missing,
    /// The certificate has ended, or has not begun.
    Expired,
    /// The certificate was revoked.
    Revoked,
    /// No authority named here vouches for it.
    UnknownIssuer,
    /// No list that is good says whether it was revoked.
    UnknownStatus,
    /// Its chain is too long, breaks a constraint, is signed wrongly, or cannot be read.
    Bad,
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "no client's certificate where one is required",
            Self::Expired => "a client's certificate that is not valid now",
            Self::Revoked => "a client's certificate that was revoked",
            Self::UnknownIssuer => "a client's certificate of an unknown authority",
            Self::UnknownStatus => {
                "a client's certificate of which no fresh list says whether it was revoked"
            }
            Self::Bad => "a client's certificate that is not good",
        })
    }
}

impl Fault {
    /// The alert that the peer is told.
    #[must_use]
    pub fn alert(self) -> Option<Alert> {
        match self {
            Self::Refused(alert, _) => Some(alert),
            Self::Exhausted => Some(Alert::CloseNotify),
            Self::Certificate(_) | Self::PeerAlert(_) | Self::PlainHttp => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(alert, why) => write!(f, "{why} (alert {}, {alert:?})", *alert as u8),
            Self::PeerAlert(number) => write!(f, "the peer ended the connection with alert {number}"),
            Self::Certificate(fault) => fault.fmt(f),
            Self::PlainHttp => f.write_str("a plain HTTP request came where TLS is spoken"),
            Self::Exhausted => f.write_str("a key has sealed as many records as it may"),
        }
    }
}

impl std::error::Error for Fault {}
