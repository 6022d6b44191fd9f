//! Builds programs of this folder with clang, for the build scripts of the crates that embed them. Set CLANG
//! to choose another one than that on PATH.
//!
//! It must never look at the headers of this system: the programs bring what they need.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An object, its source, and what is defined for it.
pub(crate) type Object<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Builds the objects into the folder cargo has given.
pub(crate) fn build(objects: &[Object<'_>]) {
    println!("cargo:rerun-if-env-changed=CLANG");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    println!("cargo:rerun-if-changed={}", folder.display());
    let into = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for (object, source, defined) in objects {
        compile(&folder, &folder.join(source), defined, &into.join(object));
    }
}

/// `-g` makes the type information by which the loader knows the maps, and finds what stands where in this
/// kernel. Paths of this machine stay out of it.
fn compile(folder: &Path, source: &Path, defined: &[&str], object: &Path) {
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-nostdinc", "-Wall", "-Wextra", "-Werror"]);
    command.arg(format!("-ffile-prefix-map={}=bpf", folder.display()));
    command.current_dir(folder).arg("-fdebug-compilation-dir=bpf").args(defined);
    command.arg("-c").arg(source).arg("-o").arg(object);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} failed on {}: {status}", clang.display(), source.display()),
        Err(error) => {
            panic!("{} cannot be run: {error}. BPF programs are built by it (package clang)", clang.display())
        }
    }
}
