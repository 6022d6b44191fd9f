//! `staunch dostp`: the lean transport between the nodes of one LAN, from the command line.
//!
//! It must never know the format of a frame: the library does.
#![forbid(unsafe_code)]

mod bench;
mod choose;
mod control;
mod keys;
mod link;
mod looks;
mod one_way;
mod peers;
mod ping;
mod serve;
mod service;
mod spinning;
mod stream;
mod trips;
mod waiting;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use staunch_program::Failure;

/// What stands at the end of the help.
const EXAMPLES: &str = "\
Examples:
  staunch dostp serve --interface eth1              be a node: answer, and know who is there
  staunch dostp ping 10.0.0.7 --interface eth1 -c 5 as ping
  staunch dostp peers --interface eth1              whom the node of this host knows
  staunch dostp stats --interface eth1              its counts, for Prometheus
  staunch dostp bench 10.0.0.7 -I eth1 --choose     find the fastest backend here
  staunch dostp stream send 10.0.0.7 -I eth1        what comes within 5 ms; there: stream receive

It needs CAP_NET_RAW, or `--backend udp` and no right at all; docs/dostp.md is the format.";

/// What the command line says.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Be a node: answer pings, know the peers, until it is ended
    Serve(serve::Arguments),
    /// Ask a node whether it is there, and how far
    Ping(ping::Arguments),
    /// Compare round trips with those of UDP
    Bench(bench::Arguments),
    /// Send or receive a stream of messages with a deadline, and count what came in time
    Stream(stream::Arguments),
    /// Show whom the node of this host knows
    Peers(looks::Peers),
    /// Show the counts of the node of this host
    Stats(looks::Stats),
    /// Give secrets to the kernel's module, and show which slots hold one
    Keys(keys::Arguments),
}

/// Does what is asked.
///
/// # Errors
/// Why it cannot, in a sentence. Exit codes: 1 nobody answered, 3 no node runs here, 77 a right is missing,
/// 78 the interface cannot be used.
pub fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Subcommands::Serve(arguments) => serve::run(&arguments),
        Subcommands::Ping(arguments) => ping::run(&arguments),
        Subcommands::Bench(arguments) => bench::run(&arguments),
        Subcommands::Stream(arguments) => stream::run(&arguments),
        Subcommands::Peers(arguments) => looks::peers(&arguments),
        Subcommands::Stats(arguments) => looks::stats(&arguments),
        Subcommands::Keys(arguments) => keys::run(&arguments),
    }
}
