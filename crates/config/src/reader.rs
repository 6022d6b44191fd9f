//! A table of a file with the layers above it: which of them says something about a key, and what is wrong.
//!
//! It owns the precedence: flag, environment, file, default. It must never know what a key means.

use crate::foreign;
use crate::key::{Form, Key};
use crate::node::{Name, Node};
use crate::syntax::Syntax;

/// Likeness from which on a name is meant as a known one: a letter or two of difference.
const LIKENESS_MIN: f64 = 0.7;

/// The layer that a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The default: no layer says anything.
    Default,
    /// The file, at this place in bytes.
    File(usize),
    /// A variable of the environment.
    Environment,
    /// The command line.
    Flag,
}

/// A value that was read.
#[derive(Debug, Clone)]
pub struct GivenKey {
    /// The key that has this value.
    pub key: &'static Key,
    /// The value as it would be written.
    pub value: Node,
    /// The layer that it comes from.
    pub origin: Origin,
}

/// Something wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key, or nothing.
    pub key: String,
    /// The layer that the fault is in.
    pub origin: Origin,
    /// Where in the file, in bytes.
    pub place: Option<usize>,
    /// In a sentence.
    pub text: String,
}

/// Reads the keys of one table.
#[derive(Debug)]
pub struct Reader<'a> {
    flags: &'a [(String, String)],
    environment: &'a [(String, String)],
    table: &'a [(Name, Node)],
    /// Where the table begins, in bytes; `None` for the outermost.
    pub place: Option<usize>,
    /// What the table around this one says of keys: it holds for those that this one does not say.
    inherited: Vec<(&'static str, Node)>,
    /// What was read so far, inherited values aside.
    pub entries: Vec<GivenKey>,
    /// What is wrong so far.
    pub faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    /// The outermost table, with flags by the name of their key and variables by their own.
    pub fn new(
        flags: &'a [(String, String)],
        environment: &'a [(String, String)],
        table: &'a [(Name, Node)],
    ) -> Self {
        Self { flags, environment, ..Self::of_table(table, None) }
    }

    /// A table within, which no flag and no variable reaches; it begins at `place`.
    pub fn of_table(table: &'a [(Name, Node)], place: Option<usize>) -> Self {
        let (inherited, entries, faults) = (Vec::new(), Vec::new(), Vec::new());
        Self { flags: &[], environment: &[], table, place, inherited, entries, faults }
    }

    /// For those of these keys that this table does not say, what the one around it says holds from now on.
    /// Of keys that say one thing in several ways (`either`) none is inherited if this table says one of
    /// them.
    pub fn inherit(&mut self, around: &Reader<'_>, keys: &'static [Key], either: &[&str]) {
        let says_one = self.table.iter().any(|(name, _)| either.contains(&name.text.as_str()));
        let is_left = |key: &&Key| !says_one || !either.contains(&key.name);
        let said = |key: &'static Key| Some((key.name, around.find(key).or_else(|| default(key))?.0));
        self.inherited.extend(keys.iter().filter(is_left).filter_map(said));
    }

    /// The value of a key by its highest layer, noted with its origin; `None` if it is wrong.
    pub fn value<S: Syntax>(&mut self, key: &'static Key) -> Option<S::Value> {
        let inherited = self.inherited.iter().find(|(name, _)| *name == key.name);
        if let Some((_, node)) = inherited.filter(|_| self.find(key).is_none()) {
            // What is wrong with it was told where it stands.
            return S::read(node, &mut Vec::new());
        }
        let Some((node, origin)) = self.find(key).or_else(|| default(key)) else {
            let text = format!("missing: write for example `{} = {}`", key.name, key.example);
            let place = self.place;
            self.faults.push(Fault {
                key: key.name.into(),
                origin: Origin::File(place.unwrap_or(0)),
                place,
                text,
            });
            return None;
        };
        let mut complaints = Vec::new();
        let value = S::read(&node, &mut complaints);
        for complaint in complaints {
            let text = match origin {
                Origin::File(_) if !complaint.is_explained => {
                    format!("{complaint}; write for example `{} = {}`", key.name, key.example)
                }
                _ => complaint.to_string(),
            };
            let place = complaint.place.or(node.place);
            self.faults.push(Fault { key: key.name.into(), origin, place, text });
        }
        let value = value?;
        self.entries.push(GivenKey { key, value: S::write(&value), origin });
        Some(value)
    }

    /// Blames a key that was read already.
    pub fn refuse(&mut self, key: &str, text: String) {
        let entry = self.entries.iter().rfind(|entry| entry.key.name == key);
        let origin = entry.map_or(Origin::Default, |entry| entry.origin);
        let place = match origin {
            Origin::File(place) => Some(place),
            _ => None,
        };
        let place = place.or(self.place);
        let origin = match (origin, self.place) {
            (Origin::Default, Some(place)) => Origin::File(place),
            _ => origin,
        };
        self.faults.push(Fault { key: key.into(), origin, place, text });
    }

    /// Refuses each name of the table that is none of these. `elsewhere` are keys of other tables, and where
    /// they stand, in words.
    pub fn refuse_unknown(&mut self, known: &[&'static [Key]], elsewhere: &[(&'static [Key], &str)]) {
        for (name, _) in self.table {
            let mut all = known.iter().flat_map(|keys| keys.iter());
            if all.any(|key| key.name == name.text) || is_section(&name.text) {
                continue;
            }
            let is_of = |keys: &[Key]| keys.iter().any(|key| key.name == name.text);
            let text = match elsewhere.iter().find(|(keys, _)| is_of(keys)) {
                Some((_, place)) => format!("`{}` {place}", name.text),
                None => unknown(&name.text, known.iter().flat_map(|keys| keys.iter())),
            };
            let place = name.place;
            let origin = Origin::File(place.unwrap_or(0));
            self.faults.push(Fault { key: String::new(), origin, place, text });
        }
    }

    /// The first of these keys that somebody set, and who.
    pub fn first_said(&self, keys: &'static [Key]) -> Option<(&'static Key, Origin)> {
        keys.iter().find_map(|key| self.find(key).map(|(_, origin)| (key, origin)))
    }

    /// Whether the table itself says something about a key.
    pub fn table_says(&self, name: &str) -> bool {
        self.table.iter().any(|(said, _)| said.text == name)
    }

    fn find(&self, key: &Key) -> Option<(Node, Origin)> {
        if key.form != Form::File {
            if let Some((_, text)) = self.flags.iter().find(|(name, _)| name == key.name) {
                return Some((Node::text(text), Origin::Flag));
            }
            let variable = key.variable();
            let is_said = |(name, text): &&(String, String)| *name == variable && !text.is_empty();
            if let Some((_, text)) = self.environment.iter().find(is_said) {
                return Some((Node::text(text), Origin::Environment));
            }
        }
        let (name, node) = self.table.iter().find(|(name, _)| name.text == key.name)?;
        Some((node.clone(), Origin::File(name.place.unwrap_or(0))))
    }
}

/// Names of tables that are read by who knows them, not by a key.
fn is_section(name: &str) -> bool {
    name == "site" || name == "path"
}

fn default(key: &Key) -> Option<(Node, Origin)> {
    key.default.map(|text| (Node::text(text), Origin::Default))
}

/// A sentence about a name that is not known, with what is written here instead or the nearest that is.
pub(crate) fn unknown<'k>(name: &str, known: impl Iterator<Item = &'k Key>) -> String {
    if let Some(hint) = foreign::hint(name) {
        return format!("unknown key `{name}`: {hint}");
    }
    let likeness = |key: &Key| strsim::normalized_damerau_levenshtein(name, key.name);
    let nearest = known.map(|key| (likeness(key), key.name)).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, key)) if likeness >= LIKENESS_MIN => {
            format!("unknown key `{name}` (did you mean `{key}`?)")
        }
        _ => format!("unknown key `{name}`"),
    }
}
