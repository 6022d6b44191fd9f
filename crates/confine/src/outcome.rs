//! What has come of confining: for the start-up block, and for the process this one may be upgraded to.
//!
//! It owns the words. It must never claim what was not done.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::fence::Fence;
use crate::filter::Filter;
use crate::identity::Identity;
use crate::inherited::{INHERITED, Inherited};
use crate::paths::Paths;

/// What is confined now. Its `Display` is one line.
#[derive(Debug, Clone)]
pub struct Confinement {
    now: Inherited,
    paths: Paths,
    /// Why something is not confined, in words.
    missing: Vec<String>,
    /// Whether it was told to leave everything as it is.
    off: bool,
}

impl Confinement {
    pub(crate) fn off(inherited: &Inherited, paths: Paths, user: Option<&Identity>) -> Self {
        let now = Inherited { user: user.map(Identity::to_hand_on), ..inherited.clone() };
        Self { now, paths, missing: Vec::new(), off: true }
    }

    pub(crate) fn of(
        fence: Result<Fence, String>,
        filter: Result<Filter, String>,
        paths: Paths,
        identity: Option<&Identity>,
    ) -> Self {
        let mut missing = Vec::new();
        let fence = fence.map_err(|why| missing.push(why)).ok().map(|fence| (fence.abi, fence.digest));
        let filter = filter.map_err(|why| missing.push(why)).ok().map(|filter| filter.digest);
        let now = Inherited { fence, filter, user: identity.map(Identity::to_hand_on) };
        Self { now, paths, missing, off: false }
    }

    /// What to put into the environment of a process that this one is upgraded to: it has all of this from
    /// its first moment, and need not do it again.
    pub fn environment(&self) -> Option<(&'static str, String)> {
        (!self.now.is_nothing()).then(|| (INHERITED, self.now.to_string()))
    }

    /// What of these is not within what was asked for at the start, and can be reached only after a restart.
    pub fn lacks<'a>(&self, paths: &'a Paths) -> Option<&'a Path> {
        self.now.fence.as_ref()?;
        let Paths { read, write, sockets, .. } = &self.paths;
        let written = |path: &Path| write.iter().any(|folder| path.starts_with(folder));
        // Where files are written sockets may not be made.
        let made = |path: &Path| sockets.iter().any(|folder| path.starts_with(folder));
        let reached = |path: &Path| written(path) || read.iter().any(|folder| path.starts_with(folder));
        let unread = paths.read.iter().find(|path| !reached(path));
        let unwritten = || paths.write.iter().find(|path| !written(path));
        let unmade = || paths.sockets.iter().find(|path| !made(path));
        unread.or_else(unwritten).or_else(unmade).map(PathBuf::as_path)
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.off {
            let still = self.now.fence.is_some() || self.now.filter.is_some();
            let why = if still { "off, but that of the process before this one holds" } else { "off" };
            return formatter.write_str(why);
        }
        let fence = self.now.fence.as_ref().map(|(abi, _)| format!("landlock (ABI {abi})"));
        let filter = self.now.filter.map(|_| "seccomp".to_owned());
        let mut parts: Vec<String> = Vec::new();
        match (fence, filter) {
            (None, None) => parts.push("none".into()),
            (Some(fence), Some(filter)) => parts.push(format!("{fence} + {filter}")),
            (fence, filter) => parts.extend(fence.or(filter)),
        }
        if self.now.fence.is_some() {
            let read = self.paths.read.iter().map(|folder| format!("{} (read)", folder.display()));
            let devices = self.paths.devices.iter().map(|device| format!("{} (device)", device.display()));
            let write = self.paths.write.iter().map(|folder| format!("{} (write)", folder.display()));
            let folders: Vec<String> = read.chain(devices).chain(write).collect();
            let folders = if folders.is_empty() { "no folder".to_owned() } else { folders.join(", ") };
            parts.push(format!("file system: {folders}"));
            let ports: Vec<String> = self.paths.ports.iter().map(u16::to_string).collect();
            if !ports.is_empty() {
                parts.push(format!("connects to ports {}", ports.join(", ")));
            }
        }
        parts.extend(self.missing.iter().cloned());
        formatter.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(read: &[&str], write: &[&str]) -> Paths {
        Paths {
            read: read.iter().map(PathBuf::from).collect(),
            write: write.iter().map(PathBuf::from).collect(),
            sockets: Default::default(),
            maps: false,
            rings: true,
            devices: Default::default(),
            ports: Default::default(),
        }
    }

    #[test]
    fn what_is_new_is_lacking_and_what_lies_within_is_not() {
        let fence = Fence { abi: "7".into(), digest: 1 };
        let known = paths(&["/srv/app", "/etc/staunch"], &["/var/log/staunch"]);
        let with_socket = |folder: &str| Paths { sockets: [folder.into()].into(), ..Paths::default() };
        let known = Paths { sockets: with_socket("/run/staunch").sockets, ..known };
        let confinement = Confinement::of(Ok(fence), Err("no filter".into()), known.clone(), None);
        let table = [
            (known.clone(), None),
            (paths(&["/srv/app/next", "/var/log/staunch"], &["/var/log/staunch/old"]), None),
            (paths(&["/srv/apples"], &[]), Some("/srv/apples")),
            (paths(&["/srv/app"], &["/srv/app"]), Some("/srv/app")),
            (with_socket("/run/staunch/sites"), None),
            (with_socket("/var/log/staunch"), Some("/var/log/staunch")),
        ];
        for (wanted, lacking) in table {
            assert_eq!(confinement.lacks(&wanted), lacking.map(Path::new), "{wanted:?}");
        }
        let free = Confinement::of(Err("no Landlock".into()), Err("no filter".into()), known, None);
        assert_eq!(free.lacks(&paths(&["/srv/apples"], &["/var/other"])), None);
        assert_eq!(free.to_string(), "none; no Landlock; no filter");
    }
}
