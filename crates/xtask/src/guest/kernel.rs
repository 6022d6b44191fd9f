//! Kernels to boot: unpacked from Debian's packages, kept, never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

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
}

impl Series {
    /// The package that depends on the newest kernel of the series.
    fn package(self) -> &'static str {
        match self {
            Self::V6_1 => "linux-image-amd64",
            Self::V6_12 => "linux-image-6.12-amd64",
            Self::Newest => "linux-image-amd64",
        }
    }

    /// The folder it is kept in.
    fn folder(self) -> &'static str {
        match self {
            Self::V6_1 | Self::V6_12 => self.package(),
            Self::Newest => "newest",
        }
    }
}

/// The kernel's image, fetched if it is not there. One that was fetched once is not looked for again.
///
/// # Errors
/// apt cannot name or fetch it.
pub(super) fn image(root: &Path, series: Series) -> Result<PathBuf, String> {
    let folder = root.join("target/tools/kernels").join(series.folder());
    let image = folder.join("vmlinuz");
    if !image.exists() {
        fetch(series, &folder, &image)?;
    }
    Ok(image)
}

fn fetch(series: Series, folder: &Path, image: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    // What an attempt left that failed.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(said)?;
    let apt = match series {
        Series::V6_1 | Series::V6_12 => Apt { options: Vec::new() },
        Series::Newest => Apt::of_backports(&folder.join("apt"))?,
    };
    let package = apt.package_with_image(series.package())?;
    succeed(apt.command("apt-get").arg("download").arg(&package).current_dir(folder))?;
    let unpacked = folder.join("unpacked");
    let archive = found(folder, |name| name.ends_with(".deb"))?;
    succeed(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&unpacked))?;
    let boot = unpacked.join("boot");
    let place = if boot.exists() { boot } else { found(&unpacked.join("usr/lib/modules"), |_| true)? };
    let vmlinuz = found(&place, |name| name.starts_with("vmlinuz"))?;
    fs::rename(vmlinuz, image).map_err(said)?;
    fs::remove_dir_all(&unpacked).and_then(|()| fs::remove_file(&archive)).map_err(said)
}

/// What Debian offers: to this machine, or to one with other sources, of which this machine is not told.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// Sources and lists of their own in `folder`: Debian 13's backports, from where this machine has its
    /// packages from.
    fn of_backports(folder: &Path) -> Result<Self, String> {
        let path = |name: &str| folder.join(name).display().to_string();
        let made = ["lists/partial", "cache/archives/partial"]
            .iter()
            .try_for_each(|name| fs::create_dir_all(folder.join(name)))
            .and_then(|()| {
                let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
                let source = format!("deb [signed-by={keys}] {} trixie-backports main\n", mirror()?);
                fs::write(folder.join("sources"), source)
            });
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        let options = [
            format!("Dir::Etc::sourcelist={}", path("sources")),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={}", path("lists")),
            format!("Dir::Cache={}", path("cache")),
        ];
        let apt = Self { options: options.into() };
        succeed(apt.command("apt-get").arg("update"))?;
        Ok(apt)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        // apt fetches as a user without rights if it may write here.
        command.args(["--quiet", "-o", "APT::Sandbox::User=root"]);
        self.options.iter().for_each(|option| {
            command.arg("-o").arg(option);
        });
        command
    }

    /// The package of a kernel that this one stands for. Since Linux 7 the image has a package of its own.
    fn package_with_image(&self, package: &str) -> Result<String, String> {
        let image = self.dependency(package, "linux-image-")?.ok_or_else(|| {
            format!("apt knows no package {package}; on Debian 12 `apt-get update` helps (security archive)")
        })?;
        Ok(self.dependency(&image, "linux-binary-")?.unwrap_or(image))
    }

    /// What a package depends on that is named so.
    fn dependency(&self, package: &str, beginning: &str) -> Result<Option<String>, String> {
        let output = self.command("apt-cache").args(["depends", package]).output();
        let output = output.map_err(|error| format!("apt-cache: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut needed = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(needed.find(|name| name.starts_with(beginning)).map(str::to_owned))
    }
}

/// Where this machine has Debian's packages from.
fn mirror() -> std::io::Result<String> {
    let format = "$(LABEL) $(SITE)";
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", format, "Created-By: Packages"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let site = text.lines().find_map(|line| line.strip_prefix("Debian "));
    site.map(str::to_owned)
        .ok_or_else(|| std::io::Error::other("apt knows no packages of Debian's: `apt-get update` helps"))
}

/// What in the folder has such a name.
fn found(folder: &Path, is_meant: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let name = names.find(|name| name.to_str().is_some_and(&is_meant));
    let name = name.ok_or_else(|| format!("{}: what was fetched has no kernel there", folder.display()))?;
    Ok(folder.join(name))
}
