//! Addresses that begin alike: `192.0.2.0/24`, `2001:db8::/32`, or one alone.
//!
//! It owns the reading and the form in which the program looks for them. It must never decide what they are
//! for.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A prefix of addresses. Bits behind it are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The first address.
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// All addresses there are.
    pub(super) const EVERYTHING: [Self; 2] = [
        Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), bits: 0 },
        Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), bits: 0 },
    ];

    /// The prefix of so many bits that an address is in.
    pub(crate) fn around(address: IpAddr, bits: u8) -> Self {
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits.into())).unwrap_or(0);
                IpAddr::from((u32::from(address) & mask).to_be_bytes())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits.into())).unwrap_or(0);
                IpAddr::from((u128::from(address) & mask).to_be_bytes())
            }
        };
        Self { address, bits }
    }

    /// Whether it is one address alone.
    pub fn is_single(&self) -> bool {
        self.bits == if self.address.is_ipv6() { 128 } else { 32 }
    }

    /// Its first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits are the same.
    pub fn bits(&self) -> u8 {
        self.bits
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(left, right)| (left, Some(right)));
        let address: IpAddr =
            address.parse().map_err(|_| format!("'{text}': '{address}' is no IP address"))?;
        let bits_max = if address.is_ipv6() { 128 } else { 32 };
        let bits: u8 = match bits {
            None => bits_max,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= bits_max).ok_or_else(|| {
                format!("'{text}': the length of a prefix is 0 to {bits_max}, not '{bits}'")
            })?,
        };
        let around = Self::around(address, bits);
        if around.address != address {
            return Err(format!("'{text}' is no prefix; '{around}' is the one around it"));
        }
        Ok(around)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_and_shown_the_same() {
        for text in ["192.0.2.0/24", "0.0.0.0/0", "192.0.2.7/32", "2001:db8::/32", "::/0", "::1/128"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!("192.0.2.7".parse::<Prefix>().unwrap().to_string(), "192.0.2.7/32");
    }

    #[test]
    fn what_is_no_prefix_is_refused_by_name() {
        for (text, words) in [
            ("192.0.2.300", "'192.0.2.300' is no IP address"),
            ("192.0.2.0/33", "0 to 32, not '33'"),
            ("2001:db8::/129", "0 to 128, not '129'"),
            ("192.0.2.0/x", "not 'x'"),
            ("192.0.2.7/24", "'192.0.2.0/24' is the one around it"),
            ("", "is no IP address"),
        ] {
            let error = text.parse::<Prefix>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
