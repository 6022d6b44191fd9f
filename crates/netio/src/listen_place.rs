//! Where a server listens: an address and port, or the name of a socket file.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How the name of a socket file begins.
const UNIX: &str = "unix:";

/// The address that stands for peers of a socket file, who have none: no peer of TCP has it.
pub const UNIX_PEER: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenPlace {
    /// An address and a port; port 0 takes a free one.
    Internet(SocketAddr),
    /// The whole name of a socket file.
    Unix(PathBuf),
}

impl ListenPlace {
    /// The address, if it is one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Internet(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// The name of the socket file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Internet(_) => None,
            Self::Unix(file) => Some(file),
        }
    }
}

impl From<SocketAddr> for ListenPlace {
    fn from(address: SocketAddr) -> Self {
        Self::Internet(address)
    }
}

impl fmt::Display for ListenPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(formatter),
            Self::Unix(file) => write!(formatter, "{UNIX}{}", file.display()),
        }
    }
}

impl FromStr for ListenPlace {
    type Err = std::net::AddrParseError;

    /// Reads what was displayed.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix(UNIX) {
            Some(file) => Ok(Self::Unix(file.into())),
            None => text.parse().map(Self::Internet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_displayed_can_be_read() {
        for text in ["127.0.0.1:80", "[::1]:8080", "unix:/run/staunch.sock"] {
            let place: ListenPlace = text.parse().unwrap();
            assert_eq!(place.to_string(), text);
            assert_eq!(place.address().is_some(), place.file().is_none());
        }
        assert!("/run/staunch.sock".parse::<ListenPlace>().is_err());
    }
}
