//! Listening sockets of all workers at one place: taken over, or bound anew.
//!
//! It must never share a port with a stranger, and never lose a connection that waits at a socket taken over:
//! every such socket goes to some worker.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use staunch_netio::unix_listener::{FileNumber, SocketFile, UNIX_BACKLOG, check_name_free, listen_beside};
use staunch_netio::{ListenPlace, clock, socket};

use crate::limits::{BACKLOG_CONNECTIONS_MAX, PORT_PATIENCE_MS};
use crate::start_error::StartError;

/// Sockets that listen already, left by the program before this one or by the system's own manager.
#[derive(Debug)]
pub struct Inherited {
    /// The place they were asked for at; its port may be 0.
    pub wanted: ListenPlace,
    /// The sockets, at least one, all of the same place.
    pub sockets: Vec<OwnedFd>,
    /// Name of the backend of the process that still accepts there, if one does.
    pub backend: Option<String>,
    /// Which file the process has made that left them, if it told so.
    pub file: Option<FileNumber>,
    /// They are somebody else's, and go on listening when this process has left: their queues are left alone.
    pub outlasting: bool,
}

impl Inherited {
    /// The socket file that is left with them, owned by the process that leaves it. An earlier version does
    /// not tell which one it is: then it is the one that has the name.
    pub(crate) fn left_file(&self) -> Option<SocketFile> {
        let path = self.wanted.file().filter(|_| !self.outlasting)?;
        match self.file {
            Some(number) => Some(SocketFile::of_other(path, number)),
            None => SocketFile::of(path).ok(),
        }
    }
}

/// A place with its sockets, at least one a worker.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) wanted: ListenPlace,
    /// With the port that was taken when any was asked for.
    pub(crate) place: ListenPlace,
    /// The name of a socket file, removed before its socket is closed.
    pub(crate) file: Option<SocketFile>,
    /// By worker.
    pub(crate) sockets: Vec<Vec<OwnedFd>>,
}

impl Bound {
    /// A copy of every socket. Workers share that of a file.
    ///
    /// # Errors
    /// EMFILE.
    pub(crate) fn copies(&self) -> io::Result<Vec<OwnedFd>> {
        let most = if self.place.file().is_some() { 1 } else { usize::MAX };
        self.sockets.iter().flatten().take(most).map(OwnedFd::try_clone).collect()
    }
}

/// Listens at a place with every worker, at first on the sockets that were inherited for it. `mode` is that
/// of a socket file.
///
/// # Errors
/// What keeps it from it, as a sentence.
pub(crate) fn bind(
    wanted: &ListenPlace,
    inherited: Option<Inherited>,
    workers: usize,
    mode: u32,
) -> Result<Bound, StartError> {
    let result = match (wanted, inherited) {
        (ListenPlace::Unix(path), None) => {
            check_name_free(path).and_then(|()| make(path, mode, workers)).and_then(named)
        }
        (ListenPlace::Unix(path), Some(inherited)) => {
            shared(path, &inherited.sockets[0], inherited.left_file(), workers)
        }
        (ListenPlace::Internet(address), None) => {
            wait_until_free(*address).and_then(|()| bind_anew(*address, *address, workers))
        }
        (ListenPlace::Internet(address), Some(inherited)) => take_over(*address, inherited.sockets, workers),
    };
    result.map_err(|error| refused(wanted, &error))
}

/// Listens beside sockets that are left alone: another backend accepts there, and what one wants of a socket
/// (io_uring a blocking one, epoll none that blocks) would harm the other.
///
/// # Errors
/// The address cannot be shared, as a sentence.
pub(crate) fn bind_beside(
    wanted: &ListenPlace,
    others: &Inherited,
    workers: usize,
    mode: u32,
) -> Result<Bound, StartError> {
    let result = match wanted {
        // Others listen there alone: a file beside it would never get the name.
        ListenPlace::Unix(_) if others.outlasting => Err(io::Error::other(
            "its socket was handed over, by systemd for example, and another `io` needs one of its own: \
             restart instead of an upgrade",
        )),
        // Under a name of its own until it serves: see `Control::take_names`.
        ListenPlace::Unix(path) => make(path, mode, workers),
        ListenPlace::Internet(wanted) => others
            .sockets
            .first()
            .map_or(Ok(*wanted), socket::local_address)
            .and_then(|address| bind_anew(*wanted, address, workers)),
    };
    result.map_err(|error| refused(wanted, &error))
}

/// Makes a socket file beside its name.
fn make(path: &Path, mode: u32, workers: usize) -> io::Result<Bound> {
    let (socket, file) = listen_beside(path, mode, UNIX_BACKLOG)?;
    shared(path, &socket, Some(file), workers)
}

/// Has a socket file take its name.
fn named(mut bound: Bound) -> io::Result<Bound> {
    if let (Some(file), Some(path)) = (&mut bound.file, bound.wanted.file()) {
        file.rename(path)?;
    }
    Ok(bound)
}

/// All workers accept at one socket: a name leads to one alone.
fn shared(path: &Path, socket: &OwnedFd, file: Option<SocketFile>, workers: usize) -> io::Result<Bound> {
    let copies = (0..workers).map(|_| Ok(vec![socket.try_clone()?]));
    let place = ListenPlace::Unix(path.to_owned());
    let sockets = copies.collect::<io::Result<_>>()?;
    Ok(Bound { wanted: place.clone(), place, file, sockets })
}

fn bind_anew(wanted: SocketAddr, mut address: SocketAddr, workers: usize) -> io::Result<Bound> {
    let mut sockets = Vec::new();
    for _ in 0..workers {
        let socket = socket::listen(address, BACKLOG_CONNECTIONS_MAX)?;
        prepare(&socket)?;
        address = socket::local_address(&socket)?;
        sockets.push(vec![socket]);
    }
    Ok(Bound { wanted: wanted.into(), place: address.into(), file: None, sockets })
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
    Ok(Bound { wanted: wanted.into(), place: address.into(), file: None, sockets })
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

/// Why a place cannot be listened at, and what to do.
pub(crate) fn refused(place: &ListenPlace, error: &io::Error) -> StartError {
    let why = match (error.kind(), place) {
        (io::ErrorKind::AddrInUse, _) => "another program already does".into(),
        (io::ErrorKind::NotFound, ListenPlace::Unix(_)) => "its folder does not exist".into(),
        (io::ErrorKind::PermissionDenied, ListenPlace::Unix(_)) => {
            "this user may not make a file in that folder, or not in this sandbox".into()
        }
        (io::ErrorKind::PermissionDenied, ListenPlace::Internet(_)) => {
            "ports below 1024 need root or CAP_NET_BIND_SERVICE; try a port such as 8080".into()
        }
        (io::ErrorKind::AddrNotAvailable, _) => "this host has no such address".into(),
        _ => error.to_string(),
    };
    StartError::System(format!("cannot listen on {place}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn inherited(place: &ListenPlace, sockets: Vec<OwnedFd>) -> Inherited {
        Inherited { wanted: place.clone(), sockets, backend: None, file: None, outlasting: false }
    }

    fn counts(bound: &Bound) -> Vec<usize> {
        bound.sockets.iter().map(Vec::len).collect()
    }

    #[test]
    fn every_inherited_socket_has_a_worker_and_every_worker_a_socket() {
        for (before, after, expected) in [(2, 2, vec![1, 1]), (3, 2, vec![2, 1]), (1, 3, vec![1, 1, 1])] {
            let bound = bind(&ANY.into(), None, before, 0).unwrap();
            let left = inherited(&ANY.into(), bound.sockets.into_iter().flatten().collect());
            let taken = bind(&ANY.into(), Some(left), after, 0).unwrap();
            assert_eq!((&taken.place, counts(&taken)), (&bound.place, expected));
            assert_eq!(taken.wanted, ANY.into());
        }
    }

    #[test]
    fn a_socket_that_cannot_be_bound_again_is_shared() {
        let alone = TcpListener::bind(ANY).unwrap();
        let address = alone.local_addr().unwrap();
        let taken = bind(&address.into(), Some(inherited(&address.into(), vec![alone.into()])), 3, 0);
        let taken = taken.unwrap();
        assert_eq!(counts(&taken), [1, 1, 1]);
        let addresses: Vec<_> =
            taken.sockets.iter().map(|sockets| socket::local_address(&sockets[0]).unwrap()).collect();
        assert_eq!(addresses, [address; 3]);
    }

    #[test]
    fn sockets_of_another_backend_are_left_alone() {
        let mut before = bind(&ANY.into(), None, 1, 0).unwrap();
        let others = inherited(&ANY.into(), before.sockets.remove(0));
        let beside = bind_beside(&ANY.into(), &others, 2, 0).unwrap();
        assert_eq!((&beside.wanted, &beside.place), (&ANY.into(), &before.place));
        assert_eq!(counts(&beside), [1, 1]);
    }

    #[test]
    fn a_stranger_is_named() {
        let stranger = TcpListener::bind(ANY).unwrap();
        let address = stranger.local_addr().unwrap();
        let error = bind(&address.into(), None, 1, 0).unwrap_err().to_string();
        assert_eq!(error, format!("cannot listen on {address}: another program already does"));
    }
    #[test]
    fn a_file_that_is_left_is_its_owners_and_may_be_gone() {
        let path = std::env::temp_dir().join(format!("staunch-left-{}", std::process::id()));
        let place = ListenPlace::Unix(path.clone());
        let mut former = bind(&place, None, 1, 0o600).unwrap();
        let file = former.file.take().unwrap();
        let left = |number, outlasting| Inherited {
            file: number,
            outlasting,
            ..inherited(&place, vec![former.sockets[0][0].try_clone().unwrap()])
        };
        let taken = bind(&place, Some(left(Some(file.number()), false)), 2, 0o600).unwrap();
        assert_eq!((counts(&taken), taken.copies().unwrap().len()), (vec![1, 1], 1));
        drop(taken);
        assert!(path.exists(), "a start that fails leaves it");
        assert!(bind(&place, Some(left(None, true)), 1, 0o600).unwrap().file.is_none());
        let refused = bind_beside(&place, &left(None, true), 1, 0o600).unwrap_err().to_string();
        assert!(refused.contains("restart instead of an upgrade"), "{refused}");
        let number = file.number();
        drop(file);
        assert!(!path.exists());
        for number in [Some(number), None] {
            bind(&place, Some(left(number, false)), 1, 0o600).unwrap();
        }
        // Another server has the name by now.
        let other = bind(&place, None, 1, 0o600).unwrap();
        let mut taken = bind(&place, Some(left(Some(number), false)), 1, 0o600).unwrap();
        taken.file.as_mut().unwrap().own();
        drop(taken);
        assert!(path.exists());
        drop(other);
        assert!(!path.exists());
    }
}
