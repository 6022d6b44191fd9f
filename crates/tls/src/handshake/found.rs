//! What rustls finds wrong with a handshake, in the words of this crate.
//!
//! It must never choose an alert that the peer is told: rustls has written its own.
use rustls::{CertificateError, PeerMisbehaved};

use crate::alert::{Alert, CertificateFault, Fault};

/// The server has nothing to show that this client could check.
pub(super) const NO_CERTIFICATE: Fault =
    Fault::Refused(Alert::HandshakeFailure, "no certificate of a kind that the client can check");

/// The sentence for what rustls found; the alert it chose is in the output.
pub(super) fn fault_of(error: &rustls::Error) -> Fault {
    use rustls::Error as E;
    match error {
        E::AlertReceived(alert) => Fault::PeerAlert(u8::from(*alert)),
        E::PeerIncompatible(_) => {
            Fault::Refused(Alert::HandshakeFailure, "no version, suite or group in common")
        }
        E::NoApplicationProtocol => Fault::Refused(Alert::NoApplicationProtocol, "no protocol in common"),
        E::PeerMisbehaved(
            PeerMisbehaved::IllegalTlsInnerPlaintext
            | PeerMisbehaved::KeyEpochWithPendingFragment
            | PeerMisbehaved::MessageInterleavedWithHandshakeMessage,
        ) => Fault::Refused(Alert::UnexpectedMessage, "a record within a message, or of no type"),
        E::PeerMisbehaved(_) => Fault::Refused(Alert::IllegalParameter, "a handshake against the rules"),
        E::InvalidMessage(_) => Fault::Refused(Alert::DecodeError, "a message that cannot be read"),
        E::InappropriateMessage { .. } | E::InappropriateHandshakeMessage { .. } => {
            Fault::Refused(Alert::UnexpectedMessage, "a message that must not come now")
        }
        E::DecryptError => Fault::Refused(Alert::BadRecordMac, "a record that cannot be opened"),
        E::PeerSentOversizedRecord => Fault::Refused(Alert::RecordOverflow, "a record longer than it may be"),
        E::NoCertificatesPresented => Fault::Certificate(CertificateFault::Missing),
        E::InvalidCertificate(why) => Fault::Certificate(certificate_fault(why)),
        E::InvalidCertRevocationList(_) => Fault::Certificate(CertificateFault::UnknownStatus),
        E::General(why) if why.contains("no server certificate") => NO_CERTIFICATE,
        _ => Fault::Refused(Alert::InternalError, "the handshake failed"),
    }
}

fn certificate_fault(why: &CertificateError) -> CertificateFault {
    use CertificateError as E;
    match why {
        E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. } => {
            CertificateFault::Expired
        }
        E::Revoked => CertificateFault::Revoked,
        E::UnknownIssuer => CertificateFault::UnknownIssuer,
        E::UnknownRevocationStatus | E::ExpiredRevocationList | E::ExpiredRevocationListContext { .. } => {
            CertificateFault::UnknownStatus
        }
        _ => CertificateFault::Bad,
    }
}
