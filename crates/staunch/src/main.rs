//! The command `staunch`: parses, wires, prints. It must never hold logic of its own.
#![forbid(unsafe_code)]

mod admin;
mod banner;
mod config;
mod doctor;
mod load;
mod seeing;
mod serve;
mod sites;
mod top;
mod units;

use std::process::ExitCode;

use clap::{ArgAction, Parser, Subcommand};

use crate::config::Failure;

/// A web server for crowds: files served from prepared content, at full rate.
#[derive(Parser)]
#[command(name = "staunch", version, max_term_width = 100)]
#[command(disable_help_flag = true, disable_help_subcommand = true)]
struct Command {
    // Always the short form: values and defaults stand on the line of their flag, not on lines of their own.
    /// Print help
    #[arg(long, short, global = true, display_order = 1000, action = ArgAction::HelpShort)]
    help: Option<bool>,

    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Serve a directory over HTTP/1.1
    Serve(Box<config::Arguments>),
    /// Offer load to a server, and say what came of it
    Load(Box<load::Arguments>),
    /// Watch a running server
    Top(top::Arguments),
    /// Say what of this host is set well for a server, and what is not
    Doctor(doctor::Arguments),
}

/// Exit codes: 0 all went well, 1 it could not run, 2 it was called wrongly, 3 a threshold was crossed or a
/// setting of the host matters, 78 the configuration cannot be used.
fn main() -> ExitCode {
    let result = match Command::parse().command {
        Subcommands::Serve(arguments) => serve::run(&arguments).map(|()| ExitCode::SUCCESS),
        Subcommands::Load(arguments) => load::run_command(*arguments).map_err(Failure::from),
        Subcommands::Top(arguments) => top::run(&arguments).map_err(Failure::from),
        Subcommands::Doctor(arguments) => doctor::run(&arguments).map_err(Failure::from),
    };
    result.unwrap_or_else(|failure| {
        for line in failure.text.lines() {
            eprintln!("staunch: {line}");
        }
        ExitCode::from(failure.code)
    })
}
