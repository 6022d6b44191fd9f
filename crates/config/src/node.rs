//! Values as they were written: from a file, a flag or the environment, not yet understood.
//!
//! It owns the way from TOML to [`Node`] and back. It must never know a key.

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

/// A value as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What stands there.
    pub kind: ValueKind,
    /// Where in the file it begins, in bytes; `None` for what came another way.
    pub place: Option<usize>,
}

/// What a value can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueKind {
    /// A string, or any value of a flag or of the environment.
    Text(String),
    /// A string that must not be shown.
    Secret(String),
    /// A number, in decimal digits where it is a whole one.
    Number(String),
    /// `true` or `false`.
    Switch(bool),
    /// A date, a time.
    Other,
    /// Values in order.
    List(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<(Name, Node)>),
}

/// The name of a value in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// What it is called.
    pub text: String,
    /// Where in the file it begins, in bytes.
    pub place: Option<usize>,
}

impl Node {
    /// A value that stands in no file.
    pub fn new(kind: ValueKind) -> Self {
        Self { kind, place: None }
    }

    /// A text that stands in no file.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(ValueKind::Text(text.into()))
    }

    /// A whole number that stands in no file.
    pub fn number(number: impl ToString) -> Self {
        Self::new(ValueKind::Number(number.to_string()))
    }

    fn shift(&mut self, by: usize) {
        self.place = self.place.map(|place| place + by);
        match &mut self.kind {
            ValueKind::List(items) => items.iter_mut().for_each(|item| item.shift(by)),
            ValueKind::Table(entries) => shift(entries, by),
            ValueKind::Text(_)
            | ValueKind::Secret(_)
            | ValueKind::Number(_)
            | ValueKind::Switch(_)
            | ValueKind::Other => {}
        }
    }

    /// What people call what stands there.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            ValueKind::Text(text) => format!("{text:?}"),
            ValueKind::Secret(_) => "a secret".into(),
            ValueKind::Number(number) => number.clone(),
            ValueKind::Switch(switch) => switch.to_string(),
            ValueKind::Other => "a date or time".into(),
            ValueKind::List(_) => "a list".into(),
            ValueKind::Table(_) => "a table".into(),
        }
    }

    /// As TOML, on one line. Secrets are `"***"`.
    pub fn to_toml(&self) -> String {
        match &self.kind {
            ValueKind::Text(text) => quote(text),
            ValueKind::Secret(_) | ValueKind::Other => quote("***"),
            ValueKind::Number(number) => number.clone(),
            ValueKind::Switch(switch) => switch.to_string(),
            ValueKind::List(items) => {
                let items: Vec<String> = items.iter().map(Self::to_toml).collect();
                format!("[{}]", items.join(", "))
            }
            ValueKind::Table(entries) if entries.is_empty() => "{}".into(),
            ValueKind::Table(entries) => {
                let entry =
                    |(name, value): &(Name, Self)| format!("{} = {}", bare(&name.text), value.to_toml());
                let entries: Vec<String> = entries.iter().map(entry).collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }
}

/// Where a file is not TOML, in bytes, and why.
pub(crate) type Misprint = (Option<usize>, String);

/// A file, as the entries of its outermost table.
///
/// # Errors
/// Each place at which it is not TOML, with what is wrong there.
pub(crate) fn parse(text: &str) -> Result<Vec<(Name, Node)>, Vec<Misprint>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(entries(table.into_inner()));
    }
    if let Some(place) = foreign_line(text) {
        let what = "this is no TOML but looks like a file of nginx or Caddy: `staunch config example` shows \
                    settings";
        return Err(vec![(Some(place), what.to_owned())]);
    }
    let fault = |error: &Error| {
        let place = error.span().map(|span| span.start);
        let unquoted = place.and_then(|place| unquoted(text, place));
        (place, unquoted.unwrap_or_else(|| error.message().replace('\n', ", ")))
    };
    let mut misprints: Vec<Misprint> = errors.iter().map(fault).collect();
    misprints.dedup_by(|later, earlier| later.1 == earlier.1 && later.1.starts_with(WRITE));
    Err(misprints)
}

/// How a misprint begins that says what is meant.
const WRITE: &str = "write `";

/// Where a line stands that ends as those of nginx and Caddy do, and is no part of TOML: with `;`, or a word
/// and `{`.
fn foreign_line(text: &str) -> Option<usize> {
    let is_foreign = |line: &str| {
        let line = line.trim();
        !line.starts_with('#') && !line.contains('=') && (line.ends_with(';') || line.ends_with('{'))
    };
    let line = text.lines().find(|line| is_foreign(line))?;
    Some(line.as_ptr() as usize - text.as_ptr() as usize)
}

/// The setting meant by `key = word` at a place, whose word lacks its quotes.
fn unquoted(text: &str, place: usize) -> Option<String> {
    let start = text.get(..place)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next()?;
    let (key, value) = line.split_once('=')?;
    let value = value.split(" #").next().unwrap_or_default().trim();
    let is_word = value.starts_with(|first: char| first.is_alphanumeric() || "/.:~$".contains(first))
        && !value.contains(['"', '\'', '[', '{']);
    let value = match value {
        "yes" | "on" | "True" => "true".to_owned(),
        "no" | "off" | "False" => "false".to_owned(),
        value => quote(value),
    };
    is_word.then(|| format!("{WRITE}{} = {value}`", key.trim()))
}

/// The entries of a file that stands behind others: their places are `by` bytes further on.
pub(crate) fn shift(entries: &mut [(Name, Node)], by: usize) {
    for (name, node) in entries {
        name.place = name.place.map(|place| place + by);
        node.shift(by);
    }
}

fn entries(table: DeTable<'_>) -> Vec<(Name, Node)> {
    let mut entries: Vec<(Name, Node)> = table
        .into_iter()
        .map(|(name, value)| {
            let place = Some(name.span().start);
            (Name { text: name.into_inner().into_owned(), place }, node(value))
        })
        .collect();
    entries.sort_by_key(|(name, _)| name.place);
    entries
}

fn node(value: Spanned<DeValue<'_>>) -> Node {
    let place = Some(value.span().start);
    let kind = match value.into_inner() {
        DeValue::String(text) => ValueKind::Text(text.into_owned()),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => ValueKind::Number(number.to_string()),
            Err(_) => ValueKind::Number(integer.as_str().to_owned()),
        },
        DeValue::Float(float) => ValueKind::Number(float.as_str().to_owned()),
        DeValue::Boolean(switch) => ValueKind::Switch(switch),
        DeValue::Datetime(_) => ValueKind::Other,
        DeValue::Array(items) => ValueKind::List(items.into_iter().map(node).collect()),
        DeValue::Table(table) => ValueKind::Table(entries(table)),
    };
    Node { kind, place }
}

/// A basic string of TOML.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A name of TOML, quoted where it must be.
fn bare(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { quote(name) }
}

/// Line and column of a place, both from 1; the column counts characters.
pub(crate) fn line_and_column(text: &str, place: usize) -> (usize, usize) {
    let before = text.get(..place).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let text = "a = [1, true, \"x\\\"\\u0007\"]\n\"b c\" = { d = 0x10, \"é\" = \"\" }\n";
        let entries = parse(text).expect("TOML");
        let written: Vec<String> = entries
            .iter()
            .map(|(name, value)| format!("{} = {}", bare(&name.text), value.to_toml()))
            .collect();
        assert_eq!(written, ["a = [1, true, \"x\\\"\\u0007\"]", "\"b c\" = { d = 16, \"é\" = \"\" }"]);
        assert_eq!(parse(&written.join("\n")).expect("TOML").len(), 2);
    }

    #[test]
    fn places_count_characters() {
        assert_eq!(line_and_column("", 0), (1, 1));
        assert_eq!(line_and_column("é = 1\nab = 2", 8), (2, 2));
        assert_eq!(line_and_column("a\n", 99), (2, 1));
    }

    #[test]
    fn a_fault_of_toml_has_its_place() {
        let faults = parse("a = 1\nb = = 2\n").expect_err("no TOML");
        assert!(faults.iter().any(|(place, _)| *place == Some(10)), "{faults:?}");
    }

    #[test]
    fn what_is_meant_is_said_of_what_is_no_toml() {
        let table = [
            ("listen = 127.0.0.1:8080\n", "write `listen = \"127.0.0.1:8080\"`"),
            ("a = 1\nlisting = yes\n", "write `listing = true`"),
            ("root = /srv/site # here\n", "write `root = \"/srv/site\"`"),
            ("server {\n  listen 80;\n}\n", "looks like a file of nginx or Caddy"),
            ("# a site\nexample.org {\n  root * /srv\n}\n", "looks like a file of nginx or Caddy"),
        ];
        for (text, expected) in table {
            let said = parse(text).expect_err("no TOML");
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].1.contains(expected), "{said:?}");
        }
        let said = parse("a = [1\n").expect_err("no TOML");
        assert!(!said[0].1.starts_with(WRITE), "{said:?}");
    }
}
