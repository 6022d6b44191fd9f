//! Configurations of rustls: TLS 1.3 and 1.2, suites with forward secrecy and authenticated encryption,
//! nothing kept on this side between connections.
//!
//! It must never be given secrets: certificates and tickets are asked for when a handshake needs them.
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::version::{TLS12, TLS13};

use crate::certificate::CertificateStore;
use crate::chain_answer;
use crate::clock::WallTime;
use crate::facts::SecretTaker;

/// HTTP/2, as it is called in lists of protocols.
const HTTP2: &[u8] = b"h2";

/// What all configurations of a listener have in common.
pub(crate) struct Recipe {
    /// Suites and groups: one for all, because a hybrid group lives as long as the process.
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) certificates: Arc<CertificateStore>,
    pub(crate) time: Arc<WallTime>,
    pub(crate) protocols: Vec<&'static [u8]>,
}

/// A configuration, with HTTP/2 and without.
pub(crate) struct Configs {
    pub(crate) with_http2: Arc<ServerConfig>,
    pub(crate) without_http2: Arc<ServerConfig>,
}

impl Recipe {
    /// A configuration for clients that are verified so, with these tickets.
    pub(crate) fn config(
        &self,
        verifier: Arc<dyn ClientCertVerifier>,
        tickets: Arc<dyn ProducesTickets>,
    ) -> ServerConfig {
        let (provider, time) = (Arc::clone(&self.provider), Arc::clone(&self.time));
        let mut config = ServerConfig::builder_with_details(provider, time as _)
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("ring has suites of both versions")
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::clone(&self.certificates) as _);
        config.alpn_protocols = self.protocols.iter().map(|name| name.to_vec()).collect();
        config.ticketer = tickets;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.enable_secret_extraction = true;
        config.key_log = Arc::new(SecretTaker);
        chain_answer::offer(&mut config);
        config
    }
}

impl Configs {
    /// This configuration, and the same without HTTP/2.
    pub(crate) fn of(config: ServerConfig) -> Self {
        let mut without_http2 = config.clone();
        without_http2.alpn_protocols.retain(|name| name != HTTP2);
        Self { with_http2: Arc::new(config), without_http2: Arc::new(without_http2) }
    }
}
