//! Claims that hold as long as a process lives, one for each port of a node and one for its voice.
//!
//! A claim is a bound abstract Unix socket (unix(7)): it belongs to the network namespace, needs no file and
//! no right, and the kernel gives it up with the process. Anybody can bind any such name, so a claim counts
//! only if root has made it, or a process of the same user. Where a stranger has the name, the claim has a
//! longer one behind it. A claim must never be used to talk, nor be kept by a child.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use staunch_netio::host::{ParentsOnly, unix_socket_maker};

/// A port or a voice that this process has on this host.
#[derive(Debug)]
pub(super) struct Claim {
    socket: ParentsOnly,
    /// The user who has the name without a right to it, in words.
    stranger: Option<String>,
}

impl Claim {
    /// Claims a port of the node that an interface and an EtherType make.
    ///
    /// # Errors
    /// EADDRINUSE: another process of this host has it.
    pub(super) fn port(interface: u32, ether_type: u16, port: u16) -> io::Result<Self> {
        Self::named(&port_name(interface, ether_type, port), &is_trusted)
    }

    /// Claims to speak for the node: to announce it and to answer questions.
    ///
    /// # Errors
    /// EADDRINUSE: another process of this host does.
    pub(super) fn voice(interface: u32, ether_type: u16) -> io::Result<Self> {
        Self::named(&format!("staunch-dostp/{interface}/{ether_type:04x}/voice"), &is_trusted)
    }

    /// A claim that another process has handed over.
    ///
    /// # Errors
    /// EMFILE, ENFILE or ENOMEM.
    pub(super) fn of(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { socket: ParentsOnly::new(socket)?, stranger: None })
    }

    /// The user who has the name of this claim without a right to it, in words.
    pub(super) fn stranger(&self) -> Option<&str> {
        self.stranger.as_deref()
    }

    fn named(name: &str, is_trusted: &dyn Fn(u32) -> bool) -> io::Result<Self> {
        let (socket, stranger) = match bind(name) {
            Ok(socket) => (socket, None),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let holders = holders(name).unwrap_or_default();
                // Where nothing can be told of the holder, it has the claim.
                if holders.is_empty() || holders.iter().any(|inode| is_trusted(*inode)) {
                    return Err(error);
                }
                let suffix = RandomState::new().hash_one(name);
                (bind(&format!("{name}/{suffix:016x}"))?, Some(described(&holders)))
            }
            Err(error) => return Err(error),
        };
        // Another claim may have a longer name, or have come since.
        let own = rustix::fs::fstat(&socket)?.st_ino;
        let mut others =
            holders(name).unwrap_or_default().into_iter().filter(|inode| u64::from(*inode) != own);
        if others.any(is_trusted) {
            return Err(ErrorKind::AddrInUse.into());
        }
        Ok(Self { socket: ParentsOnly::new(socket.into())?, stranger })
    }
}

impl AsFd for Claim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a descriptor is a claim of this port, in the network namespace of the calling thread. Another
/// namespace has claims of the same names.
pub(super) fn is_of_port(
    descriptor: impl AsFd,
    interface: u32,
    ether_type: u16,
    port: u16,
) -> io::Result<bool> {
    let inode = rustix::fs::fstat(descriptor)?.st_ino;
    Ok(holders(&port_name(interface, ether_type, port))?.iter().any(|holder| u64::from(*holder) == inode))
}

/// Whether claims that this user makes count for all.
pub(super) fn counts(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

fn port_name(interface: u32, ether_type: u16, port: u16) -> String {
    format!("staunch-dostp/{interface}/{ether_type:04x}/port/{port}")
}

fn bind(name: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// The inodes of sockets that have this name, or a longer one behind it.
fn holders(name: &str) -> io::Result<Vec<u32>> {
    // Columns: address, count, protocol, flags, type, state, inode, path.
    let list = std::fs::read_to_string("/proc/thread-self/net/unix")?;
    let sockets = list.lines().filter_map(|line| {
        let mut rest = line.split_whitespace().skip(6);
        let inode = rest.next()?.parse().ok()?;
        let behind = rest.next()?.strip_prefix('@')?.strip_prefix(name)?;
        (behind.is_empty() || behind.starts_with('/')).then_some(inode)
    });
    Ok(sockets.collect())
}

/// Whether the socket of this inode was made by a user whose claims count. Where the kernel does not tell,
/// they do.
fn is_trusted(inode: u32) -> bool {
    unix_socket_maker(inode).map_or_else(|error| error.kind() != ErrorKind::NotFound, counts)
}

fn described(holders: &[u32]) -> String {
    let user = holders.iter().find_map(|inode| unix_socket_maker(*inode).ok());
    user.map_or_else(|| "a stranger".to_owned(), |user| format!("user {user}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_as_long_as_it_lives() {
        let number = std::process::id();
        let first = Claim::port(number, 1, 7).unwrap();
        assert_eq!(Claim::port(number, 1, 7).unwrap_err().kind(), ErrorKind::AddrInUse);
        Claim::port(number, 1, 8).unwrap();
        Claim::port(number, 1, 70).unwrap();
        Claim::voice(number, 1).unwrap();
        assert!(is_of_port(&first, number, 1, 7).unwrap() && !is_of_port(&first, number, 1, 8).unwrap());
        assert!(!is_of_port(UnixDatagram::unbound().unwrap(), number, 1, 7).unwrap());
        drop(first);
        Claim::port(number, 1, 7).unwrap();
    }

    #[test]
    fn a_name_that_a_stranger_has_is_no_claim() {
        let name = format!("staunch-dostp/{}/squat", std::process::id());
        let squats = [name.clone(), format!("{name}/0")].map(|name| bind(&name).unwrap());
        let strangers = squats.each_ref().map(|squat| rustix::fs::fstat(squat).unwrap().st_ino as u32);
        let is_trusted = |inode: u32| !strangers.contains(&inode);
        let claim = Claim::named(&name, &is_trusted).unwrap();
        assert!(claim.stranger().is_some_and(|words| words.starts_with("user ")));
        // There is one claim, whether the stranger keeps the name or not.
        assert_eq!(Claim::named(&name, &is_trusted).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(squats);
        assert_eq!(Claim::named(&name, &is_trusted).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(claim);
        assert!(Claim::named(&name, &is_trusted).unwrap().stranger().is_none());
    }
}
