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
pub(crate) const HTTP2: &[u8] = b"h2";

/// What all configurations of a listener have in common.
pub(crate) struct Recipe {
    /// Suites and groups: one for all, because a hybrid group lives as long as the process.
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) certificates: Arc<CertificateStore>,
    pub(crate) time: Arc<WallTime>,
    pub(crate) protocols: Vec<&'static [u8]>,
}

/// A configuration for strangers and for clients that come with a ticket.
pub(crate) struct Configs {
    strangers: Offers,
    returning: Offers,
}

/// A configuration, with HTTP/2 and without.
struct Offers {
    with_http2: Arc<ServerConfig>,
    without_http2: Arc<ServerConfig>,
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
    /// Configurations that differ from this one in tickets and protocols only. A stranger gets two tickets,
    /// as it may open several connections next; a client that comes with a ticket gets one for it.
    pub(crate) fn of(config: ServerConfig) -> Self {
        let mut returning = config.clone();
        returning.send_tls13_tickets = 1;
        Self { strangers: Offers::of(config), returning: Offers::of(returning) }
    }

    /// The one for a handshake.
    pub(crate) fn choose(&self, has_ticket: bool, offers_http2: bool) -> &Arc<ServerConfig> {
        let offers = if has_ticket { &self.returning } else { &self.strangers };
        if offers_http2 { &offers.with_http2 } else { &offers.without_http2 }
    }
}

impl Offers {
    fn of(config: ServerConfig) -> Self {
        let mut without_http2 = config.clone();
        without_http2.alpn_protocols.retain(|name| name != HTTP2);
        Self { with_http2: Arc::new(config), without_http2: Arc::new(without_http2) }
    }
}
