//! `cargo xtask container`: the root of a container image, with two static programs in it.
//!
//! It owns the folder that an image is built from. It must never build the image: that is what `podman build`
//! and `docker build` are for, and it needs no network here.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use crate::running::{INSTALLED_PACKAGES, cargo, installed_programs, succeed, target};

/// User and group of the image: those of `nonroot` in other images without a distribution.
const PASSWD: &str = "root:x:0:0:root:/:/sbin/nologin\nstaunch:x:65532:65532:staunch:/:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nstaunch:x:65532:\n";

/// What to make a root of.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A static program built already, with `staunch-load` beside it; without it, both are built for musl
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The profile to build it with
    #[arg(long, default_value = "release")]
    profile: String,
    /// Folder to build an image from; without it, `container` in cargo's target folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Makes the folder and prints its path. Fails with one sentence.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    match make(root, arguments) {
        Ok(folder) => {
            println!("{}", folder.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("container: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(root: &Path, arguments: &Arguments) -> Result<PathBuf, String> {
    let target = target(root);
    let binary = match &arguments.binary {
        Some(path) => path.clone(),
        None => build(root, &target, &arguments.profile)?,
    };
    let out = arguments.out.clone().unwrap_or_else(|| target.join("container"));
    fill(root, &out, &binary).map_err(|error| format!("{}: {error}", out.display()))?;
    Ok(out)
}

/// Builds the static programs; gives the path of `staunch`.
fn build(root: &Path, target: &Path, profile: &str) -> Result<PathBuf, String> {
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    succeed(Command::new("rustup").args(["target", "add", &triple]).current_dir(root))?;
    let words = ["build", "--profile", profile, "--target", &triple];
    succeed(cargo().args(words).args(INSTALLED_PACKAGES).current_dir(root))?;
    Ok(target.join(triple).join(profile).join("staunch"))
}

fn fill(root: &Path, out: &Path, binary: &Path) -> std::io::Result<()> {
    let image = out.join("root");
    for folder in ["usr/bin", "etc", "srv", "proc"] {
        fs::create_dir_all(image.join(folder))?;
    }
    for (from, name) in installed_programs(binary) {
        let to = image.join("usr/bin").join(name);
        fs::copy(from, &to)?;
        fs::set_permissions(to, Permissions::from_mode(0o755))?;
    }
    fs::write(image.join("etc/passwd"), PASSWD)?;
    fs::write(image.join("etc/group"), GROUP)?;
    fs::copy(root.join("packaging/Containerfile"), out.join("Containerfile"))?;
    Ok(())
}
