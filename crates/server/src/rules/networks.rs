//! Which clients are served, by the networks they come from.
//!
//! It must never let in a client of whom it is not known where it comes from.

use std::net::IpAddr;

use staunch_engine::Trusted;

use crate::config::Network;

/// The networks of a path. Without any, everybody is served.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    /// Their clients alone are served. Empty: all are.
    pub(crate) allow: Trusted,
    /// Their clients are not, even if they are allowed.
    pub(crate) deny: Trusted,
}

impl Networks {
    /// Whether everybody is served, so that no address has to be known.
    pub(crate) fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Whether a client is served. `None`: its address is not known.
    pub(crate) fn admit(&self, client: Option<IpAddr>) -> bool {
        let within = |networks: &Trusted| client.is_some_and(|client| networks.contains(client));
        client.is_some() && !within(&self.deny) && (self.allow.is_empty() || within(&self.allow))
    }
}

/// The networks a rule names, if it says anything of them.
pub(crate) fn of(networks: &Option<Vec<Network>>) -> Option<Trusted> {
    networks.as_ref().map(|networks| Trusted::new(networks.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(words: &str) -> Trusted {
        Trusted::new(words.split_ascii_whitespace().map(|word| {
            let (address, prefix) = word.split_once('/').unwrap();
            (address.parse().unwrap(), prefix.parse().unwrap())
        }))
    }

    #[test]
    fn denied_goes_before_allowed() {
        for (allow, deny, client, expected) in [
            ("10.0.0.0/8", "", "10.1.2.3", true),
            ("10.0.0.0/8", "", "192.0.2.1", false),
            ("10.0.0.0/8", "", "2001:db8::1", false),
            ("10.0.0.0/8 2001:db8::/32", "", "2001:db8::1", true),
            ("10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", false),
            ("10.0.0.0/8", "10.1.0.0/16", "10.2.2.3", true),
            ("10.1.0.0/16", "10.0.0.0/8", "10.1.2.3", false),
            ("", "192.0.2.0/24", "192.0.2.1", false),
            ("", "192.0.2.0/24", "192.0.3.1", true),
            ("", "192.0.2.0/24", "::1", true),
            ("", "::/0", "192.0.3.1", true),
            ("", "0.0.0.0/0 ::/0", "::1", false),
        ] {
            let both = Networks { allow: networks(allow), deny: networks(deny) };
            assert_eq!(both.admit(client.parse().ok()), expected, "allow {allow}, deny {deny}: {client}");
            assert!(!both.admit(None), "a client without address");
            assert!(!both.is_empty());
        }
        assert!(Networks::default().is_empty());
    }
}
