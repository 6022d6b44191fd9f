//! Settings that connections by TLS share: versions, the authorities that are believed, resumed sessions.
//!
//! It must never believe more than the plan says.

use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::fault::Fault;
use crate::plan::{TlsPlan, TlsTrust};

/// Sessions a thread has room for. Of one server, and there is no other, rustls keeps eight tickets of
/// TLS 1.3.
const SESSIONS_MAX: usize = 64;

/// The only protocol that is spoken inside.
const PROTOCOL: &[u8] = b"http/1.1";

/// Read once a run.
#[derive(Debug, Clone)]
pub(crate) struct TlsBase {
    config: ClientConfig,
    server: ServerName<'static>,
    resumes: bool,
}

/// A thread's own: its connections resume each other's sessions.
#[derive(Debug, Clone)]
pub(crate) struct TlsClient {
    pub(super) config: Arc<ClientConfig>,
    pub(super) server: ServerName<'static>,
}

impl TlsBase {
    /// Reads the authorities.
    ///
    /// # Errors
    /// A file that has none, a system without any, a name that no certificate can have.
    pub(crate) fn open(plan: &TlsPlan) -> Result<Self, Fault> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Fault::new(format!("TLS cannot be set up: {error}")))?;
        let builder = match &plan.trust {
            TlsTrust::System => builder.with_root_certificates(system_roots()?),
            TlsTrust::File(path) => builder.with_root_certificates(roots_of(path)?),
            TlsTrust::Anything => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer { provider }))
            }
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let server = ServerName::try_from(plan.server.clone())
            .map_err(|_| Fault::new(format!("`{}` is no name that a certificate can have", plan.server)))?;
        Ok(Self { config, server, resumes: plan.resumes })
    }

    /// For one thread, with sessions of its own.
    pub(crate) fn client(&self) -> TlsClient {
        let mut config = self.config.clone();
        config.resumption =
            if self.resumes { Resumption::in_memory_sessions(SESSIONS_MAX) } else { Resumption::disabled() };
        TlsClient { config: Arc::new(config), server: self.server.clone() }
    }
}

fn system_roots() -> Result<RootCertStore, Fault> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(found.certs);
    if taken == 0 {
        let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(Fault::new(format!(
            "no authority is trusted on this system{why}: install ca-certificates, or name one by --cacert \
             FILE, or verify nothing by --insecure"
        )));
    }
    Ok(roots)
}

fn roots_of(path: &Path) -> Result<RootCertStore, Fault> {
    let blame = |why: String| Fault::new(format!("--cacert {}: {why}", path.display()));
    let text = std::fs::read(path).map_err(|error| blame(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| blame(error.to_string()))?;
        roots.add(certificate).map_err(|error| blame(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(blame("no certificate (`BEGIN CERTIFICATE`) in the file".to_owned()));
    }
    Ok(roots)
}

/// Believes every certificate whose key its server has.
#[derive(Debug)]
struct AnyServer {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
