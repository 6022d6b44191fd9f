//! IPv4 addresses as a node understands them.
//!
//! This file owns which addresses stand for all, and the errors of those that are no node's. It must never
//! know who has spoken.

use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;

/// The low 16 bits of an IPv4 address: they name a node on the wire.
pub(crate) fn low_bits(address: Ipv4Addr) -> u16 {
    (address.to_bits() & 0xffff) as u16
}

/// Whether an address stands for all: 255.255.255.255, or the broadcast address of this network. Networks of
/// one or two addresses have none (RFC 3021, section 2.1).
pub(super) fn is_of_all(address: Ipv4Addr, own: Ipv4Addr, netmask: Ipv4Addr) -> bool {
    let host_bits = !netmask.to_bits();
    address.is_broadcast() || (host_bits > 1 && address.to_bits() == own.to_bits() | host_bits)
}

/// The error of two addresses that name one node.
pub(super) fn same(one: Ipv4Addr, other: Ipv4Addr) -> io::Error {
    unfit(format!("{one} and {other} are the same to DOSTP: equal in the low 16 bits"))
}

/// The error of an address that is none of a node.
pub(super) fn unfit(text: String) -> io::Error {
    io::Error::new(ErrorKind::AddrNotAvailable, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_two_addresses_have_none_for_all() {
        let table = [
            ("255.255.255.255", "10.0.0.1", 32, true),
            ("10.0.255.255", "10.0.0.1", 16, true),
            ("10.0.0.255", "10.0.0.1", 16, false),
            ("10.0.0.255", "10.0.0.1", 24, true),
            ("10.0.0.3", "10.0.0.1", 30, true),
            ("10.0.0.2", "10.0.0.1", 30, false),
            ("10.0.0.1", "10.0.0.0", 31, false),
            ("10.0.0.1", "10.0.0.1", 31, false),
            ("10.0.0.1", "10.0.0.1", 32, false),
        ];
        for (address, own, prefix, is_all) in table {
            let netmask = Ipv4Addr::from_bits(u32::MAX << (32 - prefix));
            let found = is_of_all(address.parse().unwrap(), own.parse().unwrap(), netmask);
            assert_eq!(found, is_all, "{address} at {own}/{prefix}");
        }
    }
}
