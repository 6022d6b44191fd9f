//! `cargo xtask bench`, `demo` and `soak`: handed on to `crates/bench`, which is built only then.
//!
//! It owns the call. It must never read the words it hands on.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;

/// What is handed on.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Words of the measurement; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<OsString>,
}

/// Builds the measurements and becomes them.
pub(crate) fn run(root: &Path, name: &str, arguments: &Arguments) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // By its program, not its package: it has the features of the whole workspace then, as tests have, and
    // nothing is built twice.
    command.args(["run", "--quiet", "--profile", "fast", "--bin", "staunch-bench"]);
    command.arg("--manifest-path").arg(root.join("Cargo.toml")).args(["--", name]).args(&arguments.words);
    eprintln!("error: cargo: {}", command.exec());
    ExitCode::FAILURE
}
