//! Which certificate a client gets: by name, wildcard or address, of the kind it can check.
//!
//! It owns the table, which is exchanged as a whole: handshakes at work keep what they chose, open
//! connections are not touched. It must never give one name the certificate of another, unless unknown names
//! are to be answered.
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::pair::CertificatePair;
use crate::facts;

type Pairs = Vec<Arc<CertificatePair>>;

/// The certificates of a listener, shared by all workers.
#[derive(Default)]
pub struct CertificateStore(ArcSwap<Table>);

/// Pairs by what they are for. Each list has the pairs in the order given, of several kinds of keys side by
/// side.
#[derive(Default)]
struct Table {
    /// Exact names, and wildcards with their `*.`.
    names: HashMap<String, Pairs>,
    addresses: HashMap<IpAddr, Pairs>,
    /// Those of the first pair's names: for clients that ask for no name.
    first: Pairs,
    answers_unknown_names: bool,
}

impl CertificateStore {
    /// A store with these pairs. A client that asks for no name, and came to no address in them, gets the
    /// first. A name that is in none is refused, or gets the first too if `answers_unknown_names`.
    #[must_use]
    pub fn new(pairs: &[Arc<CertificatePair>], answers_unknown_names: bool) -> Self {
        let store = Self::default();
        store.replace(pairs, answers_unknown_names);
        store
    }

    /// Goes on with these pairs. Handshakes that have chosen, and open connections, are not touched.
    pub fn replace(&self, pairs: &[Arc<CertificatePair>], answers_unknown_names: bool) {
        let mut table = Table { answers_unknown_names, ..Table::default() };
        for pair in pairs {
            for name in pair.names() {
                table.names.entry(name.clone()).or_default().push(Arc::clone(pair));
            }
            for address in pair.addresses() {
                table.addresses.entry(*address).or_default().push(Arc::clone(pair));
            }
        }
        if let Some(first) = pairs.first() {
            let is_twin = |pair: &&Arc<CertificatePair>| pair.names() == first.names();
            table.first = pairs.iter().filter(is_twin).cloned().collect();
        }
        self.0.store(Arc::new(table));
    }

    /// Whether a client that asks for this name gets a certificate.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let table = self.0.load();
        table.answers_unknown_names || table.named(name).is_some()
    }
}

impl Table {
    /// The pairs for a name: exact, else by wildcard.
    fn named(&self, name: &str) -> Option<&Pairs> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let by_wildcard = || {
            let (label, rest) = name.split_once('.')?;
            if label.is_empty() { None } else { self.names.get(&format!("*.{rest}")) }
        };
        self.names.get(&name).or_else(by_wildcard)
    }

    fn candidates(&self, name: Option<&str>, local: Option<IpAddr>) -> Option<&Pairs> {
        match name {
            Some(name) => self.named(name).or(self.answers_unknown_names.then_some(&self.first)),
            None => local.and_then(|local| self.addresses.get(&local)).or(Some(&self.first)),
        }
    }
}

/// rustls asks for a certificate. Nothing of the table is shown.
impl fmt::Debug for CertificateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateStore").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for CertificateStore {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let table = self.0.load();
        let schemes = hello.signature_schemes();
        table
            .candidates(hello.server_name(), facts::local())?
            .iter()
            .find(|pair| pair.key.key.choose_scheme(schemes).is_some())
            .map(|pair| {
                facts::choose_chain(&pair.compressed);
                Arc::clone(&pair.key)
            })
    }
}
