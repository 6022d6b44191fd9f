//! Faults of connections to servers, in words for their operator.
//!
//! It must never hold a byte that a peer sent, so that a fault can be written to any log.

use std::fmt;

use rustls::{CertificateError, Error};

/// The reason why there is no secured connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingFault {
    /// No certificate can have the name that was asked for.
    BadName,
    /// The server has ended the connection by this alert.
    PeerAlert(u8),
    /// The server does not speak TLS.
    NotTls,
    /// Both sides have no version, suite or protocol in common.
    NothingInCommon,
    /// The server's certificate is for other names.
    OtherName,
    /// The server's certificate has ended, or has not begun.
    Expired,
    /// No authority that is believed vouches for the server's certificate.
    UnknownIssuer,
    /// The server's certificate was revoked, is signed wrongly, or cannot be read.
    BadCertificate,
    /// The server broke a rule.
    Broken,
}

impl OutgoingFault {
    pub(super) fn of(error: Error) -> Self {
        match error {
            Error::AlertReceived(alert) => Self::PeerAlert(u8::from(alert)),
            Error::InvalidMessage(_) => Self::NotTls,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Self::NothingInCommon,
            Error::InvalidCertificate(error) => Self::of_certificate(&error),
            Error::NoCertificatesPresented => Self::BadCertificate,
            _ => Self::Broken,
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::OtherName
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::Expired,
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            _ => Self::BadCertificate,
        }
    }
}

impl fmt::Display for OutgoingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadName => "no certificate can have its name",
            Self::PeerAlert(number) => return write!(f, "it ended the handshake with TLS alert {number}"),
            Self::NotTls => "it does not speak TLS",
            Self::NothingInCommon => "no version, suite or protocol of TLS in common",
            Self::OtherName => "its certificate is for another name",
            Self::Expired => "its certificate is not valid now",
            Self::UnknownIssuer => "its certificate is of an unknown authority",
            Self::BadCertificate => "its certificate is not good",
            Self::Broken => "it breaks a rule of TLS",
        })
    }
}

impl std::error::Error for OutgoingFault {}

/// The reason why there cannot be secured connections with such settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingSettingsFault {
    /// There is no certificate that could vouch for a server.
    NoAuthority,
    /// A certificate that should vouch for servers cannot be read.
    BadAuthority,
    /// The chain of our own certificate cannot be read.
    BadChain,
    /// The key of our own certificate cannot be read.
    BadKey,
    /// The key is not that of the certificate.
    KeyOfAnother,
    /// The library has no suite.
    NoSuites,
}

impl fmt::Display for OutgoingSettingsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAuthority => "no certificate in it",
            Self::BadAuthority => "a certificate in it cannot be read",
            Self::BadChain => "the chain of certificates cannot be read",
            Self::BadKey => "the key cannot be read",
            Self::KeyOfAnother => "the key is not that of the certificate",
            Self::NoSuites => "the library has no suite",
        })
    }
}

impl std::error::Error for OutgoingSettingsFault {}
