//! Forged sources: a network of addresses nobody outside can be hurt by.
//!
//! It must never let through addresses that are routed in the Internet: whoever has them would get the
//! answers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::Fault;

/// A network of source addresses, for instance `10.9.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Networks for private use, for measuring and for documentation (RFC 1918, 2544, 3849, 4193, 5737, 6598),
/// and loopback.
const HARMLESS: [(IpAddr, u8); 12] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), 10),
    (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 0)), 24),
    (IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)), 15),
    (IpAddr::V4(Ipv4Addr::new(198, 51, 100, 0)), 24),
    (IpAddr::V4(Ipv4Addr::new(203, 0, 113, 0)), 24),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0)), 32),
    (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
];

impl Prefix {
    /// The network of this address and length in bits; bits of the host are cleared.
    ///
    /// # Errors
    /// When it is longer than the address, or reaches addresses that are routed in the Internet.
    pub fn new(address: IpAddr, bits: u8) -> Result<Self, Fault> {
        let width = width(address);
        if bits > width {
            return Err(Fault::new(format!("{address}/{bits}: an address has {width} bits")));
        }
        let prefix = Self { address: first(address, bits), bits };
        if HARMLESS.iter().any(|&(network, length)| prefix.is_within(network, length)) {
            return Ok(prefix);
        }
        Err(Fault::new(format!(
            "{prefix}: forged sources must be private addresses, because the server's answers go to them; \
             give a part of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 198.18.0.0/15, 127.0.0.0/8 or fc00::/7"
        )))
    }

    /// What is taken when nothing is said: loopback for loopback, else 10.9.0.0/16 or fd09::/64.
    pub fn usual(destination: IpAddr) -> Self {
        let (address, bits): (IpAddr, u8) = match destination {
            IpAddr::V4(address) if address.is_loopback() => (Ipv4Addr::new(127, 9, 0, 0).into(), 16),
            IpAddr::V6(address) if address.is_loopback() => (address.into(), 128),
            IpAddr::V4(_) => (Ipv4Addr::new(10, 9, 0, 0).into(), 16),
            IpAddr::V6(_) => (Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 0).into(), 64),
        };
        Self { address, bits }
    }

    /// The network's first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// How many bits all its addresses share.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// Whether this is one of its addresses.
    pub fn contains(self, address: IpAddr) -> bool {
        Self { address, bits: width(address) }.is_within(self.address, self.bits)
    }

    fn is_within(self, network: IpAddr, bits: u8) -> bool {
        self.address.is_ipv4() == network.is_ipv4()
            && self.bits >= bits
            && first(self.address, bits) == network
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with all but the leading `bits` cleared.
fn first(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for Prefix {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let parts = text
            .split_once('/')
            .and_then(|(address, bits)| Some((address.parse().ok()?, bits.parse().ok()?)));
        let (address, bits) =
            parts.ok_or_else(|| Fault::new(format!("`{text}` is no network; write it like 10.9.0.0/16")))?;
        Self::new(address, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_networks_are_taken() {
        for (text, means) in [
            ("10.9.0.0/16", "10.9.0.0/16"),
            ("10.9.77.1/16", "10.9.0.0/16"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("192.168.7.8/32", "192.168.7.8/32"),
            ("127.9.0.0/16", "127.9.0.0/16"),
            ("198.19.0.0/16", "198.19.0.0/16"),
            ("fd09::/64", "fd09::/64"),
            ("fd09::77/64", "fd09::/64"),
            ("::1/128", "::1/128"),
        ] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), means, "{text}");
        }
    }

    #[test]
    fn all_others_are_refused_by_name() {
        for text in
            ["0.0.0.0/0", "8.8.8.0/24", "10.0.0.0/7", "172.16.0.0/11", "::/0", "2001:4860::/32", "fc00::/6"]
        {
            let fault = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(fault.contains("must be private"), "{text}: {fault}");
        }
        for text in ["", "10.9.0.0", "10.9.0.0/", "10.9/16", "10.9.0.0/x", "10.9.0.0/999"] {
            let fault = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(fault.contains(text) && fault.contains("like 10.9.0.0/16"), "{text}: {fault}");
        }
        assert!("10.9.0.0/33".parse::<Prefix>().unwrap_err().to_string().contains("32 bits"));
    }

    #[test]
    fn an_address_is_in_its_network_alone() {
        let prefix: Prefix = "10.9.0.0/16".parse().unwrap();
        assert!(prefix.contains(Ipv4Addr::new(10, 9, 255, 1).into()));
        assert!(!prefix.contains(Ipv4Addr::new(10, 10, 0, 1).into()));
        assert!(!prefix.contains(Ipv6Addr::LOCALHOST.into()));
    }

    #[test]
    fn usual_networks_are_harmless() {
        for destination in ["127.0.0.1", "::1", "10.0.0.1", "fd00::1"] {
            let usual = Prefix::usual(destination.parse().unwrap());
            assert_eq!(Prefix::new(usual.address, usual.bits).unwrap(), usual);
        }
    }
}
