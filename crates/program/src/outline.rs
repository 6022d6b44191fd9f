//! The outline of a command: its words as data, so that one program writes manual pages and completions of
//! another.
//!
//! An outline owns what those need: names, flags, sentences, usage. Order of calls: [`Outline::of`] in the
//! program that has the command, [`Outline::command`] in the one that writes. It must never be used to parse:
//! values are not checked by it.

mod flag;

use clap::Command;
use serde::{Deserialize, Serialize};

use flag::{Flag, is_told};

/// A command with its flags and its subcommands.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outline {
    name: String,
    about: Option<String>,
    after_help: Option<String>,
    usage: String,
    flags: Vec<Flag>,
    subcommands: Vec<Outline>,
}

impl Outline {
    /// The outline of a command that was built. Flags that it shares with every other command are left out,
    /// and what is hidden as well.
    pub fn of(command: &Command) -> Self {
        let flags = command.get_arguments().filter(|flag| is_told(flag));
        let is_shown = |inner: &&Command| !inner.is_hide_set() && inner.get_name() != "help";
        let shown = command.get_subcommands().filter(is_shown);
        Self {
            name: command.get_name().to_owned(),
            about: command.get_about().map(ToString::to_string),
            after_help: command.get_after_help().map(ToString::to_string),
            usage: command.clone().render_usage().to_string().trim_start_matches("Usage:").trim().to_owned(),
            flags: flags.map(|flag| Flag::of(command, flag)).collect(),
            subcommands: shown.map(Self::of).collect(),
        }
    }

    /// The name of the command.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The command, as far as manual pages and completions know it.
    pub fn command(self) -> Command {
        let mut command = Command::new(self.name).override_usage(self.usage);
        if let Some(about) = self.about {
            command = command.about(about);
        }
        if let Some(after_help) = self.after_help {
            command = command.after_help(after_help);
        }
        command
            .args(self.flags.into_iter().map(Flag::argument))
            .subcommands(self.subcommands.into_iter().map(Self::command))
    }
}
