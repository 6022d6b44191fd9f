//! Headers to build modules with: unpacked from Debian's packages, of the very release that is booted.
//!
//! They are never installed. The tools among those of the newest series need a newer Debian than this one:
//! they are unpacked into one of their own (`toolroot`), and run there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::Apt;
use super::debug;
use super::kernel::{self, Kernel, Series};
use super::toolroot::ToolRoot;
use crate::install::succeed;

/// What a module is built with.
pub(super) struct Headers {
    /// The folder for `make -C`, as the compiler sees it.
    pub(super) tree: PathBuf,
    /// The Debian in which the compiler runs; `None`: this one.
    pub(super) root: Option<ToolRoot>,
}

/// The headers of a kernel, fetched if they are not there.
///
/// # Errors
/// apt cannot fetch one of the packages, or the series needs root, which this user is not.
pub(super) fn headers(kernel: &Kernel, series: Series) -> Result<Headers, String> {
    let name = format!("usr/src/linux-headers-{}", kernel.release);
    if series == Series::Debug6_1 {
        return Ok(Headers { tree: debug::tree(kernel), root: None });
    }
    if series == Series::Newest {
        let root = ToolRoot::of(kernel)?;
        if !root.folder().join(&name).join("complete").exists() {
            unpack(&series.apt(&kernel.folder)?, kernel, root.folder())?;
            complete(&root.folder().join(&name))?;
        }
        return Ok(Headers { tree: Path::new("/").join(name), root: Some(root) });
    }
    let folder = kernel.folder.join("headers");
    let tree = folder.join(name);
    if !tree.join("complete").exists() {
        // What an attempt left that failed.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        unpack(&Apt::of_this_machine(), kernel, &folder)?;
        stay_in(&tree, &folder).map_err(|error| format!("{}: {error}", tree.display()))?;
        complete(&tree)?;
    }
    Ok(Headers { tree, root: None })
}

/// Unpacks the packages of the headers in `folder`.
fn unpack(apt: &Apt, kernel: &Kernel, folder: &Path) -> Result<(), String> {
    let package = format!("linux-headers-{}", kernel.release);
    let missing = |what: &str| {
        let fetched = kernel.folder.display();
        format!(
            "{package} depends on no {what}; `apt-get update` helps, or to remove {fetched}: Debian's \
            archive drops old kernels"
        )
    };
    let common = apt.dependency_that(&package, |name| name.ends_with("-common"))?;
    let tools = apt.dependency(&package, "linux-kbuild-")?;
    let packages =
        [package.clone(), common.ok_or_else(|| missing("-common"))?, tools.ok_or_else(|| missing("kbuild"))?];
    for package in &packages {
        apt.fetch(package, folder)?;
        let archive = kernel::found(folder, |name| name.ends_with(".deb"))?;
        succeed(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(folder))?;
        fs::remove_file(&archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    }
    Ok(())
}

/// Has the makefile look for the other packages in `folder`: it names the one it would be installed in.
fn stay_in(tree: &Path, folder: &Path) -> std::io::Result<()> {
    let makefile = tree.join("Makefile");
    let text = fs::read_to_string(&makefile)?;
    let sources = format!("{}/", folder.join("usr/src").display());
    fs::write(&makefile, text.replace("/usr/src/", &sources))
}

/// The last step: headers that have passed it are not fetched again.
fn complete(tree: &Path) -> Result<(), String> {
    // With it modules get type information, for which pahole would be needed.
    let _ = fs::remove_file(tree.join("vmlinux"));
    fs::write(tree.join("complete"), "").map_err(|error| format!("{}: {error}", tree.display()))
}
