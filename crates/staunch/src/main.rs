//! The command `staunch`: parses, wires, prints. It must never hold logic of its own.
#![forbid(unsafe_code)]

mod banner;
mod serve;
mod units;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A web server for crowds: files served from prepared content, at full rate.
#[derive(Parser)]
#[command(name = "staunch", version, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Serve a directory over HTTP/1.1
    Serve(serve::Arguments),
}

/// Exit codes: 0 all went well, 1 it could not run, 2 it was called wrongly.
fn main() -> ExitCode {
    let result = match Command::parse().command {
        Subcommands::Serve(arguments) => serve::run(arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("staunch: {error}");
            ExitCode::FAILURE
        }
    }
}
