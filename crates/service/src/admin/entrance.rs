//! Where the admin address is listened at: a port, or a socket file.
//!
//! A socket file must never be taken from a server that listens there, nor be removed by another than who
//! made it. A process that takes over listens under a name beside it, and takes the name when it serves.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use staunch_config::syntax::text::AdminAddress;
use staunch_confine::Identity;
use staunch_netio::socket;
use staunch_netio::unix_listener::{SocketFile, check_name_free, listen_beside};

/// Connections that wait to be accepted: twice as many as are answered at a time, for they are accepted
/// within a turn.
const BACKLOG_CONNECTIONS_MAX: i32 = 128;
/// The server's user and its group may connect, which writing to a socket file is.
const SOCKET_MODE: u32 = 0o660;

/// A listener that does not wait.
pub(super) enum Entrance {
    Internet(TcpListener, SocketAddr),
    Unix(UnixListener, AdminFile),
}

/// The socket file, under the name beside the right one until this process serves.
pub(super) struct AdminFile {
    right: PathBuf,
    file: Mutex<SocketFile>,
}

impl Entrance {
    /// Listens. `takes_over`: another process of this user listens there, and will end.
    ///
    /// # Errors
    /// An address that is taken, not ours, or needs a privilege.
    pub(super) fn open(address: &AdminAddress, takes_over: bool) -> io::Result<Self> {
        match address {
            AdminAddress::Internet(address) => {
                if !takes_over {
                    socket::check_port_free(*address)?;
                }
                // Shared by address, so that a new binary can listen before the old one ends.
                let listener = TcpListener::from(socket::listen(*address, BACKLOG_CONNECTIONS_MAX)?);
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                Ok(Self::Internet(listener, address))
            }
            AdminAddress::Unix(path) => {
                if !takes_over {
                    check_name_free(path)?;
                }
                let (listener, file) = listen_beside(path, SOCKET_MODE, BACKLOG_CONNECTIONS_MAX)?;
                let listener = UnixListener::from(listener);
                let file = AdminFile { right: path.clone(), file: Mutex::new(file) };
                if !takes_over {
                    file.take_name()?;
                }
                Ok(Self::Unix(listener, file))
            }
        }
    }

    /// Gives it to this user.
    ///
    /// # Errors
    /// Those of fchown(2) and lchown(2).
    pub(super) fn give(&self, user: &Identity) -> io::Result<()> {
        match self {
            Self::Internet(listener, _) => user.give_socket(listener),
            Self::Unix(_, file) if rustix::process::geteuid().is_root() => user.give(file.file().path()),
            Self::Unix(..) => Ok(()),
        }
    }

    pub(super) fn address(&self) -> AdminAddress {
        match self {
            Self::Internet(_, address) => AdminAddress::Internet(*address),
            Self::Unix(_, file) => AdminAddress::Unix(file.right.clone()),
        }
    }

    /// Takes the name of the process before this one.
    ///
    /// # Errors
    /// Those of rename(2).
    pub(super) fn take_name(&self) -> io::Result<()> {
        match self {
            Self::Internet(..) => Ok(()),
            Self::Unix(_, file) => file.take_name(),
        }
    }

    /// Removes the socket file, if it is still this process's own.
    pub(super) fn leave_name(&self) {
        if let Self::Unix(_, file) = self {
            file.file().remove();
        }
    }

    pub(super) fn accept(&self) -> io::Result<AdminStream> {
        let stream = match self {
            Self::Internet(listener, _) => AdminStream::Internet(listener.accept()?.0),
            Self::Unix(listener, _) => AdminStream::Unix(listener.accept()?.0),
        };
        match &stream {
            AdminStream::Internet(stream) => stream.set_nonblocking(true)?,
            AdminStream::Unix(stream) => stream.set_nonblocking(true)?,
        }
        Ok(stream)
    }
}

impl AdminFile {
    fn file(&self) -> MutexGuard<'_, SocketFile> {
        self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn take_name(&self) -> io::Result<()> {
        let mut file = self.file();
        if file.path() == self.right { Ok(()) } else { file.rename(&self.right) }
    }
}

impl AsFd for Entrance {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Internet(listener, _) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }
}

/// A connection that does not wait.
pub(super) enum AdminStream {
    Internet(TcpStream),
    Unix(UnixStream),
}

impl AdminStream {
    pub(super) fn end_sending(&self) -> io::Result<()> {
        match self {
            Self::Internet(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

impl Read for AdminStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Internet(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for AdminStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Internet(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for AdminStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Internet(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::path::Path;

    use super::*;

    #[test]
    fn a_socket_file_is_taken_only_from_the_dead() {
        let path = std::env::temp_dir().join(format!("staunch-admin-{}", std::process::id()));
        let address = AdminAddress::Unix(path.clone());
        let first = Entrance::open(&address, false).expect("a socket");
        let mode = fs::symlink_metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
        let again = Entrance::open(&address, false).err().expect("taken");
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        // Another process takes over: the name changes hands when it serves.
        let next = Entrance::open(&address, true).expect("a socket beside");
        let owner = |path: &Path| fs::symlink_metadata(path).expect("a file").ino();
        let before = owner(&path);
        next.take_name().expect("the name");
        assert_ne!(owner(&path), before);
        first.leave_name();
        assert!(path.exists(), "the next one's name stays");
        let Entrance::Unix(socket, file) = next else { panic!("a socket file") };
        drop(socket);
        // As a killed server leaves it.
        std::mem::forget(file);
        assert!(path.exists());
        let after = Entrance::open(&address, false).expect("a socket");
        after.leave_name();
        assert!(!path.exists());
        fs::write(&path, "a file").expect("a file");
        let no_socket = Entrance::open(&address, false).err().expect("refused");
        assert!(no_socket.to_string().contains("no socket"), "{no_socket}");
        fs::remove_file(&path).expect("ours");
    }
}
