//! The command `staunch`: parses, wires, prints. It must never hold logic of its own.
#![forbid(unsafe_code)]

mod certificates;
mod command_line;
mod config;
mod control;
mod doctor;
mod gate;
mod instruments;
mod manual;
mod password;
mod processes;
mod screen;
mod serve;
mod token;
mod top;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, Parser, Subcommand};
use staunch_program::{Failure, end_at_a_panic, output};

/// A web server for crowds: files served from prepared content, at full rate.
#[derive(Parser)]
#[command(name = "staunch", version, max_term_width = 100, arg_required_else_help = true)]
#[command(disable_help_flag = true, disable_help_subcommand = true, args_conflicts_with_subcommands = true)]
struct Command {
    // Always the short form: values and defaults stand on the line of their flag, not on lines of their own.
    /// Print help
    #[arg(long, short, global = true, display_order = 1000, action = ArgAction::HelpShort)]
    help: Option<bool>,

    /// Test the settings of `staunch serve`, say what is wrong, and serve nothing
    #[arg(long, short)]
    test_config: bool,

    /// File with the settings to test; without it that of the service, /etc/staunch/staunch.toml
    #[arg(long, short, value_name = "FILE", requires = "test_config")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Option<Subcommands>,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Serve a directory over HTTP and HTTPS
    Serve(Box<config::Arguments>),
    /// Pass requests on to an application, and keep it at its peak
    #[command(after_help = "staunch proxy explain [--admin ADDR] says how the limits of servers came to be.")]
    Proxy(Box<config::ProxyArguments>),
    /// Say how the limits of applications came to be in the last minute: `staunch proxy explain`
    #[command(hide = true)]
    ProxyExplain(top::Where),
    /// Show the effective settings, a file to begin with, or every key
    Config(config::ConfigCommand),
    /// Have a running server read its configuration again, and say what came of it
    Reload(control::Which),
    /// End a running server, with answers under way completed
    Stop(control::StopArguments),
    /// Put the program as it is now in the place of a running server
    Upgrade(control::Which),
    /// Say whether a server runs, and how it is
    Status(control::StatusArguments),
    /// Make the hash of a password for `basic_auth`
    Password(password::Arguments),
    /// Make a token for live data, or say what stands in one
    Token(token::TokenCommand),
    /// List certificates of authorities, of files and of this machine, or have one renewed
    Certificates(certificates::CertificatesCommand),
    /// Look after certificates beside a server, which starts this by itself
    #[command(hide = true)]
    CertificateAgent(processes::AgentArguments),
    /// Start the next server in an upgrade; a server starts this by itself
    #[command(hide = true)]
    UpgradeStarter(processes::StarterArguments),
    /// Look names up beside a server, which starts this by itself
    #[command(hide = true)]
    NameResolver(processes::ResolverArguments),
    /// Publish to the live data of a server
    Publish(staunch_publishing::Arguments),
    /// Offer load to a server over HTTP/1.1, plain or by TLS, and say what came of it
    Load(instruments::Words),
    /// Shed connections that cannot be served, before the kernel pays for them
    Gate(Box<gate::Arguments>),
    /// Calculate what a host does when more is asked of it than it can do
    Model(instruments::Words),
    /// Watch a running server
    Top(top::Arguments),
    /// Say what of this host is set well for a server, and what is not
    Doctor(doctor::Arguments),
    /// Server models in their plainest form, to be compared
    Lab(instruments::Words),
    /// Speak to other nodes of this LAN without IP: the lean transport, and its tools
    Dostp(staunch_dostp_tools::Arguments),
    /// Have the kernel itself serve a folder: khttpd, loaded, seen and unloaded
    Kernel(staunch_kmod::Arguments),
    /// Print completions for a shell
    Completions(manual::Completions),
    /// Write the manual pages
    Man(manual::Man),
}

/// Exit codes: 0 all went well, 1 it could not run, 2 it was called wrongly, 3 a threshold was crossed, a
/// setting of the host matters, or no server runs, 4 whether a server runs cannot be told, 78 the
/// configuration cannot be used, 126 and 127 another program cannot be started or is missing, 141 nobody
/// reads what is printed.
fn main() -> ExitCode {
    end_at_a_panic();
    let words = command_line::spelled(std::env::args_os().collect());
    let command =
        Command::try_parse_from(words).unwrap_or_else(|error| command_line::explained(error).exit());
    run(command).unwrap_or_else(|failure| {
        output::explain(&failure.text);
        ExitCode::from(failure.code)
    })
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    let done = |()| ExitCode::SUCCESS;
    match command.command {
        None if command.test_config => {
            config::test(&config::Loader::of_service(Vec::new(), command.config)).map(done)
        }
        None => {
            Command::command().error(ErrorKind::MissingSubcommand, "what is to be done? see --help").exit()
        }
        Some(Subcommands::Serve(arguments)) => serve::run(&arguments).map(done),
        Some(Subcommands::Proxy(arguments)) => serve::run_proxy(&arguments).map(done),
        Some(Subcommands::ProxyExplain(place)) => top::explain_proxy(&place).map(done),
        Some(Subcommands::Config(command)) => config::run(&command).map(done),
        Some(Subcommands::Reload(which)) => control::reload(&which),
        Some(Subcommands::Stop(arguments)) => control::stop(&arguments),
        Some(Subcommands::Upgrade(which)) => control::upgrade(&which),
        Some(Subcommands::Status(arguments)) => control::status(&arguments),
        Some(Subcommands::Password(arguments)) => password::run(&arguments).map(done),
        Some(Subcommands::Token(command)) => token::run(&command).map(done),
        Some(Subcommands::Certificates(command)) => certificates::run(&command),
        Some(Subcommands::CertificateAgent(arguments)) => arguments.run().map(done),
        Some(Subcommands::UpgradeStarter(arguments)) => arguments.run().map(done),
        Some(Subcommands::NameResolver(arguments)) => arguments.run().map(done),
        Some(Subcommands::Publish(arguments)) => staunch_publishing::run(&arguments).map(done),
        Some(Subcommands::Load(words)) => Err(instruments::start("load", &words)),
        Some(Subcommands::Gate(arguments)) => Ok(gate::run(*arguments)?),
        Some(Subcommands::Model(words)) => Err(instruments::start("model", &words)),
        Some(Subcommands::Top(arguments)) => top::run(&arguments),
        Some(Subcommands::Doctor(arguments)) => Ok(doctor::run(&arguments)?),
        Some(Subcommands::Lab(words)) => Err(instruments::start("lab", &words)),
        Some(Subcommands::Dostp(arguments)) => staunch_dostp_tools::run(arguments),
        Some(Subcommands::Kernel(arguments)) => staunch_kmod::run(&arguments),
        Some(Subcommands::Completions(wanted)) => {
            manual::completions(whole()?, &wanted);
            Ok(ExitCode::SUCCESS)
        }
        Some(Subcommands::Man(wanted)) => manual::man(whole()?, &wanted).map(done),
    }
}

/// This command with the outlines of those that another program has.
fn whole() -> Result<clap::Command, Failure> {
    instruments::filled(Command::command())
}
