//! A flag of a command, or a word without one, as data.

use clap::builder::{PossibleValue, PossibleValuesParser, Resettable, StyledStr};
use clap::{Arg, ArgAction, Command, ValueHint};
use serde::{Deserialize, Serialize};

/// A flag, or a word that stands by its place.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Flag {
    id: String,
    short: Option<char>,
    long: Option<String>,
    aliases: Vec<String>,
    help: Option<String>,
    heading: Option<String>,
    display_order: usize,
    values: Option<Values>,
    /// Whether the flag may stand several times.
    repeats: bool,
    required: bool,
    /// The flags it cannot stand beside.
    conflicts: Vec<String>,
}

/// The value behind a flag.
#[derive(Debug, Serialize, Deserialize)]
struct Values {
    names: Vec<String>,
    least: usize,
    most: usize,
    defaults: Vec<String>,
    possible: Vec<(String, Option<String>)>,
    /// Whether pages leave the possible ones out, since the names say them.
    possible_hidden: bool,
    defaults_hidden: bool,
    /// Files, folders and the like, by clap's word.
    hint: String,
}

/// Whether a flag is the command's own, and no secret.
pub(super) fn is_told(flag: &Arg) -> bool {
    !flag.is_global_set() && !flag.is_hide_set()
}

impl Flag {
    pub(super) fn of(command: &Command, flag: &Arg) -> Self {
        let conflicts = command.get_arg_conflicts_with(flag).into_iter().filter(|other| is_told(other));
        Self {
            id: flag.get_id().to_string(),
            short: flag.get_short(),
            long: flag.get_long().map(str::to_owned),
            aliases: flag.get_visible_aliases().unwrap_or_default().into_iter().map(str::to_owned).collect(),
            help: flag.get_help().map(ToString::to_string),
            heading: flag.get_help_heading().map(str::to_owned),
            display_order: flag.get_display_order(),
            values: Values::of(flag),
            repeats: matches!(flag.get_action(), ArgAction::Append | ArgAction::Count),
            required: flag.is_required_set(),
            conflicts: conflicts.map(|other| other.get_id().to_string()).collect(),
        }
    }

    pub(super) fn argument(self) -> Arg {
        let mut argument = Arg::new(self.id)
            .short(self.short)
            .long(Resettable::from(self.long.map(Into::into)))
            .visible_aliases(self.aliases)
            .help(styled(self.help))
            .help_heading(Resettable::from(self.heading.map(Into::into)))
            .display_order(self.display_order)
            .required(self.required)
            .conflicts_with_all(self.conflicts);
        argument = match (&self.values, self.repeats) {
            (None, false) => argument.action(ArgAction::SetTrue),
            (None, true) => argument.action(ArgAction::Count),
            (Some(_), false) => argument.action(ArgAction::Set),
            (Some(_), true) => argument.action(ArgAction::Append),
        };
        match self.values {
            Some(values) => values.behind(argument),
            None => argument,
        }
    }
}

fn styled(sentence: Option<String>) -> Resettable<StyledStr> {
    Resettable::from(sentence.map(StyledStr::from))
}

impl Values {
    fn of(flag: &Arg) -> Option<Self> {
        let count = flag.get_num_args().filter(|count| count.takes_values())?;
        let names = flag.get_value_names().unwrap_or_default();
        let told =
            |value: &PossibleValue| (value.get_name().to_owned(), value.get_help().map(ToString::to_string));
        let possible = flag.get_possible_values();
        Some(Self {
            names: names.iter().map(ToString::to_string).collect(),
            least: count.min_values(),
            most: count.max_values(),
            defaults: flag.get_default_values().iter().map(|value| value.to_string_lossy().into()).collect(),
            possible: possible.iter().filter(|value| !value.is_hide_set()).map(told).collect(),
            possible_hidden: flag.is_hide_possible_values_set(),
            defaults_hidden: flag.is_hide_default_value_set(),
            hint: format!("{:?}", flag.get_value_hint()),
        })
    }

    fn behind(self, argument: Arg) -> Arg {
        let possible =
            self.possible.into_iter().map(|(name, help)| PossibleValue::new(name).help(styled(help)));
        let possible: Vec<PossibleValue> = possible.collect();
        let argument = argument
            .value_names(self.names)
            .num_args(self.least..=self.most)
            .default_values(self.defaults)
            .hide_possible_values(self.possible_hidden)
            .hide_default_value(self.defaults_hidden)
            // A word of another version is no hint.
            .value_hint(self.hint.parse::<ValueHint>().unwrap_or_default());
        if possible.is_empty() {
            argument
        } else {
            argument.value_parser(PossibleValuesParser::new(possible))
        }
    }
}
