//! `staunch dostp stream`: messages of the kind `realtime` at a rate, and what of them came in time.
//!
//! The sender never says what was received: the receiver counts, and answers.

mod bound;
mod receive;
mod report;
mod score;
mod send;
mod window;
mod words;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use staunch_program::Failure;

/// The end of the help text.
const EXAMPLES: &str = "\
Examples:
  staunch dostp stream receive -I eth1                          on the one node
  staunch dostp stream send 10.0.0.7 -I eth1                    on the other: 1 000 a second for 10 s
  staunch dostp stream send 10.0.0.7 -I eth1 --rate 20k --deadline 1ms --count 100k --json

Jitter is that of RFC 3550 (6.4.1). Clocks are not compared: late is what was held up for longer than the
deadline beyond the quickest message. The time of one way is told where both ends have one clock.";

/// The command line of `staunch dostp stream`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Send a stream, and show what the receiver has counted
    Send(send::Arguments),
    /// Receive streams until ended, and show a line for each
    Receive(receive::Arguments),
}

/// Sends or receives.
///
/// # Errors
/// The interface cannot be used, a right is missing, or nobody receives there.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Subcommands::Send(arguments) => send::run(arguments),
        Subcommands::Receive(arguments) => receive::run(arguments),
    }
}
