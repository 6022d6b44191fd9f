//! A socket of the kernel module `dostp`, to carry transactions.
//!
//! This file owns how such a socket is opened. The node is the kernel's: nothing here may know a frame, a
//! peer or a key.

use std::io::{self, ErrorKind};
use std::net::SocketAddrV4;
use std::time::Duration;

use staunch_netio::datagram::{FamilyName, FamilySocket};

use super::endpoint::Received;
use super::transactions::TransactionSocket;
use crate::header::Kind;
use crate::limits::MESSAGE_BYTES_MAX;

/// Where a loaded module tells the number of its family.
const FAMILY_FILE: &str = "/sys/module/dostp/parameters/family";

/// A socket of the module that takes requests, replies and acknowledgements beside datagrams.
#[derive(Debug)]
pub struct ModuleSocket {
    socket: FamilySocket,
}

impl ModuleSocket {
    /// Binds a socket; port 0 stands for a free one. The interface is that of the module's setting.
    ///
    /// # Errors
    /// ENOENT: the module is not loaded; EPERM: CAP_NET_RAW is missing; those of bind(2).
    pub fn bind(address: SocketAddrV4) -> io::Result<Self> {
        let family = std::fs::read_to_string(FAMILY_FILE).map_err(|error| {
            io::Error::new(error.kind(), format!("the module dostp: {FAMILY_FILE}: {error}"))
        })?;
        let number = family.trim().parse();
        let number = number.map_err(|_| io::Error::new(ErrorKind::InvalidData, FAMILY_FILE))?;
        let socket = FamilySocket::bind(number, address)?;
        Ok(Self { socket })
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn local_addr(&self) -> io::Result<SocketAddrV4> {
        self.socket.local_addr()
    }
}

impl TransactionSocket for ModuleSocket {
    fn send_transaction(&self, kind: Kind, id: u16, payload: &[u8], to: SocketAddrV4) -> io::Result<usize> {
        self.socket.send(payload, FamilyName { kind: kind as u8, id }, to)
    }

    fn receive(&self) -> io::Result<Received> {
        let mut payload = vec![0; MESSAGE_BYTES_MAX];
        let (length, name, from) = self.socket.receive(&mut payload)?;
        payload.truncate(length);
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == name.kind);
        let kind = kind.ok_or(ErrorKind::InvalidData)?;
        Ok(Received { from, kind, to_all: false, message_id: name.id, payload })
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }
}
