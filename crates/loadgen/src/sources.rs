//! Addresses to connect from: one address has some 28 000 ports to one peer, and a million connections need
//! more.
//!
//! It must never add an address to the machine: on loopback every 127.x.y.z is there already; elsewhere
//! people name the addresses they have.

use std::net::{IpAddr, Ipv4Addr};

use staunch_netio::Address;

use crate::fault::Fault;

/// Where the kernel keeps the range of ports it may choose from.
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Share of an address's ports that is used: the kernel tries every second port first, and searches long when
/// those are taken.
const USED_SHARE: f64 = 0.4;

/// Enough sources for so many connections: those given, or addresses of the loopback network for a peer
/// there. Empty when the kernel's own choice is enough.
///
/// # Errors
/// When there are too few and none can be had.
pub fn enough(address: &Address, given: &[IpAddr], connections: u64) -> Result<Vec<IpAddr>, Fault> {
    let Address::Internet(peer) = address else { return Ok(Vec::new()) };
    let ports = ports(&std::fs::read_to_string(PORT_RANGE).unwrap_or_default());
    let each = (ports as f64 * USED_SHARE) as u64;
    let needed = connections.div_ceil(each.max(1));
    if given.is_empty() && needed <= 1 {
        return Ok(Vec::new());
    }
    match (given.is_empty(), peer.ip()) {
        (true, IpAddr::V4(ip)) if ip.is_loopback() => Ok((0..needed).map(loopback).collect()),
        _ if given.len() as u64 * ports >= connections => Ok(given.to_vec()),
        _ => Err(Fault::new(format!(
            "{connections} connections to one peer need {needed} source addresses, of {ports} ports each \
             ({PORT_RANGE}); name them with --source, or widen the range: \
             sysctl net.ipv4.ip_local_port_range=\"1024 65535\""
        ))),
    }
}

/// How many ports the text of the range allows.
fn ports(text: &str) -> u64 {
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(first), Some(last)) if first <= last => last - first + 1,
        _ => 28_232, // the kernel's own default: 32768 to 60999
    }
}

/// The addresses from 127.1.0.1 on.
fn loopback(number: u64) -> IpAddr {
    let host = number as u32 + 1;
    IpAddr::V4(Ipv4Addr::from(0x7f01_0000 + host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Address {
        Address::Internet(text.parse().unwrap())
    }

    #[test]
    fn ranges_of_ports() {
        assert_eq!(ports("32768\t60999\n"), 28_232);
        assert_eq!(ports("1024 65535"), 64_512);
        assert_eq!(ports(""), 28_232);
    }

    #[test]
    fn few_connections_need_no_source() {
        assert_eq!(enough(&peer("127.0.0.1:80"), &[], 100), Ok(Vec::new()));
        assert_eq!(enough(&Address::Unix("socket".into()), &[], 1 << 20), Ok(Vec::new()));
    }

    #[test]
    fn loopback_has_sources_for_a_million() {
        let sources = enough(&peer("127.0.0.1:80"), &[], 1_000_000).unwrap();
        assert!(sources.len() >= 16, "{}", sources.len());
        assert_eq!(sources[0].to_string(), "127.1.0.1");
        assert!(sources.iter().all(IpAddr::is_loopback));
    }

    #[test]
    fn elsewhere_they_have_to_be_named() {
        let fault = enough(&peer("192.0.2.1:80"), &[], 1_000_000).unwrap_err().to_string();
        assert!(fault.contains("--source"), "{fault}");
        let named: Vec<IpAddr> = (1..60).map(|host| IpAddr::from([10, 0, 0, host])).collect();
        assert_eq!(enough(&peer("192.0.2.1:80"), &named, 1_000_000).unwrap(), named);
    }
}
