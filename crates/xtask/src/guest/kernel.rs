//! Kernels to boot: unpacked from Debian's packages, kept, never installed.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use super::apt::Apt;
use super::unpacked;
use crate::install::succeed;

/// A kernel that Debian has packages of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Series {
    /// Debian 12's own
    #[value(name = "6.1")]
    V6_1,
    /// The one of Debian 13, in Debian 12's security archive
    #[value(name = "6.12")]
    V6_12,
    /// The newest made for Debian 13, in its backports
    Newest,
    /// Built from Debian 12's sources with KASAN, lockdep and other checks, once, in up to half an hour
    #[value(name = "debug-6.1")]
    Debug6_1,
}

impl Series {
    /// The package that depends on the newest kernel of the series.
    fn package(self) -> &'static str {
        match self {
            Self::V6_1 => "linux-image-amd64",
            Self::V6_12 => "linux-image-6.12-amd64",
            Self::Newest => "linux-image-amd64",
            Self::Debug6_1 => "linux-source-6.1",
        }
    }

    /// The folder it is kept in.
    fn folder(self) -> &'static str {
        match self {
            Self::V6_1 | Self::V6_12 | Self::Debug6_1 => self.package(),
            Self::Newest => "newest",
        }
    }
}

/// A kernel that was fetched.
pub(super) struct Kernel {
    /// The folder of all that belongs to it.
    pub(super) folder: PathBuf,
    /// The file that QEMU boots.
    pub(super) image: PathBuf,
    /// The release, as `uname -r` tells it: image and headers are of the same one.
    pub(super) release: String,
}

/// Waits until no other process fetches or builds; holds until it is dropped.
///
/// # Errors
/// The folder of the kernels cannot be written.
pub(super) fn lock(root: &Path) -> Result<fs::File, String> {
    let folder = root.join("target/tools/kernels");
    let locked = || {
        fs::create_dir_all(&folder)?;
        let file = fs::File::create(folder.join("lock"))?;
        file.lock()?;
        Ok(file)
    };
    locked().map_err(|error: std::io::Error| format!("{}: {error}", folder.display()))
}

/// The kernel of a series of packages, fetched if it is not there. A kernel that was fetched once is not
/// looked for again.
///
/// # Errors
/// apt cannot name or fetch it.
pub(super) fn kernel(root: &Path, series: Series) -> Result<Kernel, String> {
    let folder = root.join("target/tools/kernels").join(series.folder());
    let (image, release) = (folder.join("vmlinuz"), folder.join("release"));
    if !image.exists() || !release.exists() {
        fetch(series, &folder, &image)?;
    }
    let release = fs::read_to_string(&release).map_err(|error| format!("{}: {error}", release.display()))?;
    Ok(Kernel { image: unpacked::bootable(&image)?, folder, release })
}

impl Series {
    /// Where its packages come from.
    pub(super) fn apt(self, folder: &Path) -> Result<Apt, String> {
        match self {
            Self::V6_1 | Self::V6_12 | Self::Debug6_1 => Ok(Apt::of_this_machine()),
            Self::Newest => Apt::of_suites(&folder.join("apt"), &["trixie-backports"]),
        }
    }
}

fn fetch(series: Series, folder: &Path, image: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    // What an attempt left that failed.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(said)?;
    let apt = series.apt(folder)?;
    let package = apt.package_with_image(series.package())?;
    apt.fetch(&package, folder)?;
    let unpacked = folder.join("unpacked");
    let archive = found(folder, |name| name.ends_with(".deb"))?;
    succeed(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&unpacked))?;
    let boot = unpacked.join("boot");
    let place = if boot.exists() { boot } else { found(&unpacked.join("usr/lib/modules"), |_| true)? };
    let vmlinuz = found(&place, |name| name.starts_with("vmlinuz"))?;
    let name = vmlinuz.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // In newer packages the file is called vmlinuz, and the folder it stands in has the release's name.
    let folder_name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let release = name.strip_prefix("vmlinuz-").unwrap_or(folder_name);
    fs::write(folder.join("release"), release).map_err(said)?;
    fs::rename(&vmlinuz, image).map_err(said)?;
    fs::remove_dir_all(&unpacked).and_then(|()| fs::remove_file(&archive)).map_err(said)
}

/// A number that changes with each byte of these texts.
pub(super) fn digest(texts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for text in texts {
        hasher.write_usize(text.len());
        hasher.write(text);
    }
    hasher.finish()
}

/// What in the folder has such a name.
pub(super) fn found(folder: &Path, is_meant: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let name = names.find(|name| name.to_str().is_some_and(&is_meant));
    let name = name.ok_or_else(|| format!("{}: what was fetched is not there", folder.display()))?;
    Ok(folder.join(name))
}
