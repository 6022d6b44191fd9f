//! The payload of control frames: who speaks, what is asked, what is answered.
//!
//! It must never decide whether a greeting is believed.

use std::fmt;

use crate::limits::{GREETING_BYTES, MTU_MIN};

/// A link address: a MAC address, or IPv4 address and port where frames travel in UDP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub [u8; 6]);

impl Link {
    /// All nodes of the segment.
    pub const EVERYBODY: Self = Self([0xff; 6]);
}

impl fmt::Display for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// What a control frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// The sender's boot number, never 0.
    pub boot: u64,
    /// To be echoed in the answer; 0 if none is asked for.
    pub challenge: u64,
    /// The challenge that is answered; 0 if none is.
    pub echo: u64,
    /// The MTU of the sender's interface, at least [`MTU_MIN`].
    pub mtu: u16,
    /// The sender's link address.
    pub link: Link,
}

impl Greeting {
    /// The bytes of the payload.
    pub fn encode(&self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..8].copy_from_slice(&self.boot.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.challenge.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.echo.to_be_bytes());
        bytes[24..26].copy_from_slice(&self.mtu.to_be_bytes());
        bytes[26..].copy_from_slice(&self.link.0);
        bytes
    }

    /// Reads a payload; what follows the greeting is padding. `None` if there is no greeting that can be.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let bytes = payload.first_chunk::<GREETING_BYTES>()?;
        let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_be_bytes(*word));
        let greeting = Self {
            boot: word(0),
            challenge: word(8),
            echo: word(16),
            mtu: u16::from_be_bytes([bytes[24], bytes[25]]),
            link: Link([bytes[26], bytes[27], bytes[28], bytes[29], bytes[30], bytes[31]]),
        };
        (greeting.boot != 0 && greeting.mtu >= MTU_MIN).then_some(greeting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn bytes_survive(bytes: [u8; GREETING_BYTES]) {
            if let Some(greeting) = Greeting::decode(&bytes) {
                assert_eq!(greeting.encode(), bytes);
            } else {
                assert!(bytes[..8] == [0; 8] || bytes[24] == 0 && bytes[25] < 128);
            }
        }
    }
}
