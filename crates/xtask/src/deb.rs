//! `cargo xtask deb`: the Debian packages, of the program and of the sources of its modules for the kernel.
//!
//! It owns the list of files in the package and what its control file says. It must never install anything,
//! and what it makes depends on the binary and the tree alone: times in it are those of the last commit.

mod control;
mod modules;
mod stage;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use crate::running::{INSTALLED_PACKAGES, cargo, installed_programs, output, succeed, target};
use stage::Stage;

/// What to make a package of.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A program built already, with `staunch-load` beside it; without it, both are built for release
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Make the package of the kernel's modules instead, which DKMS builds where it is installed
    #[arg(long, conflicts_with = "binary")]
    modules: bool,
    /// How hard it is packed, from 0 to 9; without it, as dpkg-deb does
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=9))]
    level: Option<u8>,
    /// Folder for the package; without it, cargo's target folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Makes the package and prints its path. Fails with one sentence.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    match make(root, arguments) {
        Ok(path) => {
            println!("{}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("deb: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(root: &Path, arguments: &Arguments) -> Result<PathBuf, String> {
    let target = target(root);
    let out = arguments.out.clone().unwrap_or_else(|| target.clone());
    let stage = Stage::new(&out.join(format!("deb-{}", std::process::id())), date(root))?;
    if arguments.modules {
        modules::fill(&stage, root)?;
        stage.text("DEBIAN/control", 0o644, &control::modules(stage.size_kib()?))?;
        return pack(
            &stage,
            arguments.level,
            &out.join(format!("staunch-dkms_{}_all.deb", control::VERSION)),
        );
    }
    let binary = match &arguments.binary {
        Some(path) => path.clone(),
        None => build(root, &target)?,
    };
    fill(&stage, root, &binary)?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let name = format!("staunch_{}_{}.deb", control::VERSION, architecture.trim());
    stage.text("DEBIAN/control", 0o644, &control::control(architecture.trim(), stage.size_kib()?))?;
    pack(&stage, arguments.level, &out.join(name))
}

/// Packs what the folder has by now.
fn pack(stage: &Stage, level: Option<u8>, path: &Path) -> Result<PathBuf, String> {
    stage.seal()?;
    succeed(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz"])
            .args(level.map(|level| format!("-z{level}")))
            .arg("--build")
            .args([stage.folder(), path])
            .env("SOURCE_DATE_EPOCH", stage.date().to_string()),
    )?;
    Ok(path.to_owned())
}

fn build(root: &Path, target: &Path) -> Result<PathBuf, String> {
    succeed(cargo().args(["build", "--release"]).args(INSTALLED_PACKAGES).current_dir(root))?;
    Ok(target.join("release/staunch"))
}

/// Everything the package holds.
fn fill(stage: &Stage, root: &Path, binary: &Path) -> Result<(), String> {
    let packaging = root.join("packaging");
    // In a folder of their own: whoever is confined may run what stands beside the program, for an upgrade.
    for (from, name) in installed_programs(binary) {
        let to = format!("usr/lib/staunch/{name}");
        stage.copy(&from, &to, 0o755)?;
        succeed(Command::new("strip").arg("--strip-unneeded").arg(stage.path(&to)))?;
    }
    stage.link("../lib/staunch/staunch", "usr/bin/staunch")?;
    let copies = [
        ("staunch.service", "lib/systemd/system/staunch.service"),
        ("staunch.socket", "lib/systemd/system/staunch.socket"),
        ("60-staunch.preset", "lib/systemd/system-preset/60-staunch.preset"),
        ("staunch.toml", "etc/staunch/staunch.toml"),
        ("welcome/index.html", "usr/share/staunch/welcome/index.html"),
        ("grafana/staunch.json", "usr/share/staunch/grafana/staunch.json"),
        ("prometheus/staunch.rules.yml", "usr/share/staunch/prometheus/staunch.rules.yml"),
        ("debian/copyright", "usr/share/doc/staunch/copyright"),
        ("debian/conffiles", "DEBIAN/conffiles"),
    ];
    for (from, to) in copies {
        stage.copy(&packaging.join(from), to, 0o644)?;
    }
    // The folder in which the service runs.
    stage.empty_folder("usr/share/staunch/empty")?;
    for script in ["postinst", "prerm", "postrm"] {
        stage.copy(&packaging.join("debian").join(script), &format!("DEBIAN/{script}"), 0o755)?;
    }
    for page in markdown(&root.join("docs"))? {
        let to = format!("usr/share/doc/staunch/{}", page.file_name().unwrap_or_default().to_string_lossy());
        stage.copy_compressed(&page, &to)?;
    }
    stage.copy_compressed(&root.join("CHANGELOG.md"), "usr/share/doc/staunch/CHANGELOG.md")?;
    stage.copy_compressed(&packaging.join("debian/changelog"), "usr/share/doc/staunch/changelog")?;
    manual(stage, binary)
}

/// Manual pages and completions, told by the program itself.
fn manual(stage: &Stage, binary: &Path) -> Result<(), String> {
    const MANUAL: &str = "usr/share/man";
    let mut man = Command::new(binary);
    succeed(man.arg("man").arg(stage.path(MANUAL)).env("SOURCE_DATE_EPOCH", stage.date().to_string()))?;
    stage.sort_manual(MANUAL)?;
    let shells = [
        ("bash", "usr/share/bash-completion/completions/staunch"),
        ("zsh", "usr/share/zsh/vendor-completions/_staunch"),
        ("fish", "usr/share/fish/vendor_completions.d/staunch.fish"),
    ];
    for (shell, to) in shells {
        stage.text(to, 0o644, &output(Command::new(binary).args(["completions", shell]))?)?;
    }
    Ok(())
}

fn markdown(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut pages: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    pages.retain(|path| path.extension() == Some(OsStr::new("md")));
    pages.sort();
    Ok(pages)
}

/// When the tree was last committed, in seconds of Unix; 0 outside of a repository.
fn date(root: &Path) -> u64 {
    let mut git = Command::new("git");
    let asked = output(git.args(["log", "-1", "--format=%ct"]).current_dir(root));
    asked.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
