//! Tools that come from crates.io, each at one version, built once into `target/tools`.
//!
//! It must never install into the user's own folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::command::succeed;

/// Checks licences, sources and doubled versions of dependencies (see deny.toml).
const CARGO_DENY: &str = "0.20.2";

/// Whether every tool is there, at its version.
pub(crate) fn are_installed(root: &Path) -> bool {
    let version = Command::new(folder(root).join("bin/cargo-deny")).arg("--version").output();
    version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(CARGO_DENY))
}

/// Builds what is missing. Without optimisation: the tools run for a second, building them takes minutes.
///
/// # Errors
/// When cargo fails; says so.
pub(crate) fn install(root: &Path) -> Result<(), String> {
    println!("missing: cargo-deny {CARGO_DENY}     checks licences and sources of dependencies");
    let folder = folder(root);
    let mut cargo = Command::new("cargo");
    cargo.args([
        "install",
        "--quiet",
        "--locked",
        "--debug",
        "--version",
        CARGO_DENY,
        "cargo-deny",
        "--root",
    ]);
    // Cargo itself finds its target folder by this variable: the tools must not be built into ours.
    let workshop = folder.join("build");
    cargo.arg(&folder).env("CARGO_TARGET_DIR", &workshop).env("CARGO_PROFILE_DEV_DEBUG", "0");
    succeed(&mut cargo)?;
    std::fs::remove_dir_all(&workshop).map_err(|error| format!("{}: {error}", workshop.display()))
}

fn folder(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("tools")
}
