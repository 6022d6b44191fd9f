//! Kernels to boot: unpacked from Debian's packages, kept, never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use crate::install::succeed;

/// A series of kernels that Debian 12 has packages of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Series {
    /// Debian 12's own
    #[value(name = "6.1")]
    V6_1,
    /// The one of Debian 13, in Debian 12's security archive
    #[value(name = "6.12")]
    V6_12,
}

impl Series {
    /// The package that depends on the newest kernel of the series.
    fn package(self) -> &'static str {
        match self {
            Self::V6_1 => "linux-image-amd64",
            Self::V6_12 => "linux-image-6.12-amd64",
        }
    }
}

/// The kernel's image, fetched if it is not there. One that was fetched once is not looked for again.
///
/// # Errors
/// apt cannot name or fetch it.
pub(super) fn image(root: &Path, series: Series) -> Result<PathBuf, String> {
    let folder = root.join("target/tools/kernels").join(series.package());
    let image = folder.join("vmlinuz");
    if !image.exists() {
        fetch(series, &folder, &image)?;
    }
    Ok(image)
}

fn fetch(series: Series, folder: &Path, image: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    // apt fetches as a user without rights if it may write here.
    fs::create_dir_all(folder).map_err(said)?;
    let package = newest(series.package())?;
    let quiet = ["-o", "APT::Sandbox::User=root", "--quiet", "download"];
    succeed(Command::new("apt-get").args(quiet).arg(&package).current_dir(folder))?;
    let unpacked = folder.join("unpacked");
    let archive = find(folder, "deb")?;
    succeed(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&unpacked))?;
    let boot = unpacked.join("boot");
    let found = fs::read_dir(&boot).map_err(said)?.filter_map(Result::ok).map(|entry| entry.path());
    let vmlinuz = found.into_iter().find(|path| path.to_string_lossy().contains("vmlinuz"));
    let vmlinuz = vmlinuz.ok_or_else(|| format!("{package} has no kernel in boot/"))?;
    fs::rename(vmlinuz, image).map_err(said)?;
    fs::remove_dir_all(&unpacked).and_then(|()| fs::remove_file(&archive)).map_err(said)
}

/// What the package depends on first.
fn newest(package: &str) -> Result<String, String> {
    let output = Command::new("apt-cache").args(["depends", package]).output();
    let output = output.map_err(|error| format!("apt-cache: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    found.map(|rest| format!("linux-image-{}", rest.trim())).ok_or_else(|| {
        format!(
            "apt knows no package {package}; on Debian 12, with its security archive, `apt-get update` helps"
        )
    })
}

fn find(folder: &Path, extension: &str) -> Result<PathBuf, String> {
    let files = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths = files.filter_map(Result::ok).map(|entry| entry.path());
    paths
        .find(|path| path.extension().is_some_and(|found| found == extension))
        .ok_or_else(|| format!("{}: no .{extension} was fetched", folder.display()))
}
