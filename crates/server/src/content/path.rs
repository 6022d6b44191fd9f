//! From a decoded path to an open file beneath the root.
//!
//! It owns the confinement: every open goes through openat2 with RESOLVE_BENEATH, so neither `..`, a symbolic
//! link nor a race leads out. It must never join text to the root's name to open something.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;
use staunch_engine::FileStamp;

use crate::limits::PATH_BYTES_MAX;

/// How often an open is tried again that a rename elsewhere has disturbed (EAGAIN of openat2).
const TRIES_MAX: usize = 16;

/// The served folder.
#[derive(Debug)]
pub(crate) struct Root {
    /// None while there is no such folder.
    folder: Option<OwnedFd>,
    name: PathBuf,
    device: u64,
    inode: u64,
    /// The mount it lies on, where the kernel tells (Linux 5.8).
    mount: Option<u64>,
}

/// Where the name of a served folder leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderNow {
    /// To the folder that is open.
    Same,
    /// To another one.
    Other,
    /// Nowhere.
    Gone,
}

/// Something open beneath the root.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The open file or folder.
    pub(crate) file: OwnedFd,
    /// What it was when it was opened.
    pub(crate) stamp: FileStamp,
    /// Whether it is a folder; else it is a regular file.
    pub(crate) folder: bool,
    /// Whether its changes are all seen by watching its own folder: no symbolic link stands in its path, it
    /// has no other name, and it lies on the root's own mount.
    pub(crate) direct: bool,
}

/// Why nothing was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is nothing, or nothing that is served: links out of the root, devices, fifos, sockets.
    NotFound,
    /// The file or folder may not be read.
    Forbidden,
    /// No descriptor or memory is left at the moment.
    Exhausted,
    /// The disk or the file system failed.
    Failed,
}

impl Root {
    /// Opens the served folder.
    ///
    /// # Errors
    /// What the system says of the folder; ENOSYS or EPERM where openat2 is not allowed.
    pub(crate) fn open(name: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(name, flags, Mode::empty())?;
        rustix::fs::openat2(&folder, ".", flags, Mode::empty(), ResolveFlags::BENEATH)?;
        let status = rustix::fs::fstat(&folder)?;
        let name = std::fs::canonicalize(name).unwrap_or_else(|_| name.to_path_buf());
        let mount = mount_of(&folder);
        Ok(Self { folder: Some(folder), name, device: status.st_dev, inode: status.st_ino, mount })
    }

    /// The place of a folder that is not there.
    pub(crate) fn absent(name: &Path) -> Self {
        Self { folder: None, name: name.to_path_buf(), device: 0, inode: 0, mount: None }
    }

    /// Whether there is no such folder.
    pub(crate) fn is_absent(&self) -> bool {
        self.folder.is_none()
    }

    /// Where a name leads now by which this folder was opened.
    pub(crate) fn place_of(&self, name: &Path) -> FolderNow {
        match rustix::fs::stat(name) {
            Ok(status) if FileType::from_raw_mode(status.st_mode) != FileType::Directory => FolderNow::Gone,
            Ok(status) if (status.st_dev, status.st_ino) == (self.device, self.inode) => FolderNow::Same,
            Ok(_) => FolderNow::Other,
            Err(_) => FolderNow::Gone,
        }
    }

    /// Whether both are one folder, opened under the same name.
    pub(crate) fn is_same_folder(&self, other: &Self) -> bool {
        (self.device, self.inode, &self.name) == (other.device, other.inode, &other.name)
    }

    /// The name of the folder, for watching it and for messages.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// The folder itself, if it is there.
    pub(crate) fn folder(&self) -> Option<&OwnedFd> {
        self.folder.as_ref()
    }

    /// What stands at a decoded path now, by one look that opens nothing; `None` if nothing does.
    ///
    /// # Errors
    /// It cannot be told.
    pub(crate) fn stamp_at(&self, path: &[u8]) -> Result<Option<FileStamp>, Errno> {
        let Some(folder) = &self.folder else { return Ok(None) };
        match rustix::fs::statat(folder, relative(path), AtFlags::NO_AUTOMOUNT) {
            Ok(status) => Ok(Some(stamp(&status))),
            Err(errno) if refusal(errno) == Refusal::NotFound => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Opens what stands at a decoded path (with its leading `/`) for reading. A fifo does not hang.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub(crate) fn open_beneath(&self, path: &[u8]) -> Result<Opened, Refusal> {
        let (file, linked) = match self.open_at(path, ResolveFlags::NO_SYMLINKS) {
            Err(Errno::LOOP) => (self.open_at(path, ResolveFlags::NO_MAGICLINKS).map_err(refusal)?, true),
            other => (other.map_err(refusal)?, false),
        };
        let status = rustix::fs::fstat(&file).map_err(refusal)?;
        let folder = match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => true,
            FileType::RegularFile => false,
            _ => return Err(Refusal::NotFound),
        };
        let direct = !linked
            && status.st_dev == self.device
            && (folder || status.st_nlink == 1)
            && mount_of(&file) == self.mount;
        Ok(Opened { file, stamp: stamp(&status), folder, direct })
    }

    fn open_at(&self, path: &[u8], resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        // Answered as what cannot be had at the moment: it is looked for again.
        let folder = self.folder.as_ref().ok_or(Errno::AGAIN)?;
        let relative = relative(path);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut tries = 0;
        loop {
            tries += 1;
            match rustix::fs::openat2(folder, relative, flags, Mode::empty(), resolve | ResolveFlags::BENEATH)
            {
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES_MAX => {}
                other => return other,
            }
        }
    }
}

/// A decoded path as it is asked for beneath the root.
fn relative(path: &[u8]) -> &[u8] {
    match path.strip_prefix(b"/") {
        Some([]) | None => b".",
        Some(relative) => relative,
    }
}

/// The mount on which an open file lies, where the kernel tells.
fn mount_of(file: &OwnedFd) -> Option<u64> {
    let status = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    (status.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(status.stx_mnt_id)
}

/// What a file is now.
///
/// # Errors
/// What fstat gives.
pub(crate) fn stamp_of(file: &OwnedFd) -> Result<FileStamp, Errno> {
    rustix::fs::fstat(file).map(|status| stamp(&status))
}

/// What stands at a name that is none beneath a root; `None` if nothing does, or it cannot be told.
pub(crate) fn stamp_of_name(name: &Path) -> Option<FileStamp> {
    rustix::fs::stat(name).ok().map(|status| stamp(&status))
}

fn stamp(status: &Stat) -> FileStamp {
    let nanoseconds = |seconds: i128, rest: i128| seconds * 1_000_000_000 + rest;
    FileStamp {
        device: status.st_dev,
        inode: status.st_ino,
        size_bytes: u64::try_from(status.st_size).unwrap_or(0),
        modified_ns: nanoseconds(status.st_mtime.into(), status.st_mtime_nsec.into()),
        changed_ns: nanoseconds(status.st_ctime.into(), status.st_ctime_nsec.into()),
    }
}

fn refusal(errno: Errno) -> Refusal {
    match errno {
        Errno::ACCESS | Errno::PERM => Refusal::Forbidden,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => Refusal::Exhausted,
        // XDEV: out of the root. LOOP: links in a circle. NXIO and NODEV: sockets and devices.
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NAMETOOLONG => Refusal::NotFound,
        Errno::NXIO | Errno::NODEV | Errno::INVAL | Errno::ILSEQ => Refusal::NotFound,
        _ => Refusal::Failed,
    }
}

/// Whether a decoded path may be looked up at all: no empty segment (`//` has no meaning of its own here), no
/// hidden name unless asked for (`/.well-known/` is made to be found: RFC 8615), and not longer than the
/// kernel takes.
#[inline]
pub(crate) fn is_servable(path: &[u8], dotfiles: bool) -> bool {
    if path.len() > PATH_BYTES_MAX || path.first() != Some(&b'/') {
        return false;
    }
    let mut previous = b'x';
    for (index, &byte) in path.iter().enumerate() {
        if previous == b'/' && (byte == b'/' || (byte == b'.' && !dotfiles && !is_well_known(path, index))) {
            return false;
        }
        previous = byte;
    }
    true
}

fn is_well_known(path: &[u8], index: usize) -> bool {
    index == 1 && path.strip_prefix(b"/.well-known").is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// The folder of a path, with its closing `/`: `/a/b` and `/a/` both give `/a/`.
pub(crate) fn folder_of(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    path.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::testing::Folder;

    #[test]
    fn servable_paths() {
        for (path, dotfiles, expected) in [
            ("/", false, true),
            ("/a/b.c/d..e", false, true),
            ("/a//b", false, false),
            ("//a", true, false),
            ("/.git/config", false, false),
            ("/a/.b", false, false),
            ("/a/.b", true, true),
            ("/.well-known/acme", false, true),
            ("/.well-known", false, true),
            ("/.well-known/.x", false, false),
            ("/.well-knownx", false, false),
            ("/a/.well-known/x", false, false),
            ("a", false, false),
            ("", false, false),
        ] {
            assert_eq!(is_servable(path.as_bytes(), dotfiles), expected, "{path}");
        }
        assert!(!is_servable(&[b"/", &[b'a'; 5000][..]].concat(), false));
    }

    #[test]
    fn folders() {
        assert_eq!(folder_of(b"/a/b"), b"/a/");
        assert_eq!(folder_of(b"/a/"), b"/a/");
        assert_eq!(folder_of(b"/a"), b"/");
        assert_eq!(folder_of(b"/"), b"/");
    }

    #[test]
    fn confinement() {
        let outer = Folder::new();
        outer.write("secret", b"no");
        outer.make_folder("root/inner");
        outer.write("root/inner/file", b"yes");
        outer.link("../secret", "root/out");
        outer.link("/etc", "root/etc");
        outer.link("inner", "root/in");
        outer.link("loop", "root/loop");
        outer.fifo("root/fifo");
        let root = Root::open(&outer.path().join("root")).unwrap();
        let refused = |path: &str| root.open_beneath(path.as_bytes()).err();
        assert!(root.open_beneath(b"/inner/file").unwrap().direct);
        assert!(root.open_beneath(b"/").unwrap().folder);
        let linked = root.open_beneath(b"/in/file").unwrap();
        assert!(!linked.direct && !linked.folder);
        for path in
            ["/out", "/etc/passwd", "/etc", "/loop", "/fifo", "/none", "/inner/file/", "/inner/file/x"]
        {
            assert_eq!(refused(path), Some(Refusal::NotFound), "{path}");
        }
        assert_eq!(refused("/../secret"), Some(Refusal::NotFound));
    }
}
