//! What rustls asks of a client's certificate while a handshake is at work.
//!
//! It owns how long a chain may be, and notes until when what was verified holds. It must never judge a
//! certificate itself.
use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::authority::ClientAuthority;
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
        &self.authority.subjects
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
        facts::set_verified_until(self.authority.verify(end_entity, intermediates, now)?);
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.authority.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.authority.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authority.algorithms.supported_schemes()
    }
}
