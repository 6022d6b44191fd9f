//! The guest's file system: busybox, the programs to be run with their libraries, some files, and a first
//! process that runs the script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::install::succeed;

const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp TMPDIR=/tmp TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs tmp /tmp
mount -t tmpfs shm /dev/shm
ip link set lo up
ulimit -n 20000
cd /tmp
echo "guest: begins"
sh /load && sh /script
echo "guest: ends $?"
poweroff -f
"#;

/// What is to be found in the machine.
pub(super) struct ImageContent<'a> {
    /// Programs of this machine, for `/bin`.
    pub(super) programs: &'a [PathBuf],
    /// Built modules, for `/modules`.
    pub(super) modules: &'a [PathBuf],
    /// The lines that load modules before the script runs.
    pub(super) load: &'a str,
    /// Files for the root folder, by name.
    pub(super) files: &'a [(&'static str, String)],
    /// The script of the shell that the machine runs.
    pub(super) script: &'a str,
}

/// Packs names in order, with fixed times, numbers and owners: the same content is the same archive to the
/// last byte, so two machines that count instructions count the same. Not compressed: an emulated processor
/// would take longer to unpack the archive than to do all else of a boot.
const PACK: &str = r#"cd "$0" && find . -exec touch -h -d @0 {} + &&
find . -print0 | LC_ALL=C sort -z |
cpio --quiet --create --null --format=newc --reproducible --owner=0:0 > "$1""#;

/// Packs the file system; gives the archive's path in `folder`, which is made anew.
///
/// # Errors
/// A program is not there, or a tool fails.
pub(super) fn make(folder: &Path, content: &ImageContent<'_>) -> Result<PathBuf, String> {
    let tree = folder.join("tree");
    let made = || -> std::io::Result<()> {
        let _ = fs::remove_dir_all(folder);
        for name in ["bin", "modules", "proc", "sys", "dev", "tmp"] {
            fs::create_dir_all(tree.join(name))?;
        }
        fs::write(tree.join("init"), INIT)?;
        fs::set_permissions(tree.join("init"), fs::Permissions::from_mode(0o755))?;
        fs::write(tree.join("load"), content.load)?;
        fs::write(tree.join("script"), content.script)?;
        content.files.iter().try_for_each(|(name, text)| fs::write(tree.join(name), text))
    };
    made().map_err(|error| format!("{}: {error}", tree.display()))?;
    add(&tree, Path::new("/bin/busybox"))?;
    content.programs.iter().try_for_each(|program| add(&tree, program))?;
    for module in content.modules {
        copy(module, &tree.join("modules").join(module.file_name().unwrap_or_default()))?;
    }
    let archive = folder.join("image.cpio");
    succeed(Command::new("sh").args(["-c", PACK]).arg(&tree).arg(&archive))?;
    Ok(archive)
}

/// Copies a program to /bin, and its libraries to where they stand here.
fn add(tree: &Path, program: &Path) -> Result<(), String> {
    let name = program.file_name().ok_or_else(|| format!("{} is no program", program.display()))?;
    let to = tree.join("bin").join(name);
    copy(program, &to)?;
    // Debug information is most of a program, and of no use in the machine. A script has none.
    let _ = Command::new("strip").arg("--strip-debug").arg(&to).stderr(Stdio::null()).status();
    // A static program has none: then ldd fails.
    let listed = Command::new("ldd").arg(program).output().map_err(|error| format!("ldd: {error}"))?;
    for library in libraries(&String::from_utf8_lossy(&listed.stdout)) {
        copy(Path::new(library), &tree.join(library.trim_start_matches('/')))?;
    }
    Ok(())
}

/// The paths in what ldd prints.
fn libraries(printed: &str) -> impl Iterator<Item = &str> {
    printed.split_ascii_whitespace().filter(|word| word.starts_with('/'))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(from, to));
    copied.map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_as_ldd_prints_them() {
        let printed = "\tlinux-vdso.so.1 (0x00007f2c)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x1)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x2)\n";
        let found: Vec<&str> = libraries(printed).collect();
        assert_eq!(found, ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert_eq!(libraries("\tnot a dynamic executable\n").count(), 0);
    }
}
