//! A kernel with its own checks switched on (KASAN, lockdep and others), built from Debian's sources.
//!
//! It is built once for a list of options and a compiler, which takes up to half an hour, and modules are
//! built against its tree. It must never be built by a test: whoever wants one asks for it.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::apt::Apt;
use super::kernel::{self, Kernel};
use super::unpacked;
use crate::install::{is_on_path, succeed};
use crate::running::output;

/// The package of the sources.
const PACKAGE: &str = "linux-source-6.1";
/// The list of options, below the project's root.
const OPTIONS: &str = "kernel/debug.config";
/// What the kernel's build calls beside a compiler, and the packages that bring it.
const TOOLS: [(&str, &str); 3] = [("flex", "flex"), ("bison", "bison"), ("bc", "bc")];
/// A header without which its objtool is not compiled, and the package that brings it.
const HEADER: (&str, &str) = ("/usr/include/gelf.h", "libelf-dev");
/// Objects are most of what a build leaves behind, and modules need none.
const NOT_KEPT: [&str; 3] = ["*.o", "*.a", "vmlinux*"];

/// The kernel, built if it is not there.
///
/// # Errors
/// A tool is missing, the sources cannot be fetched, an option was lost, or the compiler fails.
pub(super) fn kernel(root: &Path) -> Result<Kernel, String> {
    let options = fs::read_to_string(root.join(OPTIONS)).map_err(|error| format!("{OPTIONS}: {error}"))?;
    let compiler = output(Command::new("cc").arg("-dumpfullversion"))?;
    let digest = kernel::digest(&[options.as_bytes(), compiler.as_bytes()]);
    let folder = root.join("target/tools/kernels").join(format!("debug-6.1-{digest:016x}"));
    let (image, release) = (folder.join("vmlinuz"), folder.join("release"));
    if !image.exists() {
        build(&folder, &options)?;
    }
    let release = fs::read_to_string(&release).map_err(|error| format!("{}: {error}", release.display()))?;
    Ok(Kernel { image: unpacked::bootable(&image)?, folder, release })
}

/// The folder for `make -C`.
pub(super) fn tree(kernel: &Kernel) -> PathBuf {
    kernel.folder.join("source")
}

fn build(folder: &Path, options: &str) -> Result<(), String> {
    for (program, package) in TOOLS {
        if !is_on_path(program) {
            return Err(format!("a kernel is built with {program}: apt-get install {package}"));
        }
    }
    let (header, package) = HEADER;
    if !Path::new(header).exists() {
        return Err(format!("a kernel is built with {header}: apt-get install {package}"));
    }
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    // What an attempt left that failed.
    let _ = fs::remove_dir_all(folder);
    let source = folder.join("source");
    fs::create_dir_all(&source).map_err(said)?;
    unpack(folder, &source)?;
    configure(&source, options)?;
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    output(make(&source).arg(format!("-j{processors}")).args(["bzImage", "modules"]))?;
    let release = output(make(&source).args(["-s", "kernelrelease"]))?;
    fs::write(folder.join("release"), release.trim()).map_err(said)?;
    for pattern in NOT_KEPT {
        let files =
            ["-type", "f", "-name", pattern, "-not", "-name", "*.lds", "-not", "-name", "*.[ch]", "-delete"];
        succeed(Command::new("find").arg(&source).args(files))?;
    }
    // The last step: a kernel that has an image is complete.
    fs::rename(source.join("arch/x86/boot/bzImage"), folder.join("vmlinuz")).map_err(said)
}

fn unpack(folder: &Path, source: &Path) -> Result<(), String> {
    Apt::of_this_machine().fetch(PACKAGE, folder)?;
    let archive = kernel::found(folder, |name| name.ends_with(".deb"))?;
    let unpacked = folder.join("unpacked");
    succeed(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&unpacked))?;
    let sources = unpacked.join("usr/src").join(format!("{PACKAGE}.tar.xz"));
    succeed(Command::new("tar").arg("-xf").arg(&sources).arg("--strip-components=1").arg("-C").arg(source))?;
    fs::remove_dir_all(&unpacked)
        .and_then(|()| fs::remove_file(&archive))
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// The smallest kernel with these options; none of them may be lost.
fn configure(source: &Path, options: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", source.display());
    output(make(source).arg("tinyconfig"))?;
    fs::write(source.join("options"), options).map_err(said)?;
    let mut merge = Command::new("scripts/kconfig/merge_config.sh");
    output(merge.args(["-m", ".config", "options"]).current_dir(source))?;
    output(make(source).arg("olddefconfig"))?;
    let configured = fs::read_to_string(source.join(".config")).map_err(said)?;
    match lost(options, &configured) {
        Some(line) => Err(format!("{OPTIONS}: {line} is lost: something that it needs is missing")),
        None => Ok(()),
    }
}

fn make(source: &Path) -> Command {
    let mut command = Command::new("make");
    command.arg("-C").arg(source);
    command
}

/// The first option that was asked for and is not there.
fn lost<'a>(options: &'a str, configured: &str) -> Option<&'a str> {
    let mut asked = options.lines().filter(|line| line.starts_with("CONFIG_"));
    asked.find(|line| !configured.lines().any(|other| other == *line))
}

#[cfg(test)]
mod tests {
    use super::lost;

    #[test]
    fn a_lost_option_is_found() {
        let options = "# words\nCONFIG_A=y\n# CONFIG_C is not set\nCONFIG_B=y\n";
        assert_eq!(lost(options, "CONFIG_A=y\nCONFIG_B=y\n"), None);
        assert_eq!(lost(options, "CONFIG_A=y\n# CONFIG_B is not set\n"), Some("CONFIG_B=y"));
    }
}
