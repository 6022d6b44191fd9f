//! What systemd is told (sd_notify(3)): datagrams of `NAME=VALUE` lines to the socket it names.
//!
//! It must never wait, nor fail a server: whoever does not listen misses it.

use std::env;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket of the service manager, if there is one.
pub(super) struct Notify(Option<UnixDatagram>);

impl Notify {
    /// Finds out from the environment (NOTIFY_SOCKET).
    pub(super) fn from_environment() -> Self {
        let Some(name) = env::var_os("NOTIFY_SOCKET") else { return Self(None) };
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => SocketAddr::from_pathname(&name),
        };
        let connect = |address| {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.connect_addr(&address)?;
            Ok::<_, std::io::Error>(socket)
        };
        Self(address.and_then(connect).ok())
    }

    /// Tells some lines at once.
    pub(super) fn tell(&self, lines: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(lines.as_bytes());
        }
    }
}
