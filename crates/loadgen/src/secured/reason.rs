//! Why TLS failed, in words that say what can be done.
//!
//! It must never repeat what a server put into its certificate: reasons are counted, and it could make up any
//! number of them.

use rustls::{CertificateError, Error};

/// Why a handshake failed whose connection ended.
pub(crate) const CUT_HANDSHAKE: &str = "the connection was closed during the handshake";

/// Why a handshake failed that patience did not last for.
pub(crate) const SLOW_HANDSHAKE: &str = "patience was over before the handshake was";

/// Longest part of an error that is shown where the table has no words for it.
const REASON_CHARACTERS_MAX: usize = 160;

/// Words for an error, for the person who offers the load.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => certificate_words(error),
        Error::AlertReceived(alert) => format!("the server sent the alert {alert:?}"),
        Error::InvalidMessage(_) => "what came is not TLS".to_owned(),
        Error::NoApplicationProtocol => "the server does not speak HTTP/1.1 by TLS".to_owned(),
        other => shortened(&other.to_string()),
    }
}

fn certificate_words(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "the certificate is of no trusted authority (--cacert FILE names one, --insecure verifies \
             nothing)"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another name".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet".to_owned()
        }
        CertificateError::BadSignature => {
            "a signature is wrong: the certificate is not of the authority that it names, or not the server's"
                .to_owned()
        }
        CertificateError::Revoked => "the certificate was revoked".to_owned(),
        other => shortened(&format!("the certificate is refused: {other}")),
    }
}

fn shortened(words: &str) -> String {
    words.chars().filter(|letter| !letter.is_control()).take(REASON_CHARACTERS_MAX).collect()
}
