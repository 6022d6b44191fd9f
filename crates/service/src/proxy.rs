//! From the settings' words for applications to what the server is told.
//!
//! It must never judge a value: the settings were read strictly.

mod names;
pub(crate) mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use staunch_config::syntax::choice::StickyWord;
use staunch_config::units::{Application, ServerAddress, Wire};
use staunch_config::{Config, Site};
use staunch_engine::PlacesLimit;
use staunch_netio::memory;
use staunch_server::{PROXY_CHECKS_MAX, ProxyApplication, ProxyCheck, ProxyConfig, ProxyServer, ProxySticky};

pub(crate) use names::Names;

use crate::sites;

/// Part of the memory there is that may be held for slow clients of applications.
const MEMORY_PART: u64 = 8;

/// Every application of the settings, by its name.
fn applications(config: &Config) -> BTreeMap<String, &Application> {
    let of_sites = config.sites.iter().flat_map(Site::applications);
    of_sites.map(|application| (application.name(), application)).collect()
}

/// The servers of all applications.
fn all_servers(config: &Config) -> impl Iterator<Item = &ServerAddress> {
    config.sites.iter().flat_map(Site::applications).flat_map(|application| &application.servers)
}

/// Whether any request is passed on.
pub(crate) fn is_wanted(config: &Config) -> bool {
    !applications(config).is_empty()
}

/// The ports of all servers, which the process has to be let connect to.
pub(crate) fn ports(config: &Config) -> BTreeSet<u16> {
    let port = |server: &ServerAddress| match server {
        ServerAddress::Socket(address) => Some(address.port()),
        ServerAddress::Name(name) => name.rsplit_once(':')?.1.parse().ok(),
        ServerAddress::Unix(_) => None,
    };
    all_servers(config).filter_map(port).collect()
}

/// The names of all servers, each with its port.
pub(crate) fn all_names(config: &Config) -> BTreeSet<String> {
    let name = |server: &ServerAddress| match server {
        ServerAddress::Name(name) => Some(name.clone()),
        ServerAddress::Socket(_) | ServerAddress::Unix(_) => None,
    };
    all_servers(config).filter_map(name).collect()
}

/// Every application of the settings, with its servers as they are named there.
pub(crate) type Applications = Vec<(String, Application)>;

/// Every application, by its name.
pub(crate) fn all(config: &Config) -> Applications {
    applications(config).into_iter().map(|(name, application)| (name, application.clone())).collect()
}

/// Every application with the addresses of its servers at present. An address to which several names lead is
/// one server. `tls_name`: the name that all certificates must have, if that is not the host of an address.
pub(crate) fn at(
    applications: &Applications,
    names: &Names,
    tls_name: Option<&str>,
) -> Vec<ProxyApplication> {
    let one = |(name, application): &(String, Application)| {
        let mut servers = Vec::new();
        for server in application.servers.iter().flat_map(|server| addresses(server, names)) {
            let server = match (application.wire, server) {
                (Wire::Https, (ProxyServer::Internet(address), host)) => {
                    ProxyServer::Secured(address, tls_name.unwrap_or(&host).into())
                }
                (_, (server, _)) => server,
            };
            if !servers.iter().any(|known| is_one(known, &server)) {
                servers.push(server);
            }
        }
        ProxyApplication { name: name.clone(), wire: sites::wire(application.wire), servers }
    };
    applications.iter().map(one).collect()
}

/// Whether both are one server, whichever names lead to it.
fn is_one(known: &ProxyServer, other: &ProxyServer) -> bool {
    match (known, other) {
        (ProxyServer::Secured(known, _), ProxyServer::Secured(other, _)) => known == other,
        _ => known == other,
    }
}

/// The addresses of a server, each with the host that the settings name.
fn addresses(server: &ServerAddress, names: &Names) -> Vec<(ProxyServer, String)> {
    match server {
        ServerAddress::Socket(address) => {
            vec![(ProxyServer::Internet(*address), address.ip().to_string())]
        }
        ServerAddress::Unix(file) => vec![(ProxyServer::Unix(file.clone()), String::new())],
        ServerAddress::Name(name) => {
            let host = name.rsplit_once(':').map_or(&**name, |(host, _)| host);
            let address = |address: &std::net::SocketAddr| (ProxyServer::Internet(*address), host.to_owned());
            names.addresses(name).iter().map(address).collect()
        }
    }
}

/// Descriptors that connections to servers and checks of them may take.
pub(crate) fn descriptors(config: &Config) -> u64 {
    let checks = if config.proxy.proxy_check.is_some() { PROXY_CHECKS_MAX } else { 0 };
    if is_wanted(config) { config.proxy.proxy_connections + checks } else { 0 }
}

/// How servers are checked, if they are.
pub(crate) fn check(config: &Config) -> Option<ProxyCheck> {
    let path = config.proxy.proxy_check.clone()?;
    Some(ProxyCheck { path, interval: config.proxy.proxy_check_interval })
}

/// How requests are passed on, by a server of so many workers.
pub(crate) fn of(config: &Config, workers: usize) -> ProxyConfig {
    let proxy = &config.proxy;
    let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    let whole = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    ProxyConfig {
        connect_ms: ms(proxy.proxy_connect_timeout),
        send_ms: ms(config.deadlines.send_timeout),
        answer_ms: ms(proxy.proxy_answer_timeout),
        stream_ms: ms(proxy.proxy_stream_timeout),
        idle_ms: ms(proxy.proxy_keep_alive),
        fastcgi_idle_ms: proxy.fastcgi_keep_alive.map(ms),
        patience_ms: ms(proxy.proxy_patience),
        limit: match proxy.proxy_limit {
            None => PlacesLimit::Off,
            Some(None) => PlacesLimit::Auto,
            Some(Some(limit)) => PlacesLimit::Fixed(whole(limit)),
        },
        body_bytes_kept: usize::try_from(proxy.proxy_body_size).unwrap_or(usize::MAX),
        memory_bytes: proxy.proxy_memory.unwrap_or_else(|| memory::total_bytes() / MEMORY_PART),
        sticky: proxy.proxy_sticky.map(|word| match word {
            StickyWord::Cookie => ProxySticky::Cookie,
            StickyWord::Client => ProxySticky::Client { ipv6_bits: config.clients.client_prefix_ipv6 },
        }),
        client_ipv6_bits: config.clients.client_prefix_ipv6,
        links_max: whole(proxy.proxy_connections.div_ceil(workers.max(1) as u64)),
    }
}
