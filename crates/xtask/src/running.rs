//! Programs that chores call, cargo among them. It must never let one fail in silence.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names by which `cargo run` and `cargo test` tell a program of its own package.
const OF_PACKAGE: [&[u8]; 2] = [b"CARGO_MANIFEST_", b"CARGO_PKG_"];

/// Cargo, told no more than by hand.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    forget_package(&mut command);
    command
}

/// Takes from a command's environment what cargo tells of this program's package. Build scripts look at such
/// names (ring's does): with others they run again, and all that depends on them is compiled again.
pub(crate) fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
        command.env_remove(name);
    }
}

fn is_of_package(name: &OsStr) -> bool {
    OF_PACKAGE.iter().any(|start| name.as_bytes().starts_with(start))
}

/// The words by which cargo builds what is installed: the server, and the instruments that it starts.
pub(crate) const INSTALLED_PACKAGES: [&str; 4] = ["-p", "staunch", "-p", "staunch-instruments"];

/// The programs that are installed beside each other, by their names: `staunch`, and what stands beside it
/// where it was built.
pub(crate) fn installed_programs(staunch: &Path) -> [(PathBuf, &'static str); 2] {
    const INSTRUMENTS: &str = "staunch-load";
    [(staunch.to_owned(), "staunch"), (staunch.with_file_name(INSTRUMENTS), INSTRUMENTS)]
}

/// The folder cargo builds into.
pub(crate) fn target(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    output(command).map(|_| ())
}

/// Standard output of a command that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        String::from_utf8(output.stdout).map_err(|error| format!("{name}: {error}"))
    } else {
        Err(format!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_told_nothing_of_this_package() {
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "by `cargo test`");
        let command = cargo();
        let told: Vec<&OsStr> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert!(told.contains(&OsStr::new("CARGO_PKG_NAME")), "{told:?}");
        assert!(told.contains(&OsStr::new("CARGO_MANIFEST_DIR")), "{told:?}");
        assert!(!is_of_package(OsStr::new("CARGO_HOME")) && !is_of_package(OsStr::new("CARGO_TARGET_DIR")));
    }
}
