//! The project's own chores, run as `cargo xtask NAME`.
//!
//! It owns what is done to the source tree from outside: the check of the house's rules, the installation of
//! tools, packages, emulated machines. It must never be linked into the server, and uses no crate of it.
//! Measurements stand in `crates/bench`.
#![forbid(unsafe_code)]

mod buffers;
mod container;
mod count;
mod deb;
mod guest;
mod install;
mod licences;
mod measure;
mod papers;
mod running;
mod stress;
mod suites;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Command {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check the house's rules: arrows between crates, lengths, names, documentation
    Tidy {
        /// Another tree than this one (a canary, for instance)
        tree: Option<PathBuf>,
    },
    /// Install what a task needs and this machine has not (Debian packages, cargo tools)
    Install(install::Arguments),
    /// Judge licences, sources and doubled versions of dependencies by deny.toml
    Licences,
    /// Measure the server side by side with others
    Bench(measure::Arguments),
    /// Show what the gate does, and draw it
    Demo(measure::Arguments),
    /// Run a script in an emulated machine, under a kernel of Debian's
    Guest(guest::Arguments),
    /// Count instructions per request of the kernel's modules, in an emulated machine
    Count(count::Arguments),
    /// Count where the buffers of a web server's host come from, in an emulated machine or here
    Buffers(buffers::Arguments),
    /// Make the Debian package
    Deb(deb::Arguments),
    /// Make the root of a container image, with a static program
    Container(container::Arguments),
    /// Load the server for long and watch its memory
    Soak(measure::Arguments),
    /// Render the figures of the five papers beside ours: docs/papers.md
    Papers(papers::Arguments),
    /// Run every test, several suites at a time
    Test(suites::Arguments),
    /// Run the tests again and again while every processor is kept busy by something else
    StressTests(stress::Arguments),
}

fn main() -> ExitCode {
    match Command::parse().chore {
        Chore::Tidy { tree } => tidy::run(&tree.unwrap_or_else(root)),
        Chore::Install(arguments) => install::run(&root(), &arguments),
        Chore::Licences => licences::run(&root()),
        Chore::Bench(arguments) => measure::run(&root(), "bench", &arguments),
        Chore::Demo(arguments) => measure::run(&root(), "demo", &arguments),
        Chore::Guest(arguments) => guest::run(&root(), &arguments),
        Chore::Count(arguments) => count::run(&root(), &arguments),
        Chore::Buffers(arguments) => buffers::run(&root(), &arguments),
        Chore::Deb(arguments) => deb::run(&root(), &arguments),
        Chore::Container(arguments) => container::run(&root(), &arguments),
        Chore::Papers(arguments) => papers::run(&root(), &chores(), &arguments),
        Chore::StressTests(arguments) => stress::run(&root(), &arguments),
        Chore::Test(arguments) => suites::run(&root(), &arguments),
        Chore::Soak(arguments) => measure::run(&root(), "soak", &arguments),
    }
}

/// The names of all chores.
fn chores() -> Vec<String> {
    Command::command().get_subcommands().map(|chore| chore.get_name().to_owned()).collect()
}

/// The top of the source tree.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).map_or_else(|| package.to_path_buf(), Path::to_path_buf)
}
