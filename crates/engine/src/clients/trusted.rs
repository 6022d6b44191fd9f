//! Blocks of addresses; which peers are proxies of ours, and who stands behind a request that came through
//! one.
//!
//! It must never believe a word of a peer that is not trusted: anybody can write X-Forwarded-For.

use std::net::IpAddr;
use std::sync::Arc;

use staunch_netio::UNIX_PEER;
use staunch_protocol::Request;

/// Blocks of addresses, such as those from which only proxies of ours connect. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Trusted(Arc<[Block]>);

/// The addresses that begin as this one. Those of IPv4 as IPv6 knows them.
#[derive(Debug, Clone, Copy)]
struct Block {
    address: u128,
    free_bits: u32,
    /// A block of IPv6 such as `::/0` has none of the addresses of IPv4.
    is_ipv4: bool,
}

impl Trusted {
    /// Blocks, each an address and how many of its leading bits count.
    pub fn new(blocks: impl IntoIterator<Item = (IpAddr, u8)>) -> Self {
        let block = |(address, prefix): (IpAddr, u8)| {
            let width_bits: u32 = if address.is_ipv4() { 32 } else { 128 };
            let free_bits = width_bits.saturating_sub(u32::from(prefix));
            let is_ipv4 = address.to_canonical().is_ipv4() && free_bits <= 32;
            Block { address: bits(address), free_bits, is_ipv4 }
        };
        Self(blocks.into_iter().map(block).collect())
    }

    /// Whether nobody is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this address is in one of the blocks. Peers of socket files are in no block of addresses, but
    /// the one that is theirs alone.
    pub fn contains(&self, address: IpAddr) -> bool {
        if address == UNIX_PEER {
            return self.0.iter().any(|block| block.address == 0 && block.free_bits == 0);
        }
        let (address, is_ipv4) = (bits(address), address.to_canonical().is_ipv4());
        let alike = |block: &Block| (address ^ block.address).checked_shr(block.free_bits).unwrap_or(0) == 0;
        self.0.iter().any(|block| block.is_ipv4 == is_ipv4 && alike(block))
    }
}

/// An address as a number.
pub(super) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Where a request comes from: the peer, or if that is a proxy of ours the last address in X-Forwarded-For
/// that is not. What stands to the left of that was written by somebody we do not know. If all are ours it is
/// the first; what is not an address ends the search, and the one to its right counts.
pub fn client_of(request: &Request<'_>, peer: IpAddr, trusted: &Trusted) -> IpAddr {
    if !trusted.contains(peer) {
        return peer;
    }
    let values = request.values(b"x-forwarded-for");
    let hops = values.flat_map(|value| value.split(|byte| *byte == b','));
    // From the left, so that nothing is kept: each that is not ours takes the place of all before it.
    let mut client = None;
    for hop in hops.map(<[u8]>::trim_ascii).filter(|hop| !hop.is_empty()) {
        client = match read_hop(hop) {
            Some(hop) if client.is_none() || !trusted.contains(hop) => Some(hop),
            Some(_) => client,
            None => None,
        };
    }
    client.unwrap_or(peer)
}

/// An address; some proxies add a port, and brackets around IPv6.
fn read_hop(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?;
    let address = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => address,
            _ => text,
        },
    };
    address.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use staunch_protocol::http1::{Event, Session};

    use super::*;

    fn blocks(words: &str) -> Trusted {
        Trusted::new(words.split_ascii_whitespace().map(|word| {
            let (address, prefix) = word.split_once('/').unwrap_or((word, "128"));
            (address.parse().unwrap(), prefix.parse().unwrap())
        }))
    }

    fn client(trusted: &str, peer: &str, fields: &str) -> String {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let (mut session, mut out) = (Session::new(0), Vec::new());
        let mut input = head.as_bytes();
        let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
        let Event::Request(request) = session.poll_event(&mut input, 0, date, &mut out) else {
            panic!("{head:?} is not a request")
        };

        client_of(&request, peer.parse().unwrap(), &blocks(trusted)).to_string()
    }

    #[test]
    fn only_what_trusted_proxies_wrote_counts() {
        const OURS: &str = "10.0.0.0/8 fd00::/8 192.0.2.1";
        for (peer, value, expected) in [
            ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
            ("10.1.1.1", "198.51.100.1", "198.51.100.1"),
            ("192.0.2.1", "198.51.100.1", "198.51.100.1"),
            ("192.0.2.2", "198.51.100.1", "192.0.2.2"),
            ("fd00::1", "2001:db8::1", "2001:db8::1"),
            ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("10.1.1.1", "1.1.1.1, 198.51.100.1, 10.2.2.2", "198.51.100.1"),
            ("10.1.1.1", "1.1.1.1,198.51.100.1 , , 10.2.2.2,", "198.51.100.1"),
            ("10.1.1.1", "10.3.3.3, 10.2.2.2", "10.3.3.3"),
            ("10.1.1.1", "1.1.1.1, unknown, 10.2.2.2, 10.4.4.4", "10.2.2.2"),
            ("10.1.1.1", "1.1.1.1, unknown", "10.1.1.1"),
            ("10.1.1.1", "198.51.100.1:4711", "198.51.100.1"),
            ("10.1.1.1", "[2001:db8::1]:4711", "2001:db8::1"),
            ("10.1.1.1", "[2001:db8::1]", "2001:db8::1"),
            ("10.1.1.1", "::ffff:198.51.100.1", "198.51.100.1"),
            ("10.1.1.1", "\u{e9}", "10.1.1.1"),
            ("10.1.1.1", "", "10.1.1.1"),
        ] {
            let fields = format!("X-Forwarded-For: {value}\r\n");
            assert_eq!(client(OURS, peer, &fields), expected, "{peer} said {value}");
        }
        let twice = "x-forwarded-for: 1.1.1.1\r\nX-Forwarded-For: 198.51.100.1, 10.2.2.2\r\n";
        assert_eq!(client(OURS, "10.1.1.1", twice), "198.51.100.1");
        assert_eq!(client(OURS, "10.1.1.1", ""), "10.1.1.1");
        assert_eq!(client("", "10.1.1.1", twice), "10.1.1.1");
    }

    #[test]
    fn a_block_holds_the_addresses_that_begin_alike() {
        for (words, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.9.9.9/8", "10.255.0.1", true),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("192.0.2.1/32", "192.0.2.1", true),
            ("192.0.2.1/32", "192.0.2.0", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "ffff::1", true),
            ("::/0", "192.0.2.1", false),
            // Peers of a socket file have no address.
            ("::/0", "::", false),
            ("::/127", "::", false),
            ("::/128", "::", true),
            ("::/128", "::1", false),
            ("::ffff:10.0.0.0/104", "10.1.1.1", true),
            ("fd00::1/128", "fd00::1", true),
            ("fd00::1/128", "fd00::2", false),
            ("", "10.0.0.1", false),
        ] {
            assert_eq!(blocks(words).contains(address.parse().unwrap()), expected, "{address} in {words}");
        }
    }
}
