//! Which clients have to show a certificate, by the name that they ask for.
//!
//! It owns the table, which is exchanged as a whole: handshakes at work keep what they began with, open
//! connections are not touched. It must never decide what is served: who serves a site asks whom the
//! connection's certificate names, for the Host field may name another site than the handshake did.
use std::collections::HashMap;
use std::sync::Arc;

use ring::digest::{Context, SHA256};

use super::authority::ClientAuthority;
use super::bound_tickets::BoundTickets;
use super::identity::{ClientIdentity, Proof};
use super::verifier::PolicyVerifier;
use crate::configs::{Configs, Recipe};
use crate::ticket::Tickets;

/// What the clients of a site are asked for.
#[derive(Clone)]
pub struct CertificatePolicy {
    /// Tells the authorities from those of other policies for as long as the process lives, whatever is in
    /// their files.
    pub number: u64,
    /// The authorities that vouch for clients.
    pub authority: Arc<ClientAuthority>,
    /// Whether a client without a certificate is refused.
    pub is_required: bool,
}

/// The hosts of a site, and what its clients are asked for.
#[derive(Clone)]
pub struct SitePolicy {
    /// Names in small letters; `*.` stands for every name below.
    pub hosts: Vec<String>,
    /// Whether the site answers for all names that no other has, and for clients that ask for none.
    pub is_default: bool,
    /// `None`: nothing.
    pub clients: Option<CertificatePolicy>,
}

/// Policies by name: the exact one, then the longest `*.name` above, then the default.
#[derive(Default)]
pub(crate) struct PolicyTable {
    exact: HashMap<String, NamePolicy>,
    /// By what follows the star, dot included.
    below: HashMap<String, NamePolicy>,
    default: NamePolicy,
    /// The number of each policy, and what its authority's digest begins with.
    authorities: HashMap<u64, u64>,
    /// Whether anything is asked for at any name.
    asks: bool,
}

/// What is asked for at a name, if anything is.
type NamePolicy = Option<Arc<Asking>>;

/// A policy, ready for handshakes.
pub(crate) struct Asking {
    pub(crate) number: u64,
    /// What the digest of the authority begins with.
    pub(crate) authority: u64,
    pub(crate) configs: Configs,
}

impl PolicyTable {
    pub(crate) fn new(sites: &[SitePolicy], recipe: &Recipe, tickets: &Arc<Tickets>) -> Self {
        let mut table = Self { asks: sites.iter().any(|site| site.clients.is_some()), ..Self::default() };
        let mut known: HashMap<(u64, bool), Arc<Asking>> = HashMap::new();
        for site in sites {
            let policy_of_name = site.clients.as_ref().map(|policy| {
                let asking = known.entry((policy.number, policy.is_required));
                Arc::clone(asking.or_insert_with(|| Arc::new(Asking::new(policy, recipe, tickets))))
            });
            table.authorities.extend(policy_of_name.iter().map(|asking| (asking.number, asking.authority)));
            if site.is_default {
                table.default.clone_from(&policy_of_name);
            }
            for host in &site.hosts {
                let host = host.strip_suffix('.').unwrap_or(host);
                match host.strip_prefix('*') {
                    Some(below) => table.below.insert(below.to_owned(), policy_of_name.clone()),
                    None => table.exact.insert(host.to_owned(), policy_of_name.clone()),
                };
            }
        }
        table
    }

    /// What a client is asked for that asks for this name.
    pub(crate) fn find(&self, name: Option<&str>) -> NamePolicy {
        if !self.asks {
            return None;
        }
        let Some(name) = name else { return self.default.clone() };
        let name = name.to_ascii_lowercase();
        let below = || name.match_indices('.').find_map(|(dot, _)| self.below.get(&name[dot..]));
        self.exact.get(&name).or_else(below).unwrap_or(&self.default).clone()
    }

    /// Whether a client would be verified at this moment as it was then.
    pub(crate) fn upholds(&self, identity: &ClientIdentity, now_unix_s: u64) -> bool {
        let Proof { authority, until_unix_s } = identity.proof;
        self.authorities.get(&identity.policy) == Some(&authority) && now_unix_s <= until_unix_s
    }
}

impl Asking {
    fn new(policy: &CertificatePolicy, recipe: &Recipe, tickets: &Arc<Tickets>) -> Self {
        let CertificatePolicy { number, authority, is_required } = policy;
        let mut digest = Context::new(&SHA256);
        digest.update(&[u8::from(*is_required)]);
        digest.update(&authority.digest);
        let bound = BoundTickets {
            tickets: Arc::clone(tickets),
            time: Arc::clone(&recipe.time),
            digest: digest.finish().as_ref().try_into().expect("SHA-256 has 32 bytes"),
        };
        let verifier = PolicyVerifier { authority: Arc::clone(authority), is_required: *is_required };
        let config = recipe.config(Arc::new(verifier), Arc::new(bound));
        let authority = u64::from_be_bytes(*authority.digest.first_chunk().expect("a digest is longer"));
        Self { number: *number, authority, configs: Configs::of(config) }
    }
}
