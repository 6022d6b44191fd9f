//! Sockets of a truth server: TCP and Unix behind one name, and what only a socket can do (a reset).
//!
//! It must never know what the bytes mean.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::plan::Address;

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    /// Of the Internet.
    Tcp(TcpListener),
    /// Of this machine.
    Unix(UnixListener),
}

/// A connection. Reading and writing block.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Of the Internet.
    Tcp(TcpStream),
    /// Of this machine.
    Unix(UnixStream),
}

impl Listener {
    /// Begins to listen, with a backlog of our choosing, which std does not allow.
    ///
    /// # Errors
    /// Those of socket(2), bind(2) and listen(2).
    pub(crate) fn open(address: &Address, backlog: i32) -> io::Result<Self> {
        let family = match address {
            Address::Internet(address) if address.is_ipv4() => AddressFamily::INET,
            Address::Internet(_) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        };
        let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        match address {
            Address::Internet(address) => {
                sockopt::set_socket_reuseaddr(&socket, true)?;
                rustix::net::bind(&socket, address)?;
                rustix::net::listen(&socket, backlog)?;
                Ok(Self::Tcp(socket.into()))
            }
            Address::Unix(path) => {
                rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
                rustix::net::listen(&socket, backlog)?;
                Ok(Self::Unix(socket.into()))
            }
        }
    }

    /// Where it listens, with the port the kernel chose.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub(crate) fn address(&self, asked: &Address) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => Ok(Address::Internet(listener.local_addr()?)),
            Self::Unix(_) => Ok(asked.clone()),
        }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// Those of accept(2); EINVAL after [`Listener::end`].
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
        }
    }

    /// Refuses further connections and wakes whoever waits for one.
    pub(crate) fn end(&self) {
        let socket = match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        };
        let _ = rustix::net::shutdown(socket, Shutdown::Both);
    }
}

impl Stream {
    /// Reads what is there, or waits. 0: the peer sends no more.
    ///
    /// # Errors
    /// Those of read(2).
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&*stream).read(into),
            Self::Unix(stream) => (&*stream).read(into),
        }
    }

    /// Writes all. Says with the error how many bytes the kernel took.
    ///
    /// # Errors
    /// Those of write(2).
    pub(crate) fn write_all(&self, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut written = 0;
        while written < bytes.len() {
            let result = match self {
                Self::Tcp(stream) => (&*stream).write(&bytes[written..]),
                Self::Unix(stream) => (&*stream).write(&bytes[written..]),
            };
            match result {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((written, error)),
            }
        }
        Ok(())
    }

    /// Whether the peer has closed, half-closed or reset the connection, whatever is still unread.
    pub(crate) fn is_gone(&self) -> bool {
        let socket = self.socket();
        let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = rustix::event::poll(&mut polled, Some(&at_once));
        ready.is_ok_and(|count| count > 0)
    }

    /// Makes the close that follows a reset. A Unix socket has no reset: it is closed, and the peer reads the
    /// end.
    pub(crate) fn reset_on_close(&self) {
        if let Self::Tcp(stream) = self {
            let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }

    /// Says that no more is sent, and takes what came and was not read: a close with unread bytes would
    /// become a reset.
    pub(crate) fn finish(&self) {
        let _ = rustix::net::shutdown(self.socket(), Shutdown::Write);
        let mut unread = [0; 4096];
        while let Ok((1.., _)) = rustix::net::recv(self.socket(), &mut unread[..], RecvFlags::DONTWAIT) {}
    }

    /// Ends both directions, so that whoever reads or writes wakes.
    pub(crate) fn end(&self) {
        let _ = rustix::net::shutdown(self.socket(), Shutdown::Both);
    }

    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}
