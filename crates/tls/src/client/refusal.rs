//! What webpki finds wrong with a client's certificate, in rustls' words, by which rustls chooses the alert.
//!
//! It must never be lenient: what is not known here is a certificate that is not good.
use std::sync::Arc;

use rustls::{CertRevocationListError, CertificateError, Error, OtherError};

/// A fault that webpki found, in rustls' words.
pub(super) fn error_of(error: webpki::Error) -> Error {
    use CertRevocationListError as L;
    use CertificateError as C;
    use webpki::Error as E;
    let bad = match error {
        E::CertExpired { .. } | E::InvalidCertValidity => C::Expired,
        E::CertNotValidYet { .. } => C::NotValidYet,
        E::UnknownIssuer => C::UnknownIssuer,
        E::CertRevoked => C::Revoked,
        E::UnknownRevocationStatus => C::UnknownRevocationStatus,
        E::CrlExpired { .. } => C::ExpiredRevocationList,
        E::RequiredEkuNotFoundContext(_) => C::InvalidPurpose,
        E::InvalidSignatureForPublicKey => C::BadSignature,
        E::BadDer | E::BadDerTime | E::TrailingData(_) => C::BadEncoding,
        E::InvalidCrlSignatureForPublicKey => return L::BadSignature.into(),
        E::IssuerNotCrlSigner => return L::IssuerInvalidForCrl.into(),
        E::UnsupportedCrlSignatureAlgorithmContext(_)
        | E::UnsupportedCrlSignatureAlgorithmForPublicKeyContext(_) => {
            return L::Other(OtherError(Arc::new(error))).into();
        }
        other => C::Other(OtherError(Arc::new(other))),
    };
    bad.into()
}
