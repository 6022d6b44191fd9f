//! What rustls asks of a client's certificate while a handshake is at work.
//!
//! It owns what webpki does not judge: how long a chain may be, the end of an authority, and until when what
//! was verified holds. It must never accept what webpki refuses.
use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::authority::ClientAuthority;
use super::identity::subject;
use crate::certificate::PairFault;
use crate::facts;
use crate::limits::CHAIN_CERTIFICATES_MAX;

/// Verifies clients of one policy.
pub(super) struct PolicyVerifier {
    pub(super) authority: Arc<ClientAuthority>,
    pub(super) is_required: bool,
}

/// rustls wants it.
impl fmt::Debug for PolicyVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyVerifier").finish_non_exhaustive()
    }
}

impl ClientCertVerifier for PolicyVerifier {
    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        self.is_required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.authority.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let count = intermediates.len() + 1;
        if count > CHAIN_CERTIFICATES_MAX {
            let fault = OtherError(Arc::new(PairFault::ChainTooLong(count)));
            return Err(CertificateError::Other(fault).into());
        }
        if now.as_secs() > self.authority.last_unix_s {
            return Err(CertificateError::UnknownIssuer.into());
        }
        let verified = self.authority.verifier.verify_client_cert(end_entity, intermediates, now)?;
        let bad = || Error::from(CertificateError::BadEncoding);
        let parse = |der: &CertificateDer<'_>| Certificate::from_der(der).map_err(|_| bad());
        let own = parse(end_entity)?;
        subject(&own).ok_or_else(bad)?;
        let mut until = last_second(&own).min(self.authority.until_unix_s());
        for der in intermediates {
            until = until.min(last_second(&parse(der)?));
        }
        facts::set_verified_until(until);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authority.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authority.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authority.verifier.supported_verify_schemes()
    }
}

/// The last second in which a certificate is valid.
fn last_second(certificate: &Certificate) -> u64 {
    certificate.tbs_certificate().validity().not_after.to_unix_duration().as_secs()
}
