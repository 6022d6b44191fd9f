//! Packages of npm that tests use, each at one version, in `target/tools/npm`.
//!
//! It must never run a script of a package, nor install into the user's own folder. Where there is no npm
//! they are left out, which is said and is no failure: the tests that use them say so too.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::cargo_tools::folder;
use super::command::{is_on_path, succeed};
use super::needs::Purpose;

/// A package of npm that a task needs.
struct NpmPackage {
    /// The first task that needs it.
    purpose: Purpose,
    name: &'static str,
    /// The one version.
    version: &'static str,
    /// What it is for, in a few words.
    reason: &'static str,
}

const PACKAGES: &[NpmPackage] = &[
    NpmPackage {
        purpose: Purpose::Test,
        name: "centrifuge",
        version: "5.8.0",
        reason: "the client of Centrifugo for JavaScript",
    },
    NpmPackage {
        purpose: Purpose::Test,
        name: "typescript",
        version: "5.9.3",
        reason: "reads the types of the client for pages",
    },
    NpmPackage { purpose: Purpose::Test, name: "ws", version: "8.18.3", reason: "WebSockets for Node" },
];

/// Whether every package of a task is there, at its version, that can be installed here.
pub(crate) fn are_installed(root: &Path, purpose: Purpose) -> bool {
    !is_on_path("npm") || missing(root, purpose).next().is_none()
}

/// Installs what is missing.
///
/// # Errors
/// When npm fails; says so.
pub(crate) fn install(root: &Path, purpose: Purpose) -> Result<(), String> {
    let wanted: Vec<String> =
        missing(root, purpose).map(|package| format!("{}@{}", package.name, package.version)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    if !is_on_path("npm") {
        println!("left out: {} (there is no npm)", wanted.join(", "));
        return Ok(());
    }
    println!("npm install {}", wanted.join(" "));
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--save-exact",
        "--silent",
        "--prefix",
    ]);
    succeed(npm.arg(place(root)).args(wanted))
}

/// Says what is missing.
pub(crate) fn print_missing(root: &Path, purpose: Purpose) {
    for package in missing(root, purpose) {
        println!("missing: {:<18} {}", format!("{} {}", package.name, package.version), package.reason);
    }
}

fn place(root: &Path) -> PathBuf {
    folder(root).join("npm")
}

fn missing(root: &Path, purpose: Purpose) -> impl Iterator<Item = &'static NpmPackage> {
    let modules = place(root).join("node_modules");
    PACKAGES.iter().filter(move |package| package.purpose <= purpose && !is_there(&modules, package))
}

fn is_there(modules: &Path, package: &NpmPackage) -> bool {
    let about = std::fs::read_to_string(modules.join(package.name).join("package.json"));
    about.is_ok_and(|about| about.contains(&format!("\"version\": \"{}\"", package.version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_misses_the_packages_of_its_task_alone() {
        let count = |purpose| missing(Path::new("/no such folder"), purpose).count();
        assert_eq!((count(Purpose::Run), count(Purpose::Test)), (0, PACKAGES.len()));
    }
}
