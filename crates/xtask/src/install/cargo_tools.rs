//! Tools that come from crates.io, each at one version, built once into `target/tools`.
//!
//! It must never install into the user's own folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::running::target;

use super::command::succeed;
use super::needs::Purpose;

/// A tool that cargo builds.
struct Tool {
    /// The first task that needs it.
    purpose: Purpose,
    /// Name of crate and program.
    name: &'static str,
    /// The one version.
    version: &'static str,
    /// Further words for `cargo install`.
    arguments: &'static [&'static str],
    /// What it is for, in a few words.
    reason: &'static str,
}

/// Every tool. What runs for a second is built without optimisation, because building takes minutes; a load
/// generator is measured, so it is built as its authors mean it (1.16.0 cannot be built without TLS).
const TOOLS: &[Tool] = &[
    Tool {
        purpose: Purpose::Soak,
        name: "cargo-deny",
        version: "0.20.2",
        arguments: &["--debug"],
        reason: "checks licences, sources and doubled versions of dependencies (see deny.toml)",
    },
    Tool {
        purpose: Purpose::Bench,
        name: "oha",
        version: "1.16.0",
        arguments: &[],
        reason: "open-loop load to compare with",
    },
];

/// Whether every tool of a task is there, at its version.
pub(crate) fn are_installed(root: &Path, purpose: Purpose) -> bool {
    missing(root, purpose).next().is_none()
}

/// Builds what is missing.
///
/// # Errors
/// When cargo fails; says so.
pub(crate) fn install(root: &Path, purpose: Purpose) -> Result<(), String> {
    missing(root, purpose).try_for_each(|tool| build(root, tool))
}

/// Says what is missing.
pub(crate) fn print_missing(root: &Path, purpose: Purpose) {
    for tool in missing(root, purpose) {
        println!("missing: {:<18} {}", format!("{} {}", tool.name, tool.version), tool.reason);
    }
}

fn missing(root: &Path, purpose: Purpose) -> impl Iterator<Item = &'static Tool> {
    let folder = folder(root).join("bin");
    TOOLS.iter().filter(move |tool| tool.purpose <= purpose && !is_there(&folder, tool))
}

fn is_there(folder: &Path, tool: &Tool) -> bool {
    let said = Command::new(folder.join(tool.name)).arg("--version").output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim().ends_with(tool.version))
}

fn build(root: &Path, tool: &Tool) -> Result<(), String> {
    println!("cargo install {} --version {}", tool.name, tool.version);
    let folder = folder(root);
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--quiet", "--locked", "--version", tool.version, tool.name, "--root"]);
    // Cargo itself finds its target folder by this variable: the tools must not be built into ours.
    let workshop = folder.join("build");
    cargo.arg(&folder).args(tool.arguments).env("CARGO_TARGET_DIR", &workshop);
    succeed(cargo.env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
    std::fs::remove_dir_all(&workshop).map_err(|error| format!("{}: {error}", workshop.display()))
}

/// Where tools stand that are built here.
pub(super) fn folder(root: &Path) -> PathBuf {
    let target = target(root);
    target.join("tools")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_misses_the_tools_of_its_task_alone() {
        let nowhere = Path::new("/no such folder");
        let named = |purpose| {
            let tools = TOOLS.iter().filter(move |tool| tool.purpose <= purpose && !is_there(nowhere, tool));
            tools.map(|tool| tool.name).collect::<Vec<_>>()
        };
        assert!(named(Purpose::Run).is_empty());
        assert!(named(Purpose::Test).is_empty());
        assert_eq!(named(Purpose::Bench), ["oha"]);
        assert_eq!(named(Purpose::Soak), ["cargo-deny", "oha"]);
    }
}
