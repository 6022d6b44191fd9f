//! The program `staunch-load`: the load generator, the laboratory and the model, which `staunch load`,
//! `staunch lab` and `staunch model` start with their own words. The server is built without any of it.
//!
//! The program parses, wires and prints, and must never hold logic of its own.
#![forbid(unsafe_code)]

mod lab;
mod load;
mod model;
mod units;

use std::process::ExitCode;

use clap::{ArgAction, CommandFactory as _, Parser, Subcommand};
use staunch_program::outline::Outline;
use staunch_program::{end_at_a_panic, output};

/// The instruments of staunch: what `staunch load`, `staunch lab` and `staunch model` start.
#[derive(Parser)]
#[command(name = "staunch-load", version, max_term_width = 100, arg_required_else_help = true)]
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
    /// Offer load to a server over HTTP/1.1, plain or by TLS, and say what came of it
    Load(Box<load::Arguments>),
    /// Calculate what a host does when more is asked of it than it can do
    Model(Box<model::Arguments>),
    /// Server models in their plainest form, to be compared
    Lab(lab::Arguments),
    /// Print the outline of these commands; `staunch` makes manual pages and completions of it
    #[command(hide = true)]
    Outline,
}

/// Exit codes: 0 all went well, 1 it could not run, 2 it was called wrongly, 3 a threshold was crossed, 141
/// nobody reads what is printed.
fn main() -> ExitCode {
    end_at_a_panic();
    run(Command::parse().command).unwrap_or_else(|text| {
        output::explain(&text);
        ExitCode::FAILURE
    })
}

fn run(command: Subcommands) -> Result<ExitCode, String> {
    match command {
        Subcommands::Load(arguments) => load::run_command(*arguments),
        Subcommands::Model(arguments) => model::run(&arguments),
        Subcommands::Lab(arguments) => lab::run(&arguments),
        Subcommands::Outline => {
            let text = serde_json::to_string(&outlines()).map_err(|error| error.to_string())?;
            output::print(&text);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The commands as users type them.
fn outlines() -> Vec<Outline> {
    let mut command = Command::command().bin_name("staunch");
    command.build();
    command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(Outline::of).collect()
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;
    use clap_mangen::Man;

    use super::*;

    /// The commands as another program has them that was told their outline.
    fn told() -> clap::Command {
        let text = serde_json::to_string(&outlines()).unwrap();
        let outlines: Vec<Outline> = serde_json::from_str(&text).unwrap();
        outlines.into_iter().fold(Command::command(), |command, outline| {
            let name = outline.name().to_owned();
            command.mut_subcommand(name, |_| outline.command())
        })
    }

    /// The commands themselves, in the order in which those of an outline stand.
    fn own() -> clap::Command {
        let names = outlines().into_iter().map(|outline| outline.name().to_owned());
        names.fold(Command::command(), |command, name| command.mut_subcommand(name, |own| own))
    }

    /// Asserts that two texts are the same, and shows the first lines that are not.
    fn assert_same(what: &str, from_outline: &str, own: &str) {
        let pairs = from_outline.lines().zip(own.lines());
        assert_eq!(pairs.filter(|(one, other)| one != other).take(3).collect::<Vec<_>>(), [], "{what}");
        assert_eq!(from_outline.lines().count(), own.lines().count(), "{what}");
    }

    fn script(shell: Shell, mut command: clap::Command) -> String {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "staunch", &mut script);
        String::from_utf8(script).unwrap()
    }

    #[test]
    fn an_outline_has_all_that_completions_need() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert_same(&shell.to_string(), &script(shell, told()), &script(shell, own()));
        }
    }

    /// Manual pages of a command and of all below it.
    fn pages(command: &clap::Command) -> String {
        let mut text = Vec::new();
        let page = Man::new(command.clone());
        page.render_name_section(&mut text).unwrap();
        page.render_description_section(&mut text).unwrap();
        page.render_options_section(&mut text).unwrap();
        let usage = command.clone().render_usage();
        let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let text = String::from_utf8(text).unwrap() + &format!("{usage}\n{notes}\n");
        let shown = command.get_subcommands().filter(|inner| inner.get_name() != "help");
        text + &shown.map(pages).collect::<String>()
    }

    #[test]
    fn an_outline_has_all_that_manual_pages_need() {
        let built = |command: clap::Command| {
            let mut command = command.bin_name("staunch");
            command.build();
            command
        };
        let (told, own) = (built(told()), built(own()));
        for name in ["load", "model", "lab"] {
            let [told, own] = [&told, &own].map(|command| pages(command.find_subcommand(name).expect(name)));
            assert_same(name, &told, &own);
        }
    }
}
