//! Listening sockets with the name of a file, and that name.
//!
//! A name must never be taken from a server that listens there, nor be removed by another than who made it.
//! The socket is made under a name beside it, so that whoever finds the right name can connect at once, and
//! nobody who may not.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

/// Connections that wait to be accepted, at most. The kernel caps it at `net.core.somaxconn`; whoever comes
/// when they are so many waits for room, or is told EAGAIN.
pub const UNIX_BACKLOG: i32 = 4096;

/// The name of a socket file, and which file that is.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// The file that has this name now.
    ///
    /// # Errors
    /// Those of lstat(2).
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// Gives it another name, in the place of what has that.
    ///
    /// # Errors
    /// Those of rename(2).
    pub fn rename(&mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        path.clone_into(&mut self.path);
        Ok(())
    }

    /// The name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the name, unless another file has it by now. What cannot be removed is taken for what it is by
    /// the next server.
    pub fn remove(&self) {
        let is_own = |found: Metadata| (found.dev(), found.ino()) == (self.device, self.inode);
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens under a name beside `path`, which whoever takes the right name gives it afterwards. `mode` says
/// who may connect, which writing to a socket file is.
///
/// # Errors
/// Those of socket(2), bind(2), chmod(2) and listen(2).
pub fn listen_beside(path: &Path, mode: u32, backlog: i32) -> io::Result<(OwnedFd, SocketFile)> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(name);
    remove_socket(&beside)?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(&beside)?)?;
    fs::set_permissions(&beside, Permissions::from_mode(mode))?;
    rustix::net::listen(&socket, backlog)?;
    Ok((socket, SocketFile::of(&beside)?))
}

/// Whether nobody listens at a name, and nothing stands there but what a server left that was killed.
///
/// # Errors
/// EADDRINUSE: somebody listens; another file has the name; it cannot be told.
pub fn check_name_free(path: &Path) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_only_from_the_dead_and_removed_only_by_its_maker() {
        let path = std::env::temp_dir().join(format!("staunch-listener-{}", std::process::id()));
        check_name_free(&path).unwrap();
        let (socket, mut file) = listen_beside(&path, 0o640, 1).unwrap();
        assert!(!path.exists() && file.path().exists());
        file.rename(&path).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(check_name_free(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        check_name_free(&path).unwrap();
        let (_next, mut next_file) = listen_beside(&path, 0o600, 1).unwrap();
        next_file.rename(&path).unwrap();
        file.remove();
        assert!(path.exists());
        next_file.remove();
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        assert!(check_name_free(&path).unwrap_err().to_string().contains("no socket"));
        fs::remove_file(&path).unwrap();
    }
}
