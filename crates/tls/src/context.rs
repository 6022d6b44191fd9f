//! What all handshakes of a listener share: certificates, tickets, protocols, the time.
//!
//! It owns the configuration of rustls: TLS 1.3 and 1.2, suites with forward secrecy and authenticated
//! encryption, nothing kept on this side between connections. It must never be changed once made: what
//! changes is in the store of certificates and in the tickets, and whether HTTP/2 is offered.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{NoServerSessionStorage, UnbufferedServerConnection};
use rustls::version::{TLS12, TLS13};

use crate::certificate::CertificateStore;
use crate::challenge::{ACME_TLS, ChallengeCertificates};
use crate::clock::WallTime;
use crate::facts::SecretTaker;
use crate::ticket::Tickets;

/// HTTP/2, as it is called in lists of protocols.
const HTTP2: &[u8] = b"h2";

/// The configuration of handshakes, shared by all workers.
pub struct TlsContext {
    config: Arc<ServerConfig>,
    /// The same without HTTP/2.
    without_http2: Arc<ServerConfig>,
    /// For an authority that checks a name by a handshake.
    of_challenges: Arc<ServerConfig>,
    challenges: Arc<ChallengeCertificates>,
    offers_http2: AtomicBool,
    certificates: Arc<CertificateStore>,
    tickets: Arc<Tickets>,
    time: Arc<WallTime>,
    protocols: Vec<&'static [u8]>,
}

impl TlsContext {
    /// A context that offers these protocols, the preferred first (`h2`, `http/1.1`; RFC 7301). With none, a
    /// client's list is not looked at.
    #[must_use]
    pub fn new(
        certificates: Arc<CertificateStore>,
        tickets: Arc<Tickets>,
        time: Arc<WallTime>,
        protocols: &[&'static [u8]],
    ) -> Self {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_details(provider, Arc::clone(&time) as _)
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("ring has suites of both versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificates) as _);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config.ticketer = Arc::clone(&tickets) as _;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.enable_secret_extraction = true;
        config.key_log = Arc::new(SecretTaker);
        let mut without_http2 = config.clone();
        without_http2.alpn_protocols.retain(|name| name != HTTP2);
        let challenges = Arc::new(ChallengeCertificates::default());
        let mut of_challenges = config.clone();
        of_challenges.alpn_protocols = vec![ACME_TLS.to_vec()];
        of_challenges.send_tls13_tickets = 0;
        of_challenges.cert_resolver = Arc::clone(&challenges) as _;
        Self {
            config: Arc::new(config),
            without_http2: Arc::new(without_http2),
            of_challenges: Arc::new(of_challenges),
            challenges,
            offers_http2: AtomicBool::new(true),
            certificates,
            tickets,
            time,
            protocols: protocols.to_vec(),
        }
    }

    /// The certificates, to look at or to exchange.
    #[must_use]
    pub fn certificates(&self) -> &CertificateStore {
        &self.certificates
    }

    /// Certificates for an authority that checks a name by a handshake.
    #[must_use]
    pub fn challenges(&self) -> &Arc<ChallengeCertificates> {
        &self.challenges
    }

    /// The tickets, to ask or to rotate.
    #[must_use]
    pub fn tickets(&self) -> &Tickets {
        &self.tickets
    }

    /// Whether handshakes from now on offer HTTP/2, if it is among the protocols.
    pub fn offer_http2(&self, on: bool) {
        self.offers_http2.store(on, Ordering::Relaxed);
    }

    /// Tells the time that handshakes go by, in seconds since 1970.
    pub fn tell_time(&self, unix_s: u64) {
        self.time.set(unix_s);
    }

    pub(crate) fn connection(&self) -> Result<UnbufferedServerConnection, rustls::Error> {
        let offers_http2 = self.offers_http2.load(Ordering::Relaxed);
        let config = if offers_http2 { &self.config } else { &self.without_http2 };
        UnbufferedServerConnection::new(Arc::clone(config))
    }

    /// A connection that proves a name to an authority and is good for nothing else.
    pub(crate) fn challenged(&self) -> Result<UnbufferedServerConnection, rustls::Error> {
        UnbufferedServerConnection::new(Arc::clone(&self.of_challenges))
    }

    /// The protocol with that name, as it was given.
    pub(crate) fn protocol(&self, name: &[u8]) -> Option<&'static [u8]> {
        self.protocols.iter().copied().find(|own| *own == name)
    }
}
