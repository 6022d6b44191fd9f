//! Flags of `staunch serve`, made from the table of keys. It must never know a single key.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::error::Error;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use staunch_config::key::{Form, Key};

use super::loader::Loader;

/// What the command line says.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    /// Flags and the name of the file, to be read with the rest.
    pub(crate) loader: Loader,
    /// Whether the settings are only to be tested.
    pub(crate) test: bool,
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let command = command.arg(config_file()).arg(test_config());
        staunch_config::flags().fold(command, |command, (title, key)| command.arg(argument(title, key)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let flags =
            staunch_config::flags().filter_map(|(_, key)| Some((key.name.into(), given(matches, key)?)));
        let file = matches.get_one::<PathBuf>("config").cloned();
        Ok(Self { loader: Loader::new(flags.collect(), file), test: matches.get_flag("test_config") })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag that names the file of settings.
pub(crate) fn config_file() -> Arg {
    let help = "File with settings, see `staunch config`; flags and STAUNCH_... variables go before it";
    Arg::new("config")
        .long("config")
        .short('c')
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help(help)
}

/// The flag that asks for a test of the settings.
pub(crate) fn test_config() -> Arg {
    let help = "Test the settings, say what is wrong, and serve nothing";
    Arg::new("test_config").long("test-config").short('t').action(ArgAction::SetTrue).help(help)
}

fn argument(title: &'static str, key: &'static Key) -> Arg {
    let argument = Arg::new(key.name).help(key.help());
    if key.form == Form::Switch {
        return argument.help_heading(title).long(dashed(key)).action(ArgAction::SetTrue);
    }
    let check = key.check;
    let parser = move |text: &str| check(text).map(|()| text.to_owned());
    let argument = argument.value_name((key.word)()).value_parser(ValueParser::new(parser));
    let argument = match key.default {
        Some(default) if !default.is_empty() => argument.default_value(default),
        _ => argument,
    };
    if key.form == Form::Argument {
        return argument;
    }
    let argument = if key.form == Form::Values { argument.action(ArgAction::Append) } else { argument };
    let argument = if key.name == "listen" { argument.short('l') } else { argument };
    argument.help_heading(title).long(dashed(key))
}

fn dashed(key: &Key) -> String {
    key.name.replace('_', "-")
}

/// What was said about a key; `None` if nothing was.
fn given(matches: &ArgMatches, key: &Key) -> Option<String> {
    if matches.value_source(key.name) != Some(ValueSource::CommandLine) {
        return None;
    }
    if key.form == Form::Switch {
        return Some("on".into());
    }
    let values: Vec<&str> = matches.get_many::<String>(key.name)?.map(String::as_str).collect();
    Some(values.join(","))
}
