//! `staunch gate`: sheds connections that cannot be served, before the kernel pays for them.
//!
//! It must never decide how many are let in: the library does.

mod arguments;
mod log;
mod metrics;
mod run;
mod status;
mod view;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use arguments::Protection;

/// What stands at the end of the help.
const EXAMPLES: &str = "\
Examples:
  staunch gate --interface eth0                        ports 80 and 443, nothing else to be said
  staunch gate --interface eth0 --port 8080 --dry-run  only count what would be shed
  staunch gate --interface eth0,eth1 --mode reset --allow 192.0.2.0/24 --metrics 127.0.0.1:9091
  staunch gate status                                  watch it

It needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON. It ends by TERM or INT; docs/gate.md tells more.";

/// What the command line says.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Subcommands>,

    #[command(flatten)]
    protection: Option<Protection>,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Watch a running gate
    Status(status::Arguments),
}

/// Protects until it is ended, or shows a gate that does.
///
/// # Errors
/// Why it cannot, in a sentence.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, String> {
    match (arguments.command, arguments.protection) {
        (Some(Subcommands::Status(arguments)), _) => status::run(&arguments),
        (None, Some(protection)) => run::run(protection),
        // clap asks for --interface before it comes to this.
        (None, None) => Err("which interface is to be protected? --interface eth0".to_owned()),
    }
}
