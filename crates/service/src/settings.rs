//! From the configuration to what the engine is told, as far as this host allows it.
//!
//! It must never bind a socket: it is asked for a test of the configuration too.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use staunch_config::Config;
use staunch_config::groups::{Deadlines, Network};
use staunch_config::syntax::choice::IoWay;
use staunch_config::units::ListenAddress;
use staunch_engine::{IoChoice, Pressure, Settings};
use staunch_netio::host::cpu;
use staunch_netio::{ListenPlace, socket};
use staunch_program::Failure;
use staunch_protocol::Timeouts;

use crate::certificates;
use crate::clients;
use crate::proxy;

/// What the engine is to do, as far as the system allows it. `handed` are the sockets that were handed over,
/// by name.
///
/// # Errors
/// A processor, a host or a socket that does not exist.
pub(crate) fn of(config: &Config, handed: &[(String, ListenPlace)]) -> Result<Settings, Failure> {
    Ok(Settings {
        listen: listen("listen", &config.network.listen, handed)?,
        socket_mode: config.network.socket_mode,
        // The part of certificates has what belongs here.
        tls: None,
        workers: workers(&config.network)?,
        io: io(&config.network),
        connections_max: config.network.max_connections,
        upstream_descriptors: proxy::descriptors(config),
        memory_budget_bytes: config.pressure.memory_budget,
        timeouts: timeouts(&config.deadlines),
        clients: clients::policy(config),
        http2: config.network.http2,
        pressure: pressure(config),
        // The start of the server has a better place.
        notice: Arc::new(|_| ()),
    })
}

/// The way to the network.
fn io(network: &Network) -> IoChoice {
    match network.io {
        IoWay::Auto => IoChoice::Auto,
        IoWay::Epoll => IoChoice::Epoll,
        IoWay::Uring => IoChoice::Uring,
    }
}

/// When to give way.
fn pressure(config: &Config) -> Pressure {
    let wanted = &config.pressure;
    let whole = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Pressure {
        patience_ms: wanted.patience.map(milliseconds),
        soft_connections: wanted.soft_connections,
        reserved_connections: wanted.reserved_connections.map(whole),
        send_rate_min: config.deadlines.send_rate_min,
        body_rate_min: config.deadlines.body_rate_min,
    }
}

/// A socket for every name that the settings want one of, for a test of them: whoever starts the server
/// hands them over then.
pub(crate) fn any_handed(config: &Config) -> Vec<(String, ListenPlace)> {
    let name = |address: &ListenAddress| match address {
        ListenAddress::Handed(name) => Some((name.clone(), SocketAddr::from(([0; 4], 0)).into())),
        _ => None,
    };
    config.network.listen.iter().chain(&config.tls.tls_listen).filter_map(name).collect()
}

/// Addresses at which TLS is spoken; none without a certificate.
///
/// # Errors
/// A host or a socket that does not exist; an address where plain HTTP is spoken too.
pub(crate) fn secured(
    config: &Config,
    handed: &[(String, ListenPlace)],
    plain: &[ListenPlace],
) -> Result<Vec<ListenPlace>, Failure> {
    if !certificates::are_named(config) {
        return Ok(Vec::new());
    }
    let secured = listen("tls_listen", &config.tls.tls_listen, handed)?;
    for address in &secured {
        if let Some(other) = plain.iter().find(|other| covers(other, address) || covers(address, other)) {
            let text = match other == address {
                true => format!("tls_listen: {address} is in `listen` too: a port speaks one of both"),
                false => format!(
                    "tls_listen: {address} meets {other}, which is in `listen`: a port speaks one of both"
                ),
            };
            return Err(Failure::configuration(text));
        }
    }
    Ok(secured)
}

/// Whether a connection to the second place would come to the first: they are one, or the first stands for
/// every address of its family.
fn covers(one: &ListenPlace, other: &ListenPlace) -> bool {
    let (Some(one), Some(other)) = (one.address(), other.address()) else { return one == other };
    let is_one = one.ip() == other.ip() || (one.ip().is_unspecified() && one.is_ipv4() == other.is_ipv4());
    one.port() != 0 && one.port() == other.port() && is_one
}

/// The name under which the address of IPv4 is handed over that a socket of IPv6 takes with its own: no
/// socket can be named so in the settings.
pub(crate) const BOTH: &str = "\n";

/// Where to listen, with names looked up. Several sockets may have been handed over under one name.
fn listen(
    key: &str,
    wanted: &[ListenAddress],
    handed: &[(String, ListenPlace)],
) -> Result<Vec<ListenPlace>, Failure> {
    let places = |address: &ListenAddress| match address {
        ListenAddress::Every(port) => {
            Ok(every(*port, socket::has_ipv6()).into_iter().map(ListenPlace::from).collect())
        }
        ListenAddress::Socket(address) => Ok(vec![(*address).into()]),
        ListenAddress::Unix(file) => Ok(vec![ListenPlace::Unix(file.clone())]),
        ListenAddress::Name(name) => {
            let found = name.to_socket_addrs().ok().and_then(|mut found| found.next());
            let unknown = || Failure::configuration(format!("{key}: no address is known for {name}"));
            Ok(vec![found.ok_or_else(unknown)?.into()])
        }
        ListenAddress::Handed(name) => {
            let named = handed.iter().filter(|(own, _)| own == name);
            let found: Vec<ListenPlace> = named.map(|(_, place)| place.clone()).collect();
            let text = || format!("{key}: no socket called {name} was handed over");
            if found.is_empty() { Err(Failure::configuration(text())) } else { Ok(found) }
        }
    };
    let all = wanted.iter().map(places).collect::<Result<Vec<_>, _>>()?.concat();
    let all: Vec<ListenPlace> = all.into_iter().map(|place| by_both(place, handed)).collect();
    let is_needed = |(index, place): &(usize, &ListenPlace)| {
        let is_covered = |(number, other): (usize, &ListenPlace)| {
            // Of two that are one the first stays.
            number != *index && covers(other, place) && (number < *index || other != *place)
        };
        !all.iter().enumerate().any(is_covered)
    };
    Ok(all.iter().enumerate().filter(is_needed).map(|(_, place)| place.clone()).collect())
}

/// The place, or that of the socket of both families that was handed over and takes what comes to it.
fn by_both(place: ListenPlace, handed: &[(String, ListenPlace)]) -> ListenPlace {
    let is_taken = handed.iter().any(|(name, own)| name == BOTH && *own == place);
    match place.address() {
        Some(address) if is_taken => SocketAddr::from((Ipv6Addr::UNSPECIFIED, address.port())).into(),
        _ => place,
    }
}

/// A port at every address. The kernel would give IPv6 another free port than IPv4.
fn every(port: u16, has_ipv6: bool) -> Vec<SocketAddr> {
    let ipv4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let ipv6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    if has_ipv6 && port != 0 { vec![ipv4, ipv6] } else { vec![ipv4] }
}

/// What to say where every address is meant and the kernel has no IPv6.
pub(crate) fn without_ipv6(config: &Config) -> Option<&'static str> {
    let wants = config
        .network
        .listen
        .iter()
        .any(|address| matches!(address, ListenAddress::Every(port) if *port != 0));
    (wants && !socket::has_ipv6()).then_some("listen: this kernel has no IPv6, a port alone means IPv4 alone")
}

/// A worker per processor, or as many as asked for on the processors there are.
pub(crate) fn workers(network: &Network) -> Result<Vec<Option<usize>>, Failure> {
    let allowed = cpu::available_cpus().map_err(|error| format!("cannot list the processors: {error}"))?;
    let mut cpus = match &network.cpus {
        Some(wanted) => match wanted.0.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(cpu) => {
                let text = format!("cpus: processor {cpu} is not one this process may use ({allowed:?})");
                return Err(Failure::configuration(text));
            }
            None => wanted.0.clone(),
        },
        None => allowed,
    };
    if network.leave_cpu0 && cpus.len() > 1 {
        cpus.retain(|&cpu| cpu != 0);
    }
    let count = network.workers.map_or(cpus.len(), |count| count.min(1024) as usize);
    Ok((0..count).map(|worker| Some(cpus[worker % cpus.len()])).collect())
}

fn timeouts(deadlines: &Deadlines) -> Timeouts {
    Timeouts {
        header_ms: milliseconds(deadlines.header_timeout),
        keep_alive_ms: milliseconds(deadlines.keep_alive),
        body_ms: milliseconds(deadlines.body_timeout),
        send_ms: milliseconds(deadlines.send_timeout),
        ..Timeouts::default()
    }
}

fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_address_covers_is_not_listened_at_twice() {
        let file = |text: &str| {
            let text = format!("root = '/'\nroot_anyway = true\ntls = 'local'\n{text}");
            let file = Some(staunch_config::File::new("staunch.toml", text));
            let sources = staunch_config::Sources { flags: Vec::new(), environment: Vec::new(), file };
            staunch_config::read(&sources).unwrap_or_else(|faults| panic!("{faults}"))
        };
        let told = |text: &str, handed: &[(String, ListenPlace)]| {
            let config = file(text);
            let plain = listen("listen", &config.network.listen, handed)?;
            Ok((plain.clone(), secured(&config, handed, &plain)?))
        };
        for (plain, secure, other) in [
            ("0.0.0.0:21305", "127.0.0.1:21305", "0.0.0.0:21305"),
            ("127.0.0.1:21305", "0.0.0.0:21305", "127.0.0.1:21305"),
            ("[::1]:21305", "[::]:21305", "[::1]:21305"),
        ] {
            let text = format!("listen = ['{plain}']\ntls_listen = ['{secure}']\n");
            let refused: Result<_, Failure> = told(&text, &[]);
            let said = refused.expect_err("refused").text;
            assert_eq!(
                said,
                format!(
                    "tls_listen: {secure} meets {other}, which is in `listen`: a port speaks one of both"
                )
            );
        }
        let text =
            "listen = ['0.0.0.0:21305', '127.0.0.1:21305', '[::1]:21305', '[::1]:21305']\ntls_listen = []\n";
        let all = |places: &[&str]| -> Vec<ListenPlace> {
            places.iter().map(|place| place.parse().expect("a place")).collect()
        };
        let told = |text, handed| told(text, handed).unwrap_or_else(|failure: Failure| panic!("{failure}")).0;
        assert_eq!(told(text, &[]), all(&["0.0.0.0:21305", "[::1]:21305"]));
        let text = "listen = ['unix:/run/a', 'unix:/run/a', 'unix:/run/b']\ntls_listen = []\n";
        assert_eq!(told(text, &[]), all(&["unix:/run/a", "unix:/run/b"]));
        // A socket of both families that systemd holds.
        let handed = [
            ("http".to_owned(), all(&["[::]:21305"]).remove(0)),
            (BOTH.to_owned(), all(&["0.0.0.0:21305"]).remove(0)),
        ];
        let text = "listen = ['0.0.0.0:21305', '[::]:21305']\ntls_listen = []\n";
        assert_eq!(told(text, &handed), all(&["[::]:21305"]));
        assert_eq!(told("listen = ['0.0.0.0:21305']\ntls_listen = []\n", &handed), all(&["[::]:21305"]));
    }

    #[test]
    fn a_port_alone_is_every_address_there_is() {
        let all = |addresses: &[&str]| -> Vec<SocketAddr> {
            addresses.iter().map(|address| address.parse().expect("an address")).collect()
        };
        assert_eq!(every(80, true), all(&["0.0.0.0:80", "[::]:80"]));
        assert_eq!(every(80, false), all(&["0.0.0.0:80"]));
        assert_eq!(every(0, true), all(&["0.0.0.0:0"]));
    }
}
