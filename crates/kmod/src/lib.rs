//! `staunch kernel`: khttpd, the server of files that is a module of the kernel, from the command line.
//!
//! It loads, looks, traces and unloads. It must never build a module or serve a byte itself.
#![forbid(unsafe_code)]

mod load;
mod log;
mod module;
mod obstacle;
mod status;
mod trace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use rustix::io::Errno;
use staunch_program::{Failure, output};

use crate::module::{NAME, NO_RIGHT, NOT_LOADED};

/// What stands at the end of the help.
const EXPLANATION: &str = "\
Examples:
  staunch kernel load --root /srv/www                    serve a folder on port 80
  staunch kernel load --root /srv/www --mode softirq connections=20000
  staunch kernel status --json                           what it does and has done
  staunch kernel trace --html trace.html                 where its requests' time goes
  staunch kernel unload                                  close all connections and unload it

Exit codes: 0 done, 1 the kernel refuses, 2 called wrongly, 3 not loaded, 77 a right is missing.
The module is built from kernel/ or by the package staunch-dkms; docs/khttpd.md has its parameters.";

/// What the command line says.
#[derive(Args)]
#[command(after_help = EXPLANATION)]
pub struct Arguments {
    #[command(subcommand)]
    command: Subcommands,

    /// Look at the /proc and /sys beneath this folder
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    host: PathBuf,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Have the kernel serve a folder
    Load(load::Arguments),
    /// Show what the module was told and what it has done
    Status(status::Arguments),
    /// Watch where the time of its requests goes, by the kernel's tracing
    Trace(trace::Arguments),
    /// Close all connections and unload the module
    Unload,
}

/// Does what is asked.
///
/// # Errors
/// Why it cannot, in a sentence.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Subcommands::Load(load) => load::run(load, &arguments.host),
        Subcommands::Status(status) => status::run(status, &arguments.host),
        Subcommands::Trace(trace) => trace::run(trace, &arguments.host),
        Subcommands::Unload => unload(),
    }
}

fn unload() -> Result<ExitCode, Failure> {
    // As rmmod does: it does not wait for whoever uses the module.
    match rustix::system::delete_module(c"khttpd", rustix::fs::OFlags::NONBLOCK.bits() as i32) {
        Ok(()) => {
            output::print(&format!("{NAME} is unloaded\n"));
            Ok(ExitCode::SUCCESS)
        }
        Err(Errno::NOENT) => Err(Failure { code: NOT_LOADED, text: format!("{NAME} is not loaded") }),
        Err(Errno::PERM) => {
            Err(Failure { code: NO_RIGHT, text: format!("{NAME}: CAP_SYS_MODULE is missing: try as root") })
        }
        Err(Errno::NOSYS) => Err(Failure {
            code: NOT_LOADED,
            text: format!("{NAME} is not loaded: this kernel has no modules"),
        }),
        Err(Errno::AGAIN | Errno::BUSY) => {
            Err(format!("{NAME} is in use: a process has /dev/{NAME} open to take connections").into())
        }
        Err(error) => Err(format!("{NAME} cannot be unloaded: {error}").into()),
    }
}
