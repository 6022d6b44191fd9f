//! `cargo xtask bench`, `demo` and `soak`: handed on to `crates/bench`, which is built only then.
//!
//! It owns the call. It must never read the words it hands on.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::install::succeed;
use crate::running::{cargo, forget_package, target};

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
    // By its program, not its package: it has the features of the whole workspace then, as tests have, and
    // nothing is built twice.
    let mut build = cargo();
    build.args(["build", "--quiet", "--profile", "fast", "--bin", "staunch-bench"]);
    if let Err(error) = succeed(build.arg("--manifest-path").arg(root.join("Cargo.toml"))) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    let mut command = Command::new(target(root).join("fast/staunch-bench"));
    forget_package(&mut command);
    let error = command.arg(name).args(&arguments.words).exec();
    eprintln!("error: staunch-bench: {error}");
    ExitCode::FAILURE
}
