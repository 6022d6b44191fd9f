//! `cargo xtask install`: what this machine lacks for a task, from Debian's own archive, crates.io, Go's
//! modules and npm.
//!
//! It must never upgrade or remove anything, and never leaves a service running or enabled that it has
//! installed. A compiler for C must exist before this program can be built; the Makefile sees to that.

mod cargo_tools;
mod command;
mod go_tools;
mod needs;
mod npm_packages;
mod services;

use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;

pub(crate) use command::{is_on_path, succeed};
use needs::{Need, Purpose};

/// How long another apt is waited for, in seconds: one may be at work when a machine has just started.
const LOCK_PATIENCE: &str = "DPkg::Lock::Timeout=600";

/// What to install for.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The task that must become possible
    #[arg(long = "for", value_enum, default_value = "test")]
    purpose: Purpose,
    /// Only say what is missing; fails if something is
    #[arg(long)]
    check: bool,
}

/// Installs what is missing. Fails if it cannot, with the command that would.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    let missing = needs::missing(arguments.purpose);
    for need in &missing {
        println!("missing: {:<18} {}", need.package, need.reason);
    }
    cargo_tools::print_missing(root, arguments.purpose);
    go_tools::print_missing(root, arguments.purpose);
    npm_packages::print_missing(root, arguments.purpose);
    if arguments.check {
        let are_built = cargo_tools::are_installed(root, arguments.purpose)
            && go_tools::are_installed(root, arguments.purpose)
            && npm_packages::are_installed(root, arguments.purpose);
        let complete = missing.is_empty() && are_built;
        return if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let packages = if missing.is_empty() { Ok(()) } else { install_packages(&missing) };
    let built = packages.and_then(|()| cargo_tools::install(root, arguments.purpose));
    let built = built.and_then(|()| go_tools::install(root, arguments.purpose));
    match built.and_then(|()| npm_packages::install(root, arguments.purpose)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("install: {error}");
            ExitCode::FAILURE
        }
    }
}

fn install_packages(missing: &[&Need]) -> Result<(), String> {
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !is_on_path("apt-get") {
        return Err(format!("no apt-get here; on Debian this would do: {by_hand}"));
    }
    if !is_root() {
        return Err(format!(
            "packages are installed by root only; run this, then try again:\n    sudo {by_hand}"
        ));
    }
    let _guard = services::hold_back(Path::new(services::POLICY_FILE)).map_err(|error| error.to_string())?;
    // Package lists may be missing (a fresh container) or old; an update that fails is no reason not to try.
    let _ = apt_get(&["update", "--quiet"]);
    let mut arguments = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    arguments.extend(&packages);
    apt_get(&arguments)?;
    services::disable_new(&packages);
    Ok(())
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    println!("apt-get {}", arguments.join(" "));
    let mut command = Command::new("apt-get");
    command.args(["-o", LOCK_PATIENCE]);
    succeed(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

fn is_root() -> bool {
    let own_folder: io::Result<std::fs::Metadata> = std::fs::metadata("/proc/self");
    own_folder.is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}
