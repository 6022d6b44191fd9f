//! How requests are passed on, in the words of whoever configures it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use staunch_engine::{PlacesLimit, Target, TargetAddress, UpstreamTimeouts};

use super::sticky::ProxySticky;
use crate::config::ProxyWire;
use crate::limits::PROXY_LINKS_PLACED_PART;

/// An application, by the servers that it has at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyApplication {
    /// As the settings name it.
    pub name: String,
    /// The language that is spoken with its servers.
    pub wire: ProxyWire,
    /// The addresses of its servers.
    pub servers: Vec<ProxyServer>,
}

/// Where a server of an application listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProxyServer {
    /// TCP.
    Internet(SocketAddr),
    /// TLS over TCP, with a server whose certificate must have this name.
    Secured(SocketAddr, Box<str>),
    /// A Unix stream socket.
    Unix(PathBuf),
}

impl ProxyServer {
    /// The target that the engine connects to.
    pub(super) fn target(&self) -> Target {
        Target::new(match self {
            Self::Internet(address) | Self::Secured(address, _) => TargetAddress::Internet(*address),
            Self::Unix(file) => TargetAddress::Unix(file.clone()),
        })
    }
}

impl fmt::Display for ProxyServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(formatter),
            Self::Secured(address, _) => write!(formatter, "https://{address}"),
            Self::Unix(file) => write!(formatter, "unix:{}", file.display()),
        }
    }
}

/// How requests are passed on, to whichever application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Until a server is connected, in milliseconds.
    pub connect_ms: u32,
    /// Between two steps of progress while a request is sent, in milliseconds.
    pub send_ms: u32,
    /// Until a server answers, and between two pieces of its answer, in milliseconds.
    pub answer_ms: u32,
    /// Between two pieces of a stream of events or of another protocol, in milliseconds.
    pub stream_ms: u32,
    /// For how long a link is kept that serves nobody, in milliseconds.
    pub idle_ms: u32,
    /// For how long a link by FastCGI is kept that serves nobody, in milliseconds; `None`: it is closed.
    pub fastcgi_idle_ms: Option<u32>,
    /// How long clients wait for an answer, in milliseconds.
    pub patience_ms: u32,
    /// The rule for how many requests a server works on at once.
    pub limit: PlacesLimit,
    /// Length of a request's body up to which it is there before a place is asked for, in bytes.
    pub body_bytes_kept: usize,
    /// Bodies of requests and answers that are held for slow clients, all together, in bytes.
    pub memory_bytes: u64,
    /// Links of each worker at a time.
    pub links_max: u32,
    /// By what clients stay with a server, if they do.
    pub sticky: Option<ProxySticky>,
    /// Leading bits of an IPv6 address that make a client.
    pub client_ipv6_bits: u8,
}

impl ProxyConfig {
    /// Links of a worker whose exchanges may be worked on beside the places: others are kept for what takes a
    /// place.
    pub(super) fn beside_max(&self) -> u32 {
        self.links_max - self.links_max / PROXY_LINKS_PLACED_PART
    }

    /// Deadlines of a link that serves an exchange.
    pub(super) fn at_work(&self) -> UpstreamTimeouts {
        UpstreamTimeouts { connect_ms: self.connect_ms, send_ms: self.send_ms, receive_ms: self.answer_ms }
    }

    /// Deadlines of a link whose answer goes on as long as both ends like: events, or another protocol.
    pub(super) fn in_stream(&self) -> UpstreamTimeouts {
        UpstreamTimeouts { receive_ms: self.stream_ms, ..self.at_work() }
    }

    /// Deadlines of a link that serves nobody; `None` if none is kept.
    pub(super) fn at_rest(&self, is_fastcgi: bool) -> Option<UpstreamTimeouts> {
        let idle_ms = if is_fastcgi { self.fastcgi_idle_ms } else { Some(self.idle_ms) };
        idle_ms.map(|receive_ms| UpstreamTimeouts { receive_ms, ..self.at_work() })
    }
}

#[cfg(test)]
impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            connect_ms: 5_000,
            send_ms: 60_000,
            answer_ms: 30_000,
            stream_ms: 3_600_000,
            idle_ms: 60_000,
            fastcgi_idle_ms: None,
            patience_ms: 1_000,
            limit: PlacesLimit::Auto,
            body_bytes_kept: 1 << 20,
            memory_bytes: 256 << 20,
            links_max: 1_024,
            sticky: None,
            client_ipv6_bits: 64,
        }
    }
}
