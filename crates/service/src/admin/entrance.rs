//! Where the admin address is listened at: a port, or a socket file.
//!
//! A socket file must never be taken from a server that listens there, nor be removed by another than who
//! made it. A process that takes over listens under a name beside it, and takes the name when it serves.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use staunch_config::syntax::text::AdminAddress;
use staunch_confine::Identity;
use staunch_netio::socket;

/// Connections that wait to be accepted: twice as many as are answered at a time, for they are accepted
/// within a turn.
const BACKLOG_CONNECTIONS_MAX: i32 = 128;
/// The server's user and its group may connect, which writing to a socket file is.
const SOCKET_MODE: u32 = 0o660;

/// A listener that does not wait.
pub(super) enum Entrance {
    Internet(TcpListener, SocketAddr),
    Unix(UnixListener, SocketFile),
}

/// The name of a socket file.
pub(super) struct SocketFile {
    path: PathBuf,
    /// The name it has until this process serves, if another one has the right name.
    beside: Mutex<Option<PathBuf>>,
    /// Number of the file, by which it is known as this process's own.
    inode: u64,
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
                let mut name = path.as_os_str().to_owned();
                name.push(format!(".{}", std::process::id()));
                let beside = PathBuf::from(name);
                remove_socket(&beside)?;
                let listener = UnixListener::bind(&beside)?;
                listener.set_nonblocking(true)?;
                fs::set_permissions(&beside, Permissions::from_mode(SOCKET_MODE))?;
                let inode = fs::symlink_metadata(&beside)?.ino();
                let file = SocketFile { path: path.clone(), beside: Mutex::new(Some(beside)), inode };
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
            Self::Unix(_, file) if rustix::process::geteuid().is_root() => user.give(&file.name()),
            Self::Unix(..) => Ok(()),
        }
    }

    pub(super) fn address(&self) -> AdminAddress {
        match self {
            Self::Internet(_, address) => AdminAddress::Internet(*address),
            Self::Unix(_, file) => AdminAddress::Unix(file.path.clone()),
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
        let Self::Unix(_, file) = self else { return };
        let name = file.name();
        if fs::symlink_metadata(&name).is_ok_and(|found| found.ino() == file.inode) {
            // What cannot be removed is taken for what it is by the next server.
            let _ = fs::remove_file(name);
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

impl SocketFile {
    fn name(&self) -> PathBuf {
        let beside = self.beside.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        beside.clone().unwrap_or_else(|| self.path.clone())
    }

    fn take_name(&self) -> io::Result<()> {
        let mut beside = self.beside.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(name) = &*beside {
            fs::rename(name, &self.path)?;
        }
        *beside = None;
        Ok(())
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

/// Whether nobody listens at a name, and nothing stands there but what a server left that was killed.
fn check_name_free(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            Err(io::Error::other("there is another file, which is no socket"))
        }
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(io::Error::from(io::ErrorKind::AddrInUse)),
        },
    }
}

/// Removes what a process of this number left: in a container numbers come again.
fn remove_socket(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        _ => Ok(()),
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
        drop(next);
        // As a killed server leaves it.
        let after = Entrance::open(&address, false).expect("a socket");
        after.leave_name();
        assert!(!path.exists());
        fs::write(&path, "a file").expect("a file");
        let no_socket = Entrance::open(&address, false).err().expect("refused");
        assert!(no_socket.to_string().contains("no socket"), "{no_socket}");
        fs::remove_file(&path).expect("ours");
    }
}
