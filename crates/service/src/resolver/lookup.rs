//! The lookup of one name, by what the system's library knows.
//!
//! It must never be made by the server once that is confined.

use std::net::{SocketAddr, ToSocketAddrs as _};

use serde::{Deserialize, Serialize};

/// Most addresses of a name: an answer of DNS over UDP has room for about as many, and each is a server with
/// its places, figures and links.
pub(crate) const ADDRESSES_MAX: usize = 64;

/// Where a name leads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Addresses {
    /// Each with the port, in order.
    pub(crate) all: Vec<SocketAddr>,
    /// How many more there are.
    pub(crate) left_out: usize,
}

impl Addresses {
    /// Of one family: a host that has both is one server, not two. IPv4, where there is any.
    fn of(found: impl IntoIterator<Item = SocketAddr>) -> Self {
        let mut all: Vec<SocketAddr> = found.into_iter().collect();
        if all.iter().any(SocketAddr::is_ipv4) {
            all.retain(SocketAddr::is_ipv4);
        }
        all.sort_unstable();
        all.dedup();
        let left_out = all.len().saturating_sub(ADDRESSES_MAX);
        all.truncate(ADDRESSES_MAX);
        Self { all, left_out }
    }
}

/// Looks a name up, which has its port behind it. Takes as long as the system's library waits.
///
/// # Errors
/// Why it leads nowhere, in words.
pub(crate) fn look_up(name: &str) -> Result<Addresses, String> {
    let found = name.to_socket_addrs().map_err(|error| error.to_string())?;
    let addresses = Addresses::of(found);
    if addresses.all.is_empty() {
        return Err("the name has no address".to_owned());
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Addresses {
        Addresses::of(texts.iter().map(|text| text.parse().expect("an address")))
    }

    #[test]
    fn addresses_are_of_one_family_in_order_and_each_once() {
        for (found, expected) in [
            (&["[::1]:80", "127.0.0.1:80"][..], &["127.0.0.1:80"][..]),
            (&["[::2]:80", "[::1]:80"], &["[::1]:80", "[::2]:80"]),
            (&["10.0.0.2:80", "10.0.0.1:80", "10.0.0.2:80"], &["10.0.0.1:80", "10.0.0.2:80"]),
            (&[], &[]),
        ] {
            assert_eq!(of(found), of(expected), "{found:?}");
            assert_eq!(of(found).all.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn more_addresses_than_the_most_are_counted() {
        let found = (0..200).map(|number| SocketAddr::from(([10, 0, 0, number], 80)));
        let addresses = Addresses::of(found);
        assert_eq!((addresses.all.len(), addresses.left_out), (64, 136));
    }
}
