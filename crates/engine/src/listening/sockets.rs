//! Listening sockets of all workers at one address: taken over, or bound anew.
//!
//! It must never share a port with a stranger, and never lose a connection that waits at a socket taken over:
//! every such socket goes to some worker.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use staunch_netio::{clock, socket};

use crate::limits::{BACKLOG_CONNECTIONS_MAX, PORT_PATIENCE_MS};
use crate::start_error::StartError;

/// Sockets that listen already, left by the program before this one or by the system's own manager.
#[derive(Debug)]
pub struct Inherited {
    /// The address they were asked for at; its port may be 0.
    pub wanted: SocketAddr,
    /// The sockets, at least one, all of the same address.
    pub sockets: Vec<OwnedFd>,
    /// Name of the backend of the process that still accepts there, if one does.
    pub backend: Option<String>,
    /// They are somebody else's, and go on listening when this process has left: their queues are left alone.
    pub outlasting: bool,
}

/// An address with its sockets, at least one a worker.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) wanted: SocketAddr,
    /// With the port that was taken when any was asked for.
    pub(crate) address: SocketAddr,
    /// By worker.
    pub(crate) sockets: Vec<Vec<OwnedFd>>,
}

impl Bound {
    /// A copy of every socket.
    ///
    /// # Errors
    /// EMFILE.
    pub(crate) fn copies(&self) -> io::Result<Vec<OwnedFd>> {
        self.sockets.iter().flatten().map(OwnedFd::try_clone).collect()
    }
}

/// Listens at an address with every worker, at first on the sockets that were inherited for it.
///
/// # Errors
/// What keeps it from it, as a sentence.
pub(crate) fn bind(wanted: SocketAddr, inherited: Vec<OwnedFd>, workers: usize) -> Result<Bound, StartError> {
    let result = match inherited.first() {
        None => wait_until_free(wanted).and_then(|()| bind_anew(wanted, wanted, workers)),
        Some(_) => take_over(wanted, inherited, workers),
    };
    result.map_err(|error| refused(wanted, &error))
}

/// Listens beside sockets that are left alone: another backend accepts there, and what one wants of a socket
/// (io_uring a blocking one, epoll none that blocks) would harm the other.
///
/// # Errors
/// The address cannot be shared, as a sentence.
pub(crate) fn bind_beside(
    wanted: SocketAddr,
    others: &[OwnedFd],
    workers: usize,
) -> Result<Bound, StartError> {
    let address = others.first().map_or(Ok(wanted), socket::local_address);
    address.and_then(|address| bind_anew(wanted, address, workers)).map_err(|error| refused(wanted, &error))
}

fn bind_anew(wanted: SocketAddr, address: SocketAddr, workers: usize) -> io::Result<Bound> {
    let mut bound = Bound { wanted, address, sockets: Vec::new() };
    for _ in 0..workers {
        let socket = socket::listen(bound.address, BACKLOG_CONNECTIONS_MAX)?;
        prepare(&socket)?;
        bound.address = socket::local_address(&socket)?;
        bound.sockets.push(vec![socket]);
    }
    Ok(bound)
}

/// Deals the sockets out. Workers that get none share one with another if no further one can be bound: it was
/// bound without SO_REUSEPORT, by another user, or with a privilege that is gone.
fn take_over(wanted: SocketAddr, inherited: Vec<OwnedFd>, workers: usize) -> io::Result<Bound> {
    let address = socket::local_address(&inherited[0])?;
    let mut sockets: Vec<Vec<OwnedFd>> = (0..workers).map(|_| Vec::new()).collect();
    for (index, socket) in inherited.into_iter().enumerate() {
        prepare(&socket)?;
        sockets[index % workers].push(socket);
    }
    for worker in 0..workers {
        if sockets[worker].is_empty() {
            let socket = match socket::listen(address, BACKLOG_CONNECTIONS_MAX) {
                Ok(socket) => socket,
                Err(_) => sockets[0][0].try_clone()?,
            };
            prepare(&socket)?;
            sockets[worker].push(socket);
        }
    }
    Ok(Bound { wanted, address, sockets })
}

/// What every listener needs, whoever has bound it; connections inherit it.
fn prepare(listener: &OwnedFd) -> io::Result<()> {
    socket::defer_accept(listener)?;
    socket::bound_unsent(listener)
}

/// See [`socket::check_port_free`]. A server that was just killed may hold its port for a moment.
fn wait_until_free(address: SocketAddr) -> io::Result<()> {
    let end_ms = clock::now_ms() + PORT_PATIENCE_MS;
    loop {
        match socket::check_port_free(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && clock::now_ms() < end_ms => {
                clock::pause(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

/// Why an address cannot be listened at, and what to do.
pub(crate) fn refused(address: SocketAddr, error: &io::Error) -> StartError {
    StartError::System(match error.kind() {
        io::ErrorKind::AddrInUse => format!("cannot listen on {address}: another program already does"),
        io::ErrorKind::PermissionDenied => format!(
            "cannot listen on {address}: ports below 1024 need root or CAP_NET_BIND_SERVICE; \
             try a port such as 8080"
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!("cannot listen on {address}: this host has no such address")
        }
        _ => format!("cannot listen on {address}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn counts(bound: &Bound) -> Vec<usize> {
        bound.sockets.iter().map(Vec::len).collect()
    }

    #[test]
    fn every_inherited_socket_has_a_worker_and_every_worker_a_socket() {
        for (before, after, expected) in [(2, 2, vec![1, 1]), (3, 2, vec![2, 1]), (1, 3, vec![1, 1, 1])] {
            let bound = bind(ANY, Vec::new(), before).unwrap();
            let inherited = bound.sockets.into_iter().flatten().collect();
            let taken = bind(ANY, inherited, after).unwrap();
            assert_eq!((taken.address, counts(&taken)), (bound.address, expected));
            assert_eq!(taken.wanted, ANY);
        }
    }

    #[test]
    fn a_socket_that_cannot_be_bound_again_is_shared() {
        let alone = TcpListener::bind(ANY).unwrap();
        let address = alone.local_addr().unwrap();
        let taken = bind(address, vec![alone.into()], 3).unwrap();
        assert_eq!(counts(&taken), [1, 1, 1]);
        let addresses: Vec<_> =
            taken.sockets.iter().map(|sockets| socket::local_address(&sockets[0]).unwrap()).collect();
        assert_eq!(addresses, [address; 3]);
    }

    #[test]
    fn sockets_of_another_backend_are_left_alone() {
        let before = bind(ANY, Vec::new(), 1).unwrap();
        let beside = bind_beside(ANY, &before.sockets[0], 2).unwrap();
        assert_eq!((beside.wanted, beside.address), (ANY, before.address));
        assert_eq!(counts(&beside), [1, 1]);
    }

    #[test]
    fn a_stranger_is_named() {
        let stranger = TcpListener::bind(ANY).unwrap();
        let address = stranger.local_addr().unwrap();
        let error = bind(address, Vec::new(), 1).unwrap_err().to_string();
        assert_eq!(error, format!("cannot listen on {address}: another program already does"));
    }
}
