//! Which files the server is to reach, which maps and rings, in the words of the one who configures it.
//!
//! It owns the rule how far around a file access reaches. It must never open anything but to follow links.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders that hold more than one matter: never opened because something in them is served.
const WIDE: &[&str] = &[
    "/",
    "/boot",
    "/dev",
    "/dev/shm",
    "/etc",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/local",
    "/usr/share",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/tmp",
];

/// What may be read, and what may be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths {
    pub(crate) read: BTreeSet<PathBuf>,
    pub(crate) write: BTreeSet<PathBuf>,
    pub(crate) sockets: BTreeSet<PathBuf>,
    pub(crate) maps: bool,
    pub(crate) rings: bool,
    pub(crate) devices: BTreeSet<PathBuf>,
    /// Ports of servers that may be connected to.
    pub(crate) ports: BTreeSet<u16>,
}

impl Paths {
    /// Lets a served folder be read, and what stands beside it, as written and where its links lead: so that
    /// it can be replaced as a whole, or a link `current` be turned from one release to the next. What stands
    /// beside is left out if it is not the site's, as in `/var` or in a home.
    pub fn read_site(&mut self, root: &Path) {
        let beside = beside(root).filter(|folder| !is_wide(folder));
        let Ok(resolved) = root.canonicalize() else {
            // The root folder may be made later.
            self.read.extend(beside);
            return;
        };
        let beside_resolved = resolved.parent().map(Path::to_path_buf).filter(|folder| !is_wide(folder));
        let whole = beside_resolved.unwrap_or(resolved);
        self.read.extend(beside.into_iter().chain([whole]));
    }

    /// Lets a file be read, and those beside it, so that it may be replaced by another of its name; the file
    /// alone if what stands beside it is not the server's.
    pub fn read_file(&mut self, file: &Path) {
        let folder = beside(file).filter(|folder| !is_wide(folder));
        self.read.extend(folder.or_else(|| file.canonicalize().ok()));
    }

    /// Lets maps of BPF programs be read and written that are open already: those of the gate. No program can
    /// be loaded, and no map be opened or made.
    pub fn use_maps(&mut self) {
        self.maps = true;
    }

    /// Lets connections be taken from khttpd's device. The next process may open it again, and read the file
    /// with the folder that khttpd serves.
    pub fn take_from_khttpd(&mut self, device: &Path, root: &Path) {
        self.devices.insert(device.to_path_buf());
        self.read_file(root);
    }

    /// Lets rings of io_uring be made. What is done by a ring passes the filter of system calls by: by one a
    /// process can still connect by MPTCP or TCP Fast Open, which Landlock does not cover.
    pub fn use_rings(&mut self) {
        self.rings = true;
    }

    /// Lets a file be written, and others be made beside it and take its name: a log, a file with a process
    /// number.
    pub fn write_file(&mut self, file: &Path) {
        self.write.extend(beside(file));
    }

    /// Lets connections be made to this port, at whatever address: Landlock knows no addresses. Unix sockets
    /// may be connected to in any case.
    pub fn connect_to(&mut self, port: u16) {
        self.ports.insert(port);
    }

    /// Lets a socket file be made beside this one, take its name, and be removed.
    pub fn make_socket(&mut self, file: &Path) {
        self.sockets.extend(beside(file));
    }
}

/// The folder in which a name stands, with its links followed.
fn beside(name: &Path) -> Option<PathBuf> {
    // `.` and `..` at the end have no name: where they lead has.
    let folder = match name.file_name() {
        Some(_) => name.parent()?.to_path_buf(),
        None => name.canonicalize().ok()?.parent()?.to_path_buf(),
    };
    let here = folder.as_os_str().is_empty();
    if here { Path::new(".").canonicalize().ok() } else { folder.canonicalize().ok() }
}

/// Whether a folder holds what is nobody's business here: the system's folders and people's homes.
fn is_wide(folder: &Path) -> bool {
    let is_home = std::env::home_dir().is_some_and(|home| home == folder);
    is_home
        || folder.parent() == Some(Path::new("/home"))
        || WIDE.iter().any(|wide| Path::new(wide) == folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of a test's own, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("staunch-paths-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path.canonicalize().unwrap())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn assert_read(add: impl Fn(&mut Paths), expected: &[&Path]) {
        let mut paths = Paths::default();
        add(&mut paths);
        assert!(paths.write.is_empty());
        assert_eq!(paths.read.iter().map(PathBuf::as_path).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_stands_beside_a_site_is_readable_as_written_and_as_resolved() {
        let folder = Folder::new("releases");
        let (releases, site) = (folder.0.join("all/releases"), folder.0.join("site"));
        std::fs::create_dir_all(releases.join("42")).unwrap();
        std::fs::create_dir_all(&site).unwrap();
        std::os::unix::fs::symlink(releases.join("42"), site.join("current")).unwrap();
        assert_read(|paths| paths.read_site(&site.join("current")), &[&releases, &site]);
        assert_read(|paths| paths.read_site(&site), &[&folder.0]);
        assert_read(|paths| paths.read_site(&site.join(".")), &[&folder.0]);
        assert_read(|paths| paths.read_site(&site.join("..")), &[&folder.0]);
    }

    #[test]
    fn what_stands_beside_a_site_in_a_wide_folder_is_not() {
        let folder = Folder::new("wide");
        assert_read(|paths| paths.read_site(&folder.0), &[&folder.0]);
        assert_read(|paths| paths.read_site(Path::new("/")), &[Path::new("/")]);
        assert_read(|paths| paths.read_site(Path::new("/no/such/folder")), &[]);
    }

    #[test]
    fn a_file_is_readable_alone_only_among_those_of_others() {
        let folder = Folder::new("file");
        let file = folder.0.join("staunch.toml");
        std::fs::write(&file, "").unwrap();
        assert_read(|paths| paths.read_file(&file), &[&folder.0]);
        assert_read(|paths| paths.read_file(Path::new("/etc/passwd")), &[Path::new("/etc/passwd")]);
    }

    #[test]
    fn homes_and_folders_of_the_system_are_wide() {
        let home = std::env::home_dir().unwrap();
        let anna = Path::new("/home").join("anna");
        for wide in [&home, &anna, Path::new("/"), Path::new("/etc"), Path::new("/var")] {
            assert!(is_wide(wide), "{}", wide.display());
        }
        for narrow in [&home.join("site"), &anna.join("site"), Path::new("/srv"), Path::new("/etc/staunch")] {
            assert!(!is_wide(narrow), "{}", narrow.display());
        }
    }

    #[test]
    fn a_log_is_written_beside_others() {
        let folder = Folder::new("log");
        let mut paths = Paths::default();
        paths.write_file(&folder.0.join("access.log"));
        assert!(paths.read.is_empty());
        assert_eq!(paths.write.into_iter().collect::<Vec<_>>(), std::slice::from_ref(&folder.0));
    }
}
