//! The script that answers a request.

use std::net::IpAddr;

/// Which script answers a request, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// The document root, as the application sees it, without a slash at its end. Empty: the application is
    /// one program, which has no scripts.
    pub root: &'a [u8],
    /// The script's path below that, decoded; empty if there is none.
    pub name: &'a [u8],
    /// What stands behind that in the path, decoded.
    pub path_info: &'a [u8],
    /// The address that asks, as far back as trusted proxies tell; `None` where there is none, as of a Unix
    /// socket.
    pub client: Option<IpAddr>,
    /// Whether the application is asked to keep the connection.
    pub keeps: bool,
}
