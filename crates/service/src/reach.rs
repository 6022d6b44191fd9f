//! Which addresses one can open in a browser for what is listened at, and who can reach it.
//!
//! It reads what the kernel says of this host's addresses. It must never look up a name or touch a socket.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Addresses of this host that are said: a host of containers has hundreds.
const ADDRESSES_SHOWN_MAX: usize = 4;

/// Addresses of this host that others may know, as they were when it was asked.
#[derive(Debug, Default)]
pub(crate) struct OwnAddresses {
    addresses: Vec<IpAddr>,
}

impl OwnAddresses {
    /// Asks the kernel. To be called before the process is confined; what cannot be read is not said.
    pub(crate) fn ask() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::of(&text("/proc/net/fib_trie"), &text("/proc/net/if_inet6"))
    }

    fn of(ipv4: &str, ipv6: &str) -> Self {
        let mut addresses: Vec<IpAddr> = ipv4_addresses(ipv4).into_iter().map(IpAddr::V4).collect();
        addresses.extend(ipv6_addresses(ipv6).into_iter().map(IpAddr::V6));
        Self { addresses }
    }

    /// All of them.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().copied()
    }

    /// A line for each place that is listened at: an address one can open on this machine, and who else can
    /// reach it. Then, where every address is meant, a line with those of this host.
    pub(crate) fn lines(&self, scheme: &str, listening: &[SocketAddr]) -> Vec<String> {
        let mut lines: Vec<String> = listening.iter().map(|address| line(scheme, address)).collect();
        let of_host = |own: &IpAddr| of_host(scheme, *own, listening);
        let own: Vec<String> = self.addresses.iter().filter_map(of_host).collect();
        if !own.is_empty() {
            let shown = own[..own.len().min(ADDRESSES_SHOWN_MAX)].join("  ");
            let more = own.len().saturating_sub(ADDRESSES_SHOWN_MAX);
            let more = if more == 0 { String::new() } else { format!("  and {more} more") };
            lines.push(format!("  from others  {shown}{more}"));
        }
        lines
    }
}

fn line(scheme: &str, address: &SocketAddr) -> String {
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let local = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let who = match address.ip() {
        ip if ip.is_loopback() => "this machine only".into(),
        ip if ip.is_unspecified() => format!("every {family} address: open to the network"),
        _ => "open to the network".into(),
    };
    format!("listening on {scheme}://{}/ ({who})", SocketAddr::new(local, address.port()))
}

/// The URL at which others find what listens at every address of a family.
fn of_host(scheme: &str, own: IpAddr, listening: &[SocketAddr]) -> Option<String> {
    let every = |address: &&SocketAddr| address.ip().is_unspecified() && address.is_ipv4() == own.is_ipv4();
    let port = listening.iter().find(every)?.port();
    Some(format!("{scheme}://{}/", SocketAddr::new(own, port)))
}

/// Addresses of this host in the kernel's routing table: a leaf that is a host of scope `LOCAL`.
fn ipv4_addresses(table: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut leaf = None;
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL") {
            found.extend(leaf.filter(|address| !address.is_loopback() && !found.contains(address)));
        }
    }
    found
}

/// Addresses in the table of IPv6 addresses, without those that are valid on one link only.
fn ipv6_addresses(table: &str) -> Vec<Ipv6Addr> {
    let address = |line: &str| {
        let digits = u128::from_str_radix(line.split_ascii_whitespace().next()?, 16).ok()?;
        let address = Ipv6Addr::from(digits);
        (!address.is_loopback() && !address.is_unicast_link_local()).then_some(address)
    };
    table.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPV4: &str = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n\
        Local:\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 192.0.2.7\n        /32 host LOCAL\n\
           |-- 192.0.2.255\n        /32 link BROADCAST\n     |-- 192.0.2.7\n        /32 host LOCAL\n";
    const IPV6: &str = "00000000000000000000000000000001 01 80 10 80       lo\n\
        fe800000000000000000000000000001 02 40 20 80     eth0\n\
        20010db8000000000000000000000007 02 40 00 80     eth0\n";

    #[test]
    fn each_place_has_an_address_that_opens_and_who_reaches_it() {
        let host = OwnAddresses::of(IPV4, IPV6);
        for (listening, expected) in [
            ("127.0.0.1:80", vec!["listening on http://127.0.0.1:80/ (this machine only)"]),
            ("[::1]:81", vec!["listening on http://[::1]:81/ (this machine only)"]),
            ("192.0.2.7:80", vec!["listening on http://192.0.2.7:80/ (open to the network)"]),
            (
                "0.0.0.0:80",
                vec![
                    "listening on http://127.0.0.1:80/ (every IPv4 address: open to the network)",
                    "  from others  http://192.0.2.7:80/",
                ],
            ),
            (
                "0.0.0.0:80 [::]:80",
                vec![
                    "listening on http://127.0.0.1:80/ (every IPv4 address: open to the network)",
                    "listening on http://[::1]:80/ (every IPv6 address: open to the network)",
                    "  from others  http://192.0.2.7:80/  http://[2001:db8::7]:80/",
                ],
            ),
        ] {
            let listening: Vec<SocketAddr> =
                listening.split(' ').map(|address| address.parse().expect("an address")).collect();
            assert_eq!(host.lines("http", &listening), expected);
        }
    }

    #[test]
    fn many_addresses_are_not_all_said() {
        let table: String = (1..=9).map(|number| format!("|-- 10.0.0.{number}\n/32 host LOCAL\n")).collect();
        let lines = OwnAddresses::of(&table, "").lines("https", &["0.0.0.0:1".parse().expect("an address")]);
        assert!(lines[1].ends_with("https://10.0.0.4:1/  and 5 more"), "{lines:?}");
        assert_eq!(
            OwnAddresses::default().lines("http", &["0.0.0.0:1".parse().expect("an address")]).len(),
            1
        );
    }
}
