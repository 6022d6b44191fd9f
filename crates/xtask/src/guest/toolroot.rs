//! A Debian 13 in a folder, with the compiler that modules of the newest kernel need.
//!
//! Its packages are unpacked and never configured: it is enough to run make and gcc in. Programs in it see
//! nothing of this machine but /dev/null and /proc.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::Apt;
use super::kernel::Kernel;
use crate::install::succeed;

/// What is unpacked: a system, what makefiles call, and the compiler; tools of the kernel are added by name.
const PACKAGES: [&str; 12] = [
    "base-files",
    "dash",
    "bash",
    "coreutils",
    "findutils",
    "diffutils",
    "grep",
    "sed",
    "mawk",
    "perl-base",
    "make",
    "gcc-14",
];
/// Folders that are links in a Debian of today.
const LINKED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// Names that a package's own scripts would give.
const NAMED: [(&str, &str); 2] = [("usr/bin/awk", "mawk"), ("usr/bin/sh", "dash")];
/// Runs a program in the root, which has this machine's /dev/null and /proc for as long.
const INSIDE: &str = r#"mount --bind /dev/null "$0/dev/null" && mount --rbind /proc "$0/proc" &&
exec chroot "$0" "$@""#;

/// The folder, complete.
pub(super) struct ToolRoot {
    folder: PathBuf,
}

impl ToolRoot {
    /// The one for a kernel, made if it is not there.
    ///
    /// # Errors
    /// This user is not root, or a package cannot be fetched.
    pub(super) fn of(kernel: &Kernel) -> Result<Self, String> {
        let folder = kernel.folder.join("root");
        if !is_root() {
            return Err("modules for the newest kernel are built inside of a Debian 13, which needs root; \
                --kernel 6.1 and 6.12 do not"
                .to_owned());
        }
        if !folder.join("complete").exists() {
            make(kernel, &folder)?;
        }
        Ok(Self { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A command that runs a program inside; paths among its arguments are those inside.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", INSIDE]).arg(&self.folder);
        command.args(["/usr/bin/env", "-i", "PATH=/usr/bin", "LC_ALL=C", program]);
        command
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

fn make(kernel: &Kernel, folder: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    let lists = kernel.folder.join("tools");
    // What an attempt left that failed.
    let _ = fs::remove_dir_all(folder);
    prepare(folder).map_err(said)?;
    let apt = Apt::of_suites(&lists, &["trixie", "trixie-backports"])?;
    // The kernel's own tools are unpacked with its headers; here come their libraries.
    let headers = format!("linux-headers-{}", kernel.release);
    let tools = apt.dependency(&headers, "linux-kbuild-")?;
    let tools = tools.ok_or_else(|| format!("{headers} has no tools; Debian's archive drops old kernels"))?;
    apt.fetch_with_dependencies(&[&PACKAGES[..], &[tools.as_str()]].concat())?;
    let archives = lists.join("cache/archives");
    for entry in fs::read_dir(&archives).map_err(said)? {
        let path = entry.map_err(said)?.path();
        if path.extension().is_some_and(|end| end == "deb") {
            succeed(Command::new("dpkg-deb").arg("-x").arg(&path).arg(folder))?;
        }
    }
    for (name, program) in NAMED {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_err() {
            symlink(program, path).map_err(said)?;
        }
    }
    fs::remove_dir_all(&lists).map_err(said)?;
    fs::write(folder.join("complete"), "").map_err(said)
}

/// Links and folders that packages expect.
fn prepare(folder: &Path) -> std::io::Result<()> {
    for name in LINKED {
        fs::create_dir_all(folder.join("usr").join(name))?;
        symlink(Path::new("usr").join(name), folder.join(name))?;
    }
    for name in ["dev", "proc", "tmp", "build"] {
        fs::create_dir_all(folder.join(name))?;
    }
    fs::write(folder.join("dev/null"), "")
}
