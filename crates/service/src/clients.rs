//! From the configuration to the engine's rules for clients.
//!
//! It must never decide about a client; the engine does.

use std::num::{NonZeroU32, NonZeroU64};

use staunch_config::syntax::access::Denied;
use staunch_config::{Config, Site};
use staunch_engine::{ClientPolicy, ClientRate, Trusted};

use crate::proxy;

/// The rules for clients.
pub(crate) fn policy(config: &Config) -> ClientPolicy {
    let (clients, network) = (&config.clients, &config.network);
    let count = |count: u64| NonZeroU32::new(u32::try_from(count).unwrap_or(u32::MAX));
    let rate = clients
        .client_rate
        .and_then(|rate| Some(ClientRate::new(NonZeroU64::new(rate.count)?, NonZeroU32::new(rate.seconds)?)));
    ClientPolicy {
        addresses: config.has_access_log() || is_asked_for(config),
        connections_max: clients.client_connections.and_then(count),
        rate,
        prefix_ipv6: clients.client_prefix_ipv6,
        dry_run: clients.dry_run,
        proxy_protocol: network.proxy_protocol,
        trusted: Trusted::new(network.trusted_proxies.iter().map(|block| (block.address, block.prefix))),
    }
}

/// Whether a path asks for passwords or live data for tokens, whose checks take turns by client, a path is
/// for some networks only, or an application is told who asks.
fn is_asked_for(config: &Config) -> bool {
    let is_known_by = |site: &Site| !site.live.live_issuer.is_empty();
    if proxy::is_wanted(config) || config.sites.iter().any(is_known_by) {
        return true;
    }
    let mut rules = config.sites.iter().flat_map(|site| &site.paths);
    rules.any(|rule| {
        matches!(rule.basic_auth, Some(Some(_)))
            || matches!(rule.allow, Some(Some(_)))
            || matches!(rule.deny, Some(Denied::Networks(_)))
    })
}
