//! Running programs of this machine, and seeing whether they are there.
//!
//! It must never decide what to run.

use std::process::Command;

/// Runs a command to its end.
///
/// # Errors
/// When it cannot be run or fails; says which and how.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |how: String| Err(format!("{name} failed: {how}"));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => failed(status.to_string()),
        Err(error) => failed(error.to_string()),
    }
}

/// Whether a program stands in a folder of PATH, or in one that only root's PATH has.
pub(crate) fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&path).chain(system).any(|folder| folder.join(program).is_file())
}
