//! What all handshakes of a listener share: certificates, tickets, protocols, policies, the time.
//!
//! It must never be changed once made: what changes is in the store of certificates, in the tickets and in
//! the table of policies of client certificates, and whether HTTP/2 and the hybrid group are offered.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::{NoClientAuth, UnbufferedServerConnection};

use crate::certificate::CertificateStore;
use crate::challenge::{ACME_TLS, ChallengeCertificates};
use crate::client::{Asking, ClientIdentity, PolicyTable, SitePolicy};
use crate::clock::WallTime;
use crate::configs::{Configs, Recipe};
use crate::hybrid::Hybrid;
use crate::ticket::Tickets;

/// The configuration of handshakes, shared by all workers.
pub struct TlsContext {
    recipe: Recipe,
    /// For clients that are asked for nothing.
    configs: Configs,
    /// For an authority that checks a name by a handshake.
    of_challenges: Arc<ServerConfig>,
    challenges: Arc<ChallengeCertificates>,
    policies: ArcSwap<PolicyTable>,
    offers_http2: AtomicBool,
    hybrid: &'static Hybrid,
    tickets: Arc<Tickets>,
}

impl TlsContext {
    /// A context that offers these protocols, the preferred first (`h2`, `http/1.1`; RFC 7301). With none, a
    /// client's list is not looked at. No client is asked for a certificate.
    #[must_use]
    pub fn new(
        certificates: Arc<CertificateStore>,
        tickets: Arc<Tickets>,
        time: Arc<WallTime>,
        protocols: &[&'static [u8]],
    ) -> Self {
        let hybrid = Hybrid::new();
        let provider = Arc::new(hybrid.provider());
        let recipe = Recipe { provider, certificates, time, protocols: protocols.to_vec() };
        let config = recipe.config(Arc::new(NoClientAuth), Arc::clone(&tickets) as _);
        let challenges = Arc::new(ChallengeCertificates::default());
        let mut of_challenges = config.clone();
        of_challenges.alpn_protocols = vec![ACME_TLS.to_vec()];
        of_challenges.send_tls13_tickets = 0;
        of_challenges.cert_resolver = Arc::clone(&challenges) as _;
        Self {
            recipe,
            configs: Configs::of(config),
            of_challenges: Arc::new(of_challenges),
            challenges,
            policies: ArcSwap::default(),
            offers_http2: AtomicBool::new(true),
            hybrid,
            tickets,
        }
    }

    /// The certificates, to look at or to exchange.
    #[must_use]
    pub fn certificates(&self) -> &CertificateStore {
        &self.recipe.certificates
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

    /// Whether handshakes from now on know the group X25519MLKEM768, as they do at first.
    pub fn offer_hybrid(&self, on: bool) {
        self.hybrid.offer(on);
    }

    /// From now on clients of these sites are asked for certificates as their policies say.
    pub fn ask_clients(&self, sites: &[SitePolicy]) {
        self.policies.store(Arc::new(PolicyTable::new(sites, &self.recipe, &self.tickets)));
    }

    /// Whether a client would be verified in that second as it was then: the files of its authorities are the
    /// same, and nothing has ended since. The time is an argument: what handshakes were told may be old.
    #[must_use]
    pub fn upholds(&self, identity: &ClientIdentity, now_unix_s: u64) -> bool {
        self.policies.load().upholds(identity, now_unix_s)
    }

    /// The time that handshakes go by, as it was told last.
    #[must_use]
    pub fn unix_s(&self) -> u64 {
        self.recipe.time.unix_s()
    }

    /// Tells the time that handshakes go by, in seconds since 1970.
    pub fn tell_time(&self, unix_s: u64) {
        self.recipe.time.set(unix_s);
    }

    /// What a client is asked for that asks for this name, if that is anything.
    pub(crate) fn asking(&self, name: Option<&str>) -> Option<Arc<Asking>> {
        self.policies.load().find(name)
    }

    /// A connection of a client that comes with a ticket or without, and is asked for this.
    pub(crate) fn connection(
        &self,
        has_ticket: bool,
        asking: Option<&Asking>,
    ) -> Result<UnbufferedServerConnection, rustls::Error> {
        let offers_http2 = self.offers_http2.load(Ordering::Relaxed);
        let configs = asking.map_or(&self.configs, |asking| &asking.configs);
        UnbufferedServerConnection::new(Arc::clone(configs.choose(has_ticket, offers_http2)))
    }

    /// A connection that proves a name to an authority and is good for nothing else.
    pub(crate) fn challenged(&self) -> Result<UnbufferedServerConnection, rustls::Error> {
        UnbufferedServerConnection::new(Arc::clone(&self.of_challenges))
    }

    /// The protocol with that name, as it was given.
    pub(crate) fn protocol(&self, name: &[u8]) -> Option<&'static [u8]> {
        self.recipe.protocols.iter().copied().find(|own| *own == name)
    }
}
