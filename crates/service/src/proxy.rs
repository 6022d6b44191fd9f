//! From the settings' words for applications to what the server is told.
//!
//! It must never judge a value: the settings were read strictly.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use staunch_config::units::ServerAddress;
use staunch_config::{Config, Site};
use staunch_engine::PlacesLimit;
use staunch_netio::memory;
use staunch_server::{ProxyConfig, ProxyServer};

/// Part of the memory there is that may be held for slow clients of applications.
const MEMORY_PART: u64 = 8;

/// Every application of the settings, by its name.
fn applications(config: &Config) -> BTreeMap<String, &[ServerAddress]> {
    let of_sites = config.sites.iter().flat_map(Site::applications);
    of_sites.map(|application| (application.name(), &*application.servers)).collect()
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
    applications(config).values().flat_map(|servers| servers.iter().filter_map(port)).collect()
}

/// The addresses of names; of one that leads nowhere there is none.
pub(crate) type Names = BTreeMap<String, Option<SocketAddr>>;

/// The names of all servers.
fn all_names(config: &Config) -> BTreeSet<String> {
    let name = |server: &ServerAddress| match server {
        ServerAddress::Name(name) => Some(name.clone()),
        ServerAddress::Socket(_) | ServerAddress::Unix(_) => None,
    };
    applications(config).values().flat_map(|servers| servers.iter().filter_map(name)).collect()
}

/// Looks up all names. Gives a sentence for each that leads nowhere.
pub(crate) fn names(config: &Config) -> (Names, Vec<String>) {
    let (mut names, mut faults) = (Names::new(), Vec::new());
    for name in all_names(config) {
        let found = look_up(&name);
        if let Err(reason) = &found {
            faults.push(format!(
                "proxy: {name}: {reason}: no request goes there until a restart or an upgrade"
            ));
        }
        names.insert(name, found.ok());
    }
    (names, faults)
}

/// A name that was not looked up.
pub(crate) fn new_name(config: &Config, known: &Names) -> Option<String> {
    all_names(config).into_iter().find(|name| !known.contains_key(name))
}

/// Every application with the addresses of its servers.
pub(crate) fn applications_at(config: &Config, names: &Names) -> Vec<(String, Vec<ProxyServer>)> {
    let server = |server: &ServerAddress| match server {
        ServerAddress::Socket(address) => Some(ProxyServer::Internet(*address)),
        ServerAddress::Unix(file) => Some(ProxyServer::Unix(file.clone())),
        ServerAddress::Name(name) => names.get(name).copied().flatten().map(ProxyServer::Internet),
    };
    let all = applications(config).into_iter();
    all.map(|(name, servers)| (name, servers.iter().filter_map(server).collect())).collect()
}

/// The address of a name: one of IPv4 if there is any.
fn look_up(name: &str) -> Result<SocketAddr, String> {
    let found: Vec<SocketAddr> = name.to_socket_addrs().map_err(|error| error.to_string())?.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| "the name has no address".to_owned())
}

/// Descriptors that connections to servers may take.
pub(crate) fn descriptors(config: &Config) -> u64 {
    if is_wanted(config) { config.proxy.proxy_connections } else { 0 }
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
        links_max: whole(proxy.proxy_connections.div_ceil(workers.max(1) as u64)),
    }
}
