//! A clean Debian 12 in a folder.
//!
//! It owns the folder and the archive it comes from. It must never be entered with the host's network: what
//! serves inside serves in a network namespace of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use staunch_tests::process;

use crate::made::run;

/// A clean Debian, deleted at the end.
pub(crate) struct Chroot {
    root: PathBuf,
}

impl Drop for Chroot {
    fn drop(&mut self) {
        // What is left is below cargo's target folder.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Where archives, packages and unpacked systems stand.
pub(crate) fn folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let target = test.ancestors().nth(3).expect("cargo's target folder");
    target.join("clean-debian")
}

static NEXT: AtomicU32 = AtomicU32::new(0);
static ONE: Mutex<()> = Mutex::new(());

/// What the service needs of a Debian beyond the smallest one.
const INCLUDED: &str = "--include=adduser,systemd";

impl Chroot {
    /// A new one. `None`, with the reason printed, where that is not possible.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: making a clean Debian needs root");
            return None;
        }
        if !["debootstrap", "tar", "unshare", "ip", "curl"].into_iter().all(process::is_installed) {
            return None;
        }
        let archive = folder().join("bookworm.tar");
        {
            // Several tests of this program ask; one makes it.
            let _one = ONE.lock();
            if !archive.exists() {
                make_archive(&archive);
            }
        }
        let root =
            folder().join(format!("root-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir_all(&root).expect("a folder");
        let chroot = Self { root };
        run(120, &["tar", "--extract", "--file", &text(&archive), "--directory", &text(&chroot.root)]);
        Some(chroot)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Runs a command inside, without network, and returns what it printed; panics when it fails.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let root = text(&self.root);
        let inside = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "chroot", &root];
        let clean =
            ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"];
        run(100, &[&inside[..], &clean, arguments].concat())
    }

    /// Every file by its path inside, with its size and, if it is one of users and groups, its content. What
    /// the package tools themselves remember is left out.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        const OTHERS: &[&str] =
            &["/var/lib/dpkg", "/var/log/dpkg.log", "/var/cache", "/etc/.pwd.lock", "/proc", "/run"];
        let mut found = BTreeMap::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder").flatten() {
                let path = entry.path();
                let name = format!("/{}", path.strip_prefix(&self.root).expect("inside").display());
                let metadata = fs::symlink_metadata(&path).expect("metadata");
                // passwd-, group- and their like are the state before the last change.
                let is_backup = name.starts_with("/etc/") && name.ends_with('-');
                if is_backup || OTHERS.iter().any(|other| name.starts_with(other)) {
                    continue;
                }
                if metadata.is_dir() {
                    folders.push(path);
                    found.insert(name, "folder".into());
                } else if ["/etc/passwd", "/etc/group"].contains(&&name[..]) {
                    found.insert(name, fs::read_to_string(&path).expect("a text"));
                } else {
                    found.insert(name, format!("{} bytes", metadata.len()));
                }
            }
        }
        found
    }
}

/// Fetches a Debian and packs it. It is renamed at the end, so that half of one is never found.
fn make_archive(archive: &Path) {
    let folder = folder().join(format!("fresh-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let root = text(&folder);
    run(400, &["debootstrap", "--variant=minbase", INCLUDED, "bookworm", &root]);
    let unused =
        Command::new("find").arg(folder.join("var/cache/apt")).args(["-type", "f", "-delete"]).status();
    assert!(unused.is_ok_and(|status| status.success()));
    let half = text(&archive.with_extension(format!("{}.half", std::process::id())));
    run(100, &["tar", "--create", "--file", &half, "--directory", &root, "."]);
    fs::rename(half, archive).expect("the archive");
    fs::remove_dir_all(folder).expect("the folder");
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
