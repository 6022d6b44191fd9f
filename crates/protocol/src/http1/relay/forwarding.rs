//! What is told of a request that is passed on, beside the request itself.

use std::net::IpAddr;

/// How a request is passed on.
#[derive(Debug, Clone, Copy)]
pub struct Forwarding<'a> {
    /// The address that asks; `None` where there is none, as of a Unix socket: then no field tells one.
    pub client: Option<IpAddr>,
    /// Whether the request came by TLS.
    pub is_secured: bool,
    /// Whether the peer is a proxy whose word counts: what it says in X-Forwarded-*, Forwarded and X-Real-IP
    /// is passed on, and our hop added.
    pub trusts: bool,
    /// Which Host is asked for.
    pub host: HostRule<'a>,
    /// The path to ask for, as it stands on the wire. The query is the request's.
    pub path: &'a [u8],
    /// Whether `Upgrade` is passed on.
    pub upgrades: bool,
    /// The key of the handshake that is made here for a WebSocket on a stream of HTTP/2; without it such a
    /// request is not passed on.
    pub socket_key: Option<&'a [u8]>,
    /// Name of a cookie that is not passed on.
    pub without_cookie: Option<&'a [u8]>,
    /// Our name in Via, a token that no other proxy on the way has: a request that carries it has come
    /// through here before.
    pub pseudonym: &'a [u8],
}

/// Which Host an application is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostRule<'a> {
    /// The one that the client asked for; empty if it named none, as HTTP/1.0 allows and many applications do
    /// not.
    #[default]
    Kept,
    /// This one.
    Set(&'a [u8]),
}
