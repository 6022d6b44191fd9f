//! Where the node of an interface listens for other processes of its host.
//!
//! Network namespaces may have interfaces of the same name and share the folder, so all but the first
//! process's have their number in the path. This file must never connect.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/run/staunch";

/// Where the node of an interface of this network namespace listens.
pub fn node_path(interface: &str) -> PathBuf {
    path(interface, namespace().filter(|_| is_in_first_namespace() != Some(true)))
}

/// Where such a node is to be looked for: whoever may not see the first process does not know whether its
/// namespace has a number in the path.
pub fn node_path_to_ask(interface: &str) -> PathBuf {
    let (plain, numbered) = (path(interface, None), path(interface, namespace()));
    match is_in_first_namespace() {
        Some(true) => plain,
        Some(false) => numbered,
        None if numbered.exists() => numbered,
        None => plain,
    }
}

fn path(interface: &str, namespace: Option<u64>) -> PathBuf {
    let name = match namespace {
        Some(number) => format!("dostp-{interface}@{number}.sock"),
        None => format!("dostp-{interface}.sock"),
    };
    Path::new(FOLDER).join(name)
}

/// The inode of this thread's network namespace.
fn namespace() -> Option<u64> {
    Some(fs::metadata("/proc/thread-self/ns/net").ok()?.ino())
}

/// Whether it is that of the first process; `None` if one may not know.
fn is_in_first_namespace() -> Option<bool> {
    let first = fs::metadata("/proc/1/ns/net").ok()?;
    Some(Some(first.ino()) == namespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_namespaces_apart() {
        assert_eq!(path("eth1", None), Path::new("/run/staunch/dostp-eth1.sock"));
        assert_eq!(path("eth1", Some(7)), Path::new("/run/staunch/dostp-eth1@7.sock"));
        let known = [path("eth1", None), path("eth1", namespace())];
        assert!(known.contains(&node_path("eth1")) && known.contains(&node_path_to_ask("eth1")));
    }
}
