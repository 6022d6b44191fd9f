//! Headers to build modules with: unpacked from Debian's packages, of the very release that is booted.
//!
//! They are never installed. Headers of the newest series cannot be used on Debian 12 (their tools need a
//! newer C library), which is said before anything is fetched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::Apt;
use super::kernel::{self, Kernel, Series};
use crate::install::succeed;

/// The folder for `make -C`, fetched if it is not there.
///
/// # Errors
/// apt cannot fetch one of the packages, or the series has no headers that run here.
pub(super) fn tree(kernel: &Kernel, series: Series) -> Result<PathBuf, String> {
    if series == Series::Newest {
        return Err("modules for the newest kernel cannot be built on Debian 12; --kernel 6.1 and 6.12 can"
            .to_owned());
    }
    let folder = kernel.folder.join("headers");
    let tree = folder.join("usr/src").join(format!("linux-headers-{}", kernel.release));
    if !folder.join("complete").exists() {
        fetch(&kernel.release, &folder, &tree)?;
    }
    Ok(tree)
}

fn fetch(release: &str, folder: &Path, tree: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    // What an attempt left that failed.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(said)?;
    let apt = Apt::of_this_machine();
    let package = format!("linux-headers-{release}");
    let missing = |what: &str| format!("{package} depends on no {what}; `apt-get update` helps");
    let common = apt.dependency_that(&package, |name| name.ends_with("-common"))?;
    let tools = apt.dependency(&package, "linux-kbuild-")?;
    let packages =
        [package.clone(), common.ok_or_else(|| missing("-common"))?, tools.ok_or_else(|| missing("kbuild"))?];
    for package in &packages {
        apt.fetch(package, folder)?;
        let archive = kernel::found(folder, |name| name.ends_with(".deb"))?;
        succeed(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(folder))?;
        fs::remove_file(&archive).map_err(said)?;
    }
    // The makefile names the folder it would be installed in.
    let makefile = tree.join("Makefile");
    let text = fs::read_to_string(&makefile).map_err(said)?;
    let sources = format!("{}/", folder.join("usr/src").display());
    fs::write(&makefile, text.replace("/usr/src/", &sources)).map_err(said)?;
    // With it modules get type information, for which pahole would be needed.
    let _ = fs::remove_file(tree.join("vmlinux"));
    fs::write(folder.join("complete"), "").map_err(said)
}
