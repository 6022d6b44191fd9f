//! Clients that stay with a server: by which key, and which server that is.
//!
//! A key is a number: of the client's address, or of a cookie with a number drawn at random. The server is
//! found from the key and the servers' addresses alone (rendezvous hashing: each server draws a rank by both,
//! and the highest has it), so several processes and hosts agree, and a restart changes nothing, without a
//! secret or a table. A cookie tells nothing of a server, and one that was made up leads to a server as any
//! other does. It must never take a server that is ill or whose line is full.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;

use staunch_engine::UNIX_PEER;
use staunch_protocol::Request;
use staunch_protocol::http1::relay::cookies_in;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The name of the cookie.
pub(super) const STICKY_COOKIE: &[u8] = b"staunch_sticky";
/// Hexadecimal digits of the cookie's value.
const DIGITS: usize = 16;

/// By what a client stays with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxySticky {
    /// A number that it was given, and sends back.
    Cookie,
    /// The client's address; of IPv6 so many bits of it.
    Client {
        /// Bits of the prefix.
        ipv6_bits: u8,
    },
}

/// The key of a request, and the cookie that its client has to be given for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) key: u64,
    /// A field line; empty if the client has the cookie.
    pub(super) cookie: Vec<u8>,
    /// Whether clients have cookies of ours, which are no business of the application.
    pub(super) is_by_cookie: bool,
}

impl ProxySticky {
    /// The key of a request; there is none of a client without an address.
    pub(super) fn key(
        self,
        request: &Request<'_>,
        client: Option<IpAddr>,
        is_secured: bool,
        chance: &mut Numbers,
    ) -> Option<Stay> {
        match self {
            Self::Client { ipv6_bits } => {
                let bytes = match client.filter(|client| *client != UNIX_PEER)?.to_canonical() {
                    IpAddr::V4(address) => address.octets().to_vec(),
                    IpAddr::V6(address) => {
                        let free_bits = 128 - u32::from(ipv6_bits.min(128));
                        let prefix = address.to_bits().checked_shr(free_bits).unwrap_or(0);
                        prefix.to_be_bytes().to_vec()
                    }
                };
                Some(Stay { key: xxh3_64(&bytes), cookie: Vec::new(), is_by_cookie: false })
            }
            Self::Cookie => {
                // A cookie of a parent domain may stand before ours.
                let mut told = request.values(b"cookie").flat_map(|line| cookies_in(line, STICKY_COOKIE));
                Some(match told.find_map(number) {
                    Some(number) => Stay { key: number, cookie: Vec::new(), is_by_cookie: true },
                    None => {
                        let key = chance.draw();
                        Stay { key, cookie: cookie(key, is_secured), is_by_cookie: true }
                    }
                })
            }
        }
    }
}

/// The number in a cookie, if it is one of ours.
fn number(value: &[u8]) -> Option<u64> {
    let is_right = value.len() == DIGITS && value.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(value).ok().filter(|_| is_right)?;
    u64::from_str_radix(text, 16).ok()
}

/// The field that gives a client its cookie. SameSite=Lax: sent when a link on another site is followed, not
/// with requests that another site's page makes.
fn cookie(key: u64, is_secured: bool) -> Vec<u8> {
    let name = String::from_utf8_lossy(STICKY_COOKIE);
    let mut line = format!("Set-Cookie: {name}={key:0DIGITS$x}; Path=/; HttpOnly; SameSite=Lax");
    // Writing to a string does not fail.
    let _ = write!(line, "{}\r\n", if is_secured { "; Secure" } else { "" });
    line.into_bytes()
}

/// The rank of a server for a key.
pub(super) fn rank(server_hash: u64, key: u64) -> u64 {
    xxh3_64_with_seed(&server_hash.to_le_bytes(), key)
}

/// The hash of a server's address, of which its ranks are made.
pub(super) fn server_hash(address: &str) -> u64 {
    xxh3_64(address.as_bytes())
}

/// Random numbers that clients cannot predict: a counter hashed with a random key.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    state: RandomState,
    drawn: u64,
}

impl Numbers {
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.state.hash_one(self.drawn)
    }

    /// Random bytes for the handshake of a WebSocket (RFC 6455, section 4.1).
    pub(super) fn nonce(&mut self) -> [u8; 16] {
        let [first, second] = [self.draw(), self.draw()];
        (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_move_when_a_server_comes_or_goes() {
        let hashes: Vec<u64> = (0..5).map(|number| server_hash(&format!("10.0.0.{number}:80"))).collect();
        let best = |count: usize, key| (0..count).max_by_key(|index| rank(hashes[*index], key)).unwrap();
        let mut numbers = Numbers::default();
        let keys: Vec<u64> = (0..10_000).map(|_| numbers.draw()).collect();
        let moved: Vec<_> = keys.iter().filter(|key| best(4, **key) != best(5, **key)).collect();
        assert!(moved.iter().all(|key| best(5, **key) == 4), "only to the new one");
        assert!((1_700..2_300).contains(&moved.len()), "a fifth of them: {}", moved.len());
    }

    #[test]
    fn a_cookie_of_ours_is_a_number_and_all_else_is_none() {
        let line = String::from_utf8(cookie(0xab, true)).unwrap();
        assert_eq!(
            line,
            "Set-Cookie: staunch_sticky=00000000000000ab; Path=/; HttpOnly; SameSite=Lax; Secure\r\n"
        );
        assert!(!String::from_utf8(cookie(0xab, false)).unwrap().contains("Secure"));
        assert_eq!(number(b"00000000000000ab"), Some(0xab));
        for wrong in [&b"ab"[..], b"", b"+0000000000000ab", b"000000000000000000ab", b"\xff000000000000000"] {
            assert_eq!(number(wrong), None);
        }
    }
}
