//! Measurements, run as `cargo xtask bench NAME`, `cargo xtask demo NAME` and `cargo xtask soak`.
//!
//! It owns what is measured of the server from outside, beside the servers people use. It must never be
//! linked into what it measures.
#![forbid(unsafe_code)]

mod account;
mod attack;
mod bigfile;
mod building;
mod change;
mod client;
mod configuration;
mod content;
mod crowd;
mod demo;
mod dostp;
mod gate;
mod gate_cost;
mod generator;
mod http2;
mod idle;
mod instructions;
mod life;
mod live;
mod load;
mod machine;
mod memory;
mod page;
mod pair;
mod pressure;
mod process;
mod reading;
mod report;
mod run;
mod scenario;
mod secured;
mod seeing;
mod servers;
mod setting;
mod setup;
mod soak;
mod start;
mod terminal;
mod throughput;
mod tls;
mod waiting;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Measurements")]
struct Command {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Measure the server side by side with others
    Bench(run::Arguments),
    /// Show what the gate does, and draw it
    Demo(demo::Arguments),
    /// Load the server for long and watch its memory
    Soak(soak::Arguments),
}

fn main() -> ExitCode {
    match Command::parse().chore {
        Chore::Bench(arguments) => run::run(&root(), &arguments),
        Chore::Demo(arguments) => demo::run(&root(), &arguments),
        Chore::Soak(arguments) => soak::run(&root(), &arguments),
    }
}

/// The top of the source tree.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).map_or_else(|| package.to_path_buf(), Path::to_path_buf)
}
