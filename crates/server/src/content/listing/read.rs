//! Reads a folder for its listing.
//!
//! Owns the choice of what is listed: folders and regular files, and symbolic links to such beneath the root.
//! Never follows a link out of the root, never opens a file for reading, never names what cannot be served.
//! Blocks on the disk, so it is for a loader thread.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use super::entry::{Entry, Kind};

/// Bytes of names that a system call gives at most, which is some 800 entries.
const NAMES_BYTES: usize = 32 * 1024;

/// Reads the folder at `path`, which is relative to the open folder `root` (slashes around it do not matter;
/// empty is the root itself). Names with a leading dot are left out unless `dotfiles`, and each name for
/// which `hidden` says yes. The entries come unsorted.
///
/// # Errors
/// Whatever the system says of a folder that cannot be opened or read: not found, not a folder, out of the
/// root (`EXDEV`), no permission. An entry that vanishes meanwhile is no error.
pub fn read_folder(
    root: impl AsFd,
    path: &[u8],
    dotfiles: bool,
    hidden: &dyn Fn(&[u8]) -> bool,
) -> io::Result<Vec<Entry>> {
    let path = Beneath::new(root.as_fd(), path);
    let folder = path.open(b"", OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut names = Vec::with_capacity(NAMES_BYTES);
    let mut listing = RawDir::new(&folder, names.spare_capacity_mut());
    let mut entries = Vec::new();
    while let Some(found) = listing.next() {
        let found = found?;
        let name = found.file_name();
        let dotted = name.to_bytes().starts_with(b".");
        let skipped =
            matches!(name.to_bytes(), b"." | b"..") || (dotted && !dotfiles) || hidden(name.to_bytes());
        if !skipped {
            entries.extend(look_at(&path, &folder, name, found.file_type()));
        }
    }
    Ok(entries)
}

/// The entry behind a name, if it is of a kind that is listed. The type that the folder gives saves the
/// second look at devices, pipes and sockets.
fn look_at(path: &Beneath<'_>, folder: &OwnedFd, name: &CStr, hint: FileType) -> Option<Entry> {
    let stat = match hint {
        FileType::Symlink => follow(path, name.to_bytes())?,
        FileType::RegularFile | FileType::Directory | FileType::Unknown => {
            let stat = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT).ok()?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => follow(path, name.to_bytes())?,
                _ => stat,
            }
        }
        _ => return None,
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Kind::Folder,
        FileType::RegularFile => Kind::File,
        _ => return None,
    };
    Some(Entry {
        name: name.to_bytes().to_vec(),
        kind,
        size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified_unix_s: stat.st_mtime,
    })
}

/// Looks at the target of a link; `O_PATH` opens it without a side effect, whatever it is.
fn follow(path: &Beneath<'_>, name: &[u8]) -> Option<fs::Stat> {
    let target = path.open(name, OFlags::PATH).ok()?;
    fs::fstat(&target).ok()
}

/// A folder named by its way down from the root, so that the kernel holds each link in it to the root.
struct Beneath<'a> {
    root: BorrowedFd<'a>,
    path: Vec<u8>,
}

impl<'a> Beneath<'a> {
    fn new(root: BorrowedFd<'a>, path: &[u8]) -> Self {
        let mut relative = b"./".to_vec();
        relative.extend(path.iter().skip_while(|&&byte| byte == b'/'));
        relative.push(b'/');
        Self { root, path: relative }
    }

    /// Opens `name` in the folder, or the folder itself if the name is empty.
    fn open(&self, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        /// The kernel asks for another try if something was renamed meanwhile; a folder in steady motion may
        /// win.
        const TRIES_MAX: usize = 16;
        let path = [&self.path, name].concat();
        let path = Path::new(OsStr::from_bytes(&path));
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            tries += 1;
            match fs::openat2(self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES_MAX => {}
                result => return Ok(result?),
            }
        }
    }
}
