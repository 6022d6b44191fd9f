//! Flags of `staunch serve`, made from the table of keys. It must never know a single key.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser, ValueParser};
use clap::error::Error;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use staunch_config::key::{Form, Key};
use staunch_config::units::wired_server;

use super::Loader;

/// What the command line of `staunch serve` says.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) flags: Flags,

    /// Test the settings, say what is wrong, and serve nothing
    #[arg(long = "test-config", short = 't')]
    pub(crate) test: bool,
}

/// Flags for settings, and the file with others.
#[derive(Clone, Debug)]
pub(crate) struct Flags(pub(crate) Loader);

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let help = "File with settings; flags and STAUNCH_... variables go before it";
        let file = Arg::new("config").long("config").short('c').value_name("FILE").help(help);
        let command = command.arg(file.value_parser(value_parser!(PathBuf)));
        // What only applications need is told by `staunch proxy --help`: the help has to be read at once.
        let argument = |(title, key): (&'static str, &'static Key)| {
            argument(title, key).hide(title == PROXY_GROUP || key.name.starts_with(FASTCGI))
        };
        staunch_config::flags().map(argument).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let flags =
            staunch_config::flags().filter_map(|(_, key)| Some((key.name.into(), given(matches, key)?)));
        Ok(Self(Loader::new(flags.collect(), matches.get_one::<PathBuf>("config").cloned())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// What the command line of `staunch proxy` says: the flags of `staunch serve`, and servers in the place of a
/// folder.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProxyArguments {
    #[command(flatten)]
    pub(crate) flags: ProxyFlags,
}

/// Flags for settings, and the servers that answer.
#[derive(Clone, Debug)]
pub(crate) struct ProxyFlags(pub(crate) Loader);

/// The heading of the keys that only applications need.
const PROXY_GROUP: &str = "Proxy";
/// The beginning of keys of a site that only applications need.
const FASTCGI: &str = "fastcgi_";
/// The key of servers that answer.
const PROXY: &str = "proxy";

impl ProxyFlags {
    /// The keys that are flags of `staunch proxy`.
    fn keys() -> impl Iterator<Item = (&'static str, &'static Key)> {
        staunch_config::flags().filter(|(_, key)| key.name != PROXY)
    }
}

impl Args for ProxyFlags {
    fn augment_args(command: Command) -> Command {
        // No word stands for a server here, as `off` does in a file.
        let parser = Checked { check: |text| wired_server(text).map(drop), word: "SERVER".to_owned() };
        let help = "Servers of the application, such as 127.0.0.1:8000, 8000, unix:/run/app.sock or \
                    fastcgi:/run/php/php-fpm.sock (with --root)";
        let servers = Arg::new(PROXY).value_name("SERVER").help(help).required(true).num_args(1..);
        let command = command.arg(servers.value_parser(ValueParser::new(parser)));
        // The folder, which is the argument of `staunch serve`, is a flag where servers are.
        let flag = |(title, key): (&'static str, &'static Key)| match key.form {
            Form::Argument => {
                argument(title, key).default_value(None::<&'static str>).help_heading(title).long(dashed(key))
            }
            Form::Switch | Form::Value | Form::Values | Form::File => argument(title, key),
        };
        Self::keys().map(flag).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ProxyFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let servers: Vec<&str> =
            matches.get_many::<String>(PROXY).into_iter().flatten().map(String::as_str).collect();
        let flags = Self::keys().filter_map(|(_, key)| Some((key.name.into(), given(matches, key)?)));
        let flags = flags.chain([(PROXY.to_owned(), servers.join(","))]);
        Ok(Self(Loader::of_flags(flags.collect())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument(title: &'static str, key: &'static Key) -> Arg {
    let argument = Arg::new(key.name).help(key.help());
    if key.form == Form::Switch {
        return argument.help_heading(title).long(dashed(key)).action(ArgAction::SetTrue);
    }
    let parser = Checked { check: key.check, word: (key.word)() };
    let argument =
        argument.value_name((key.word)()).value_parser(ValueParser::new(parser)).hide_possible_values(true);
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

/// Checks a value as the table of keys does, and knows the words that a shell may complete.
#[derive(Clone)]
struct Checked {
    check: fn(&str) -> Result<(), String>,
    word: String,
}

impl TypedValueParser for Checked {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        let check = self.check;
        let parser = move |text: &str| check(text).map(|()| text.to_owned());
        parser.parse_ref(command, argument, value)
    }

    /// Of `on|off` both, of `N|auto` only `auto`: what is in upper case stands for a value.
    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let is_literal = |word: &&str| !word.chars().any(|one| one.is_uppercase() || ",./".contains(one));
        let mut words = self
            .word
            .split('|')
            .filter(is_literal)
            .map(|word| PossibleValue::new(word.to_owned()))
            .peekable();
        words.peek()?;
        Some(Box::new(words.collect::<Vec<_>>().into_iter()))
    }
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
