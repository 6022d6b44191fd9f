//! Listening sockets with the name of a file, and that name.
//!
//! A name must never be taken from a server that listens there, nor be removed by another than who made it.
//! The socket is made under a name beside it, so that whoever finds the right name can connect at once, and
//! nobody who may not.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with};

/// Connections that wait to be accepted, at most. The kernel caps it at `net.core.somaxconn`; whoever comes
/// when they are so many waits for room, or is told EAGAIN.
pub const UNIX_BACKLOG: i32 = 4096;

/// The bits of a mode that chmod(2) can set.
const MODE_BITS: u32 = 0o7777;

/// Which file something is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileNumber {
    /// Number of the device it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl FileNumber {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}

/// The name of a socket file, and which file that is. It is removed when this is dropped, once this process
/// owns it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    number: FileNumber,
    is_owned: bool,
    /// Where the file is now whose name was taken.
    replaced: Option<PathBuf>,
}

impl SocketFile {
    /// The file that has this name now, whose owner is another.
    ///
    /// # Errors
    /// Those of lstat(2).
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::of_other(path, FileNumber::of(path)?))
    }

    /// A file that another process has told of and still owns, whether or not it still has this name.
    pub fn of_other(path: &Path, number: FileNumber) -> Self {
        Self { path: path.to_owned(), number, is_owned: false, replaced: None }
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

    /// Gives it another name; the socket file that has that gets the former one, until [`Self::own`] removes
    /// it or [`Self::give_back`] is called.
    ///
    /// # Errors
    /// Those of renameat2(2); what has the name is no socket.
    pub fn exchange(&mut self, path: &Path) -> io::Result<()> {
        if fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
            return Err(no_socket());
        }
        match renameat_with(CWD, &self.path, CWD, path, RenameFlags::EXCHANGE) {
            Ok(()) => {
                self.replaced = Some(std::mem::replace(&mut self.path, path.to_owned()));
                Ok(())
            }
            // Nothing has the name, or the file system cannot exchange two.
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => self.rename(path),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a name that was exchanged back.
    pub fn give_back(&mut self) {
        if let Some(beside) = self.replaced.take()
            && renameat_with(CWD, &beside, CWD, &self.path, RenameFlags::EXCHANGE).is_ok()
        {
            self.path = beside;
        }
    }

    /// From now on this process removes it. A file whose name it took is removed now.
    pub fn own(&mut self) {
        self.is_owned = true;
        if let Some(beside) = self.replaced.take() {
            let _ = fs::remove_file(beside);
        }
    }

    /// Leaves it to another process.
    pub fn leave(mut self) {
        self.is_owned = false;
    }

    /// The name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which file it is.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Whether the name still leads to this socket.
    pub fn is_there(&self) -> bool {
        FileNumber::of(&self.path).is_ok_and(|found| found == self.number)
    }

    /// Gives it this mode, unless it has it, or has lost its name.
    ///
    /// # Errors
    /// Those of chmod(2).
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.path).map(|found| found.permissions().mode() & MODE_BITS);
        if !self.is_there() || found.is_ok_and(|found| found == mode) {
            return Ok(());
        }
        fs::set_permissions(&self.path, Permissions::from_mode(mode)).map_err(|error| {
            io::Error::other(format!("the mode of the file cannot be changed to {mode:04o}: {error}"))
        })
    }

    /// Removes the name, unless another file has it by now. What cannot be removed is taken for what it is by
    /// the next server.
    pub fn remove(&mut self) {
        self.is_owned = false;
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_owned {
            self.remove();
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
    let mut file = SocketFile::of(&beside)?;
    file.own();
    fs::set_permissions(&beside, Permissions::from_mode(mode))?;
    rustix::net::listen(&socket, backlog)?;
    Ok((socket, file))
}

/// Whether nobody listens at a name, and nothing stands there but what a server left that was killed.
///
/// # Errors
/// EADDRINUSE: somebody listens; another file has the name; it cannot be told.
pub fn check_name_free(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => Err(no_socket()),
        Ok(_) => {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            match connect(&probe, &SocketAddrUnix::new(path)?) {
                Err(Errno::CONNREFUSED) => Ok(()),
                // EAGAIN: more wait there than have room.
                Ok(()) | Err(Errno::AGAIN) => Err(io::Error::from(io::ErrorKind::AddrInUse)),
                Err(error) => Err(error.into()),
            }
        }
    }
}

fn no_socket() -> io::Error {
    io::Error::other("there is another file, which is no socket")
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
        let (socket, mut file) = listen_beside(&path, 0o640, 0).unwrap();
        assert!(!path.exists() && file.path().exists());
        file.rename(&path).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        // The second one finds the queue full.
        for _ in 0..3 {
            assert_eq!(check_name_free(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
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
    fn inode(path: &Path) -> u64 {
        fs::symlink_metadata(path).unwrap().ino()
    }

    #[test]
    fn a_name_that_was_taken_can_be_given_back() {
        let path = std::env::temp_dir().join(format!("staunch-exchange-{}", std::process::id()));
        let (_former_socket, mut former) = listen_beside(&path, 0o600, 1).unwrap();
        former.rename(&path).unwrap();
        let (_socket, mut file) = listen_beside(&path, 0o600, 1).unwrap();
        let beside = file.path().to_owned();
        file.exchange(&path).unwrap();
        assert_eq!(inode(&path), file.number().inode);
        file.give_back();
        assert_eq!((inode(&path), file.path()), (former.number().inode, &*beside));
        file.exchange(&path).unwrap();
        file.own();
        assert!(!beside.exists() && !former.is_there());
        drop(former);
        assert!(file.is_there(), "another's name stays");
        file.set_mode(0o640).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & MODE_BITS, 0o640);
        drop(SocketFile::of(&path).unwrap());
        assert!(path.exists(), "who does not own it leaves it");
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_name_that_nothing_or_no_socket_has() {
        let path = std::env::temp_dir().join(format!("staunch-vacant-{}", std::process::id()));
        fs::write(&path, "a file").unwrap();
        let (_socket, mut file) = listen_beside(&path, 0o600, 1).unwrap();
        assert!(file.exchange(&path).unwrap_err().to_string().contains("no socket"));
        fs::remove_file(&path).unwrap();
        file.exchange(&path).unwrap();
        assert!(file.is_there() && file.path() == path);
        drop(file);
        assert!(!path.exists());
    }
}
