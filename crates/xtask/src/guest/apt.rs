//! Debian's archive, asked for packages that are unpacked and never installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::install::succeed;

/// What Debian offers: to this machine, or to one with other sources, of which this machine is not told.
pub(super) struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// The sources of this machine.
    pub(super) fn of_this_machine() -> Self {
        Self { options: Vec::new() }
    }

    /// Sources and lists of their own in `folder`: these suites of Debian's, from where this machine has its
    /// packages from.
    pub(super) fn of_suites(folder: &Path, suites: &[&str]) -> Result<Self, String> {
        let path = |name: &str| folder.join(name).display().to_string();
        let made = ["lists/partial", "cache/archives/partial"]
            .iter()
            .try_for_each(|name| fs::create_dir_all(folder.join(name)))
            .and_then(|()| fs::write(folder.join("sources"), sources(&mirror()?, suites)))
            .and_then(|()| fs::write(folder.join("status"), ""));
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        let options = [
            format!("Dir::Etc::sourcelist={}", path("sources")),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={}", path("lists")),
            format!("Dir::Cache={}", path("cache")),
            // Nothing is installed there.
            format!("Dir::State::status={}", path("status")),
        ];
        let apt = Self { options: options.into() };
        succeed(apt.command("apt-get").arg("update"))?;
        Ok(apt)
    }

    /// Fetches the archives of packages and of all that they depend on.
    ///
    /// # Errors
    /// apt fails: a package is not known, or an archive cannot be reached.
    pub(super) fn fetch_with_dependencies(&self, packages: &[&str]) -> Result<(), String> {
        let mut command = self.command("apt-get");
        command.args(["install", "--yes", "--download-only", "--no-install-recommends"]);
        succeed(command.args(packages))
    }

    pub(super) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        // apt fetches as a user without rights if it may write here.
        command.args(["--quiet", "-o", "APT::Sandbox::User=root"]);
        self.options.iter().for_each(|option| {
            command.arg("-o").arg(option);
        });
        command
    }

    /// Fetches a package's archive into `folder`.
    ///
    /// # Errors
    /// apt fails: the package is not known, or the archive cannot be reached.
    pub(super) fn fetch(&self, package: &str, folder: &Path) -> Result<(), String> {
        succeed(self.command("apt-get").arg("download").arg(package).current_dir(folder))
    }

    /// The package of a kernel that this one stands for. Since Linux 7 the image has a package of its own.
    pub(super) fn package_with_image(&self, package: &str) -> Result<String, String> {
        let image = self.dependency(package, "linux-image-")?.ok_or_else(|| {
            format!("apt knows no package {package}; on Debian 12 `apt-get update` helps (security archive)")
        })?;
        Ok(self.dependency(&image, "linux-binary-")?.unwrap_or(image))
    }

    /// The package that `package` depends on and whose name begins so.
    pub(super) fn dependency(&self, package: &str, beginning: &str) -> Result<Option<String>, String> {
        self.dependency_that(package, |name| name.starts_with(beginning))
    }

    /// The package that `package` depends on and whose name is meant.
    pub(super) fn dependency_that(
        &self,
        package: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Option<String>, String> {
        let output = self.command("apt-cache").args(["depends", package]).output();
        let output = output.map_err(|error| format!("apt-cache: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut needed = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(needed.find(|name| is_meant(name)).map(str::to_owned))
    }
}

/// The lines of apt's list of sources.
fn sources(mirror: &str, suites: &[&str]) -> String {
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    suites.iter().map(|suite| format!("deb [signed-by={keys}] {mirror} {suite} main\n")).collect()
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
