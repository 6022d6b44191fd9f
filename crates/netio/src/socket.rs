//! Listening sockets: made here with the options every worker needs, and nowhere else. And what is asked of
//! any socket by options.
//!
//! It must never accept, connect or send; that is the backends' work. Order of calls: `check_port_free` once
//! an address, then `listen` once a worker.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, bind, getsockname, socket_with,
};

use crate::unix_listener::UNIX_BACKLOG;
use crate::{ListenPlace, Taken, UNIX_PEER};

/// A listening socket: non-blocking, close-on-exec, shared by address with the listeners of other workers of
/// this user (SO_REUSEPORT), TCP_NODELAY (inherited by accepted sockets), IPv6 without IPv4. `backlog` counts
/// connections; the kernel caps it at `net.core.somaxconn`.
///
/// SO_REUSEPORT shares silently with any program of the same user: call [`check_port_free`] before the first.
///
/// # Errors
/// Those of socket(2), bind(2) (EADDRINUSE, EACCES, EADDRNOTAVAIL) and listen(2).
pub fn listen(address: SocketAddr, backlog: i32) -> io::Result<OwnedFd> {
    let socket = unbound(address)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    bind(&socket, &address)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(socket)
}

/// Lets the kernel keep a new connection to itself until its first bytes are there, so that a worker is woken
/// once a connection instead of twice: 17 instead of 26 us of CPU time for a connection with one request. One
/// that stays silent is handed over after about a second all the same (tcp(7), TCP_DEFER_ACCEPT), so its
/// deadline still runs.
///
/// # Errors
/// Those of setsockopt(2).
pub fn defer_accept(listener: &OwnedFd) -> io::Result<()> {
    const SECONDS: libc::c_int = 1;
    set_option(listener.as_fd(), libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, SECONDS)
}

/// What waits in a socket to be sent for the first time, at most: enough that a fast peer finds more whenever
/// it has room. 128 KiB cost 5 % more processor time for a large file, this nothing.
pub(crate) const UNSENT_BYTES_MAX: u32 = 256 * 1024;

/// Bounds what each connection accepted from now on takes before its peer has room for it. A peer that hardly
/// reads is given 2 MB of a large file otherwise, of memory that all connections share: a thousand of them
/// took 1900 MB and 2.9 s of processor time, and with this 610 MB and 0.7 s. What is under way to a fast peer
/// is not counted, so no distance is too long for it.
///
/// # Errors
/// Those of setsockopt(2).
pub fn bound_unsent(listener: &OwnedFd) -> io::Result<()> {
    set_option(listener.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX as libc::c_int)
}

/// Whether the kernel makes sockets of IPv6 at all, tried once by making one.
pub fn has_ipv6() -> bool {
    static HAS_IPV6: OnceLock<bool> = OnceLock::new();
    let made = || socket_with(AddressFamily::INET6, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    *HAS_IPV6.get_or_init(|| made().is_ok())
}

/// Whether nobody listens at this address, tried by binding once without sharing. Port 0 is always free.
///
/// # Errors
/// EADDRINUSE if somebody listens; else as [`listen`].
pub fn check_port_free(address: SocketAddr) -> io::Result<()> {
    let socket = unbound(address)?;
    bind(&socket, &address)?;
    Ok(())
}

/// Where a listener listens: tells the port when it was asked for as 0.
///
/// # Errors
/// Those of getsockname(2), and EAFNOSUPPORT for a socket that is not of the Internet.
pub fn local_address(listener: &OwnedFd) -> io::Result<SocketAddr> {
    Ok(getsockname(listener)?.try_into()?)
}

/// As [`local_address`], or the name of the socket file.
///
/// # Errors
/// Those of getsockname(2), and EAFNOSUPPORT for a socket that has neither.
pub fn local_place(listener: &OwnedFd) -> io::Result<ListenPlace> {
    let address = getsockname(listener)?;
    match SocketAddrUnix::try_from(address.clone()) {
        Ok(unix) => {
            let name = unix.path_bytes().filter(|name| name.first() == Some(&b'/'));
            let name = name.ok_or(Errno::AFNOSUPPORT)?;
            Ok(ListenPlace::Unix(std::ffi::OsStr::from_bytes(name).into()))
        }
        Err(_) => Ok(ListenPlace::Internet(address.try_into()?)),
    }
}

/// Ends the waiting of every thread in accept(2) on this listener. No further connection is accepted.
///
/// # Errors
/// Those of shutdown(2).
pub fn stop_listening(listener: &impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(listener, rustix::net::Shutdown::Both)?)
}

/// A listener's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Connections that wait to be accepted.
    pub waiting: u32,
    /// How many may.
    pub limit: u32,
}

/// How many connections wait in the queue of a listener, and how many may. Of a Unix socket the kernel tells
/// only whether any wait.
pub(crate) fn queue(listener: BorrowedFd<'_>) -> Option<Queue> {
    match tcp_info(listener) {
        // Linux reports the queue of a listener as `tcpi_unacked` and `tcpi_sacked`.
        Ok(info) => Some(Queue { waiting: info.tcpi_unacked, limit: info.tcpi_sacked }),
        Err(_) if sockopt::socket_acceptconn(listener) == Ok(true) => {
            let mut awaited = [PollFd::new(&listener, PollFlags::IN)];
            let waits = poll(&mut awaited, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
            Some(Queue { waiting: u32::from(waits), limit: UNIX_BACKLOG as u32 })
        }
        Err(_) => None,
    }
}

/// The peer of an accepted connection: [`UNIX_PEER`], without a port, for one that came by a Unix socket.
pub(crate) fn peer(address: SocketAddrAny) -> Option<SocketAddr> {
    match address.address_family() {
        AddressFamily::UNIX => Some(SocketAddr::new(UNIX_PEER, 0)),
        _ => address.try_into().ok(),
    }
}

/// Sets an option that is an int.
///
/// # Errors
/// Those of setsockopt(2).
pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call, and the value is an int of the size given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the kernel knows of a TCP connection or listener (TCP_INFO). Fields that this kernel does not know
/// are zero.
///
/// # Errors
/// Those of getsockopt(2): EOPNOTSUPP for a socket that is not of TCP.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<libc::tcp_info> {
    // SAFETY: all zeroes are a valid tcp_info: it is made of integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`, both of which live through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(info) }
}

/// Drops from now on the segments of clients that begin to connect (SYN without ACK), by a filter of the
/// kernel. Handshakes under way come to their end.
///
/// # Errors
/// Those of setsockopt(2).
pub(crate) fn drop_syn(listener: BorrowedFd<'_>) -> io::Result<()> {
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 0x02;
    const SYN_ACK: u32 = 0x12;
    let step = |code, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, FLAGS_OFFSET),
        step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, SYN_ACK),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, SYN),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the descriptor is open for the length of the call, and the value is a program of the length
    // given, which the kernel copies.
    let result = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes back [`drop_syn`]; nothing happens where there is no filter.
pub(crate) fn admit_syn(listener: BorrowedFd<'_>) {
    // ENOENT: there was no filter.
    let _ = set_option(listener, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0);
}

/// How often segments of a connection were sent again, 0 for what is not TCP; and what its peer has taken.
pub(crate) fn inspect(socket: BorrowedFd<'_>) -> (u32, Option<Taken>) {
    let Ok(left_bytes) = bytes_unacknowledged(socket) else { return (0, None) };
    match tcp_info(socket) {
        Ok(info) => {
            let mark = info.tcpi_bytes_acked;
            (info.tcpi_total_retrans, Some(Taken { mark, left_bytes }))
        }
        // What is taken leaves the queue.
        Err(_) => (0, Some(Taken { mark: 0_u64.wrapping_sub(left_bytes), left_bytes })),
    }
}

/// How many bytes wait in a socket's queue for the peer to acknowledge them, or to read them (SIOCOUTQ,
/// tcp(7) and unix(7)).
pub(crate) fn bytes_unacknowledged(socket: BorrowedFd<'_>) -> Result<u64, Errno> {
    const SIOCOUTQ: rustix::ioctl::Opcode = libc::TIOCOUTQ as rustix::ioctl::Opcode;
    // SAFETY: for a socket SIOCOUTQ writes one C int to its argument and reads nothing, which is what this
    // getter describes; for any other descriptor it fails or does the same (TIOCOUTQ of a terminal).
    let count =
        unsafe { rustix::ioctl::ioctl(socket, rustix::ioctl::Getter::<SIOCOUTQ, libc::c_int>::new()) }?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// SO_REUSEADDR lets a restarted server bind while connections of the former one are in TIME_WAIT. On Linux
/// it does not share a port on which somebody listens.
fn unbound(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    const BACKLOG: i32 = 16;

    /// Others on this machine use ports too: a port that is seen free may be taken a moment later, but not
    /// many times in a row.
    fn happens_once(attempt: impl Fn() -> io::Result<()>) {
        let outcomes: Vec<_> = (0..20).map_while(|_| attempt().err()).collect();
        assert!(outcomes.len() < 20, "{outcomes:?}");
    }

    #[test]
    fn workers_share_a_port_and_strangers_are_refused() {
        happens_once(|| {
            let first = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), BACKLOG)?;
            let address = local_address(&first)?;
            assert_ne!(address.port(), 0);
            let second = listen(address, BACKLOG).unwrap();
            assert_eq!(local_address(&second)?, address);
            let busy = check_port_free(address).unwrap_err();
            assert_eq!(busy.kind(), io::ErrorKind::AddrInUse);
            drop((first, second));
            check_port_free(address)
        });
    }

    /// What an accepted connection takes while its peer reads nothing.
    fn taken_unread(listener: OwnedFd) -> usize {
        let address = local_address(&listener).unwrap();
        let _reads_nothing = std::net::TcpStream::connect(address).unwrap();
        let listener = TcpListener::from(listener);
        listener.set_nonblocking(false).unwrap();
        let (mut connection, _) = listener.accept().unwrap();
        connection.set_nonblocking(true).unwrap();
        let piece = [0; 64 * 1024];
        std::iter::from_fn(|| connection.write(&piece).ok()).sum()
    }

    #[test]
    fn a_peer_that_does_not_read_is_given_less() {
        let listener = || listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), BACKLOG).unwrap();
        let bounded = listener();
        bound_unsent(&bounded).unwrap();
        let (with, without) = (taken_unread(bounded), taken_unread(listener()));
        assert!(with >= UNSENT_BYTES_MAX as usize && with < without, "{with} with, {without} without");
    }

    #[test]
    fn the_queue_of_a_listener_is_seen() {
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), BACKLOG).unwrap();
        let queue = || queue(listener.as_fd());
        assert_eq!(queue(), Some(Queue { waiting: 0, limit: 16 }));
        let address = local_address(&listener).unwrap();
        let _waiting = [(); 3].map(|()| std::net::TcpStream::connect(address).unwrap());
        assert_eq!(queue(), Some(Queue { waiting: 3, limit: 16 }));
    }

    #[test]
    fn syn_segments_are_dropped_and_connections_in_the_queue_stay() {
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), BACKLOG).unwrap();
        let address = local_address(&listener).unwrap();
        let _early = std::net::TcpStream::connect(address).unwrap();
        drop_syn(listener.as_fd()).unwrap();
        let late = std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_millis(50));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        admit_syn(listener.as_fd());
        admit_syn(listener.as_fd());
        let _welcome = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(queue(listener.as_fd()).map(|queue| queue.waiting), Some(2));
    }

    #[test]
    fn a_port_of_another_program_is_busy() {
        let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = stranger.local_addr().unwrap();
        assert_eq!(check_port_free(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(listen(address, BACKLOG).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn ipv6_leaves_the_port_of_ipv4_alone() {
        happens_once(|| {
            let Ok(six) = listen(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)), BACKLOG) else {
                return Ok(()); // A machine without IPv6.
            };
            let port = local_address(&six)?.port();
            listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), BACKLOG).map(drop)
        });
    }
}
