//! Builds the BPF programs of `bpf/` with clang. Set CLANG to choose another one than that on PATH.
//!
//! It must never look at the headers of this system: the programs bring what they need.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs this crate embeds, without `.bpf.c`.
const PROGRAMS: &[&str] = &["flood"];

fn main() {
    println!("cargo:rerun-if-env-changed=CLANG");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let into = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for header in ["kernel.h", "checksum.h"] {
        println!("cargo:rerun-if-changed={}", folder.join(header).display());
    }
    for program in PROGRAMS {
        let source = folder.join(format!("{program}.bpf.c"));
        println!("cargo:rerun-if-changed={}", source.display());
        compile(&folder, &source, &into.join(format!("{program}.bpf.o")));
    }
}

/// `-g` makes the type information by which the loader knows the maps. Paths of this machine stay out of it.
fn compile(folder: &Path, source: &Path, object: &Path) {
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-nostdinc", "-Wall", "-Wextra", "-Werror"]);
    command.arg(format!("-ffile-prefix-map={}=bpf", folder.display()));
    command.current_dir(folder).arg("-fdebug-compilation-dir=bpf");
    command.arg("-c").arg(source).arg("-o").arg(object);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} failed on {}: {status}", clang.display(), source.display()),
        Err(error) => {
            panic!("{} cannot be run: {error}. BPF programs are built by it (package clang)", clang.display())
        }
    }
}
