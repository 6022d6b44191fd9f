//! A key: its name, how its value is written, what it means.
//!
//! It owns what is said once and used for flags, environment, file, help and documentation. It must
//! never read a value.

/// A key of the settings, with all that is said of it.
#[derive(Debug)]
pub struct Key {
    /// As it stands in a file. The flag has dashes for underscores, the variable is upper case.
    pub name: &'static str,
    /// Gives what is to be written, as help shows it.
    pub word: fn() -> String,
    /// What holds when nobody says anything, as a flag would say it; `None` if it must be said.
    pub default: Option<&'static str>,
    /// A value as in a file.
    pub example: &'static str,
    /// What it means: the first line stands in the help, all of them in the documentation.
    pub doc: &'static [&'static str],
    /// Whether a running server takes on a new value (HUP).
    pub reload: bool,
    /// Where it may stand.
    pub form: Form,
    /// Whether a text of the command line is a value.
    pub check: fn(&str) -> Result<(), String>,
}

/// Where a key may stand, and how its flag looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A flag with a value, a variable, a file.
    Value,
    /// A flag with a value that may be given several times, a variable, a file.
    Values,
    /// A flag without value, a variable, a file.
    Switch,
    /// The one argument that is no flag; a variable, a file.
    Argument,
    /// A file only.
    File,
}

impl Key {
    /// The first line: what it is, in a few words.
    pub fn help(&self) -> &'static str {
        self.doc.first().map_or("", |line| line.trim())
    }

    /// The flag, with its dashes.
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// The variable of the environment.
    pub fn variable(&self) -> String {
        format!("STAUNCH_{}", self.name.to_uppercase())
    }
}
