//! A file as tables with places: what stands there, what does not belong, and where.
//!
//! It must never know what a key means.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Likeness from which on a name is meant as a known one: a letter or two of difference.
const LIKENESS_MIN: f64 = 0.7;

/// Something wrong, and where.
#[derive(Debug)]
pub(super) struct Fault {
    /// In bytes from the start of the file.
    pub(super) place: usize,
    /// In a sentence.
    pub(super) text: String,
}

/// A table of the file, owning nothing.
pub(super) type Table<'t> = DeTable<'t>;

/// The outermost table, unless the text is no TOML.
pub(super) fn parse<'t>(text: &'t str, faults: &mut Vec<Fault>) -> Option<Table<'t>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    faults.extend(errors.iter().map(|error| {
        let place = error.span().map_or(0, |span| span.start);
        Fault { place, text: error.message().replace('\n', ", ") }
    }));
    errors.is_empty().then(|| table.into_inner())
}

/// Reads the keys of one table, and notes what is wrong.
pub(super) struct Keys<'a, 't, 'f> {
    table: &'a Table<'t>,
    faults: &'f mut Vec<Fault>,
    known: Vec<&'static str>,
}

impl<'a, 't, 'f> Keys<'a, 't, 'f> {
    pub(super) fn new(table: &'a Table<'t>, faults: &'f mut Vec<Fault>) -> Self {
        Self { table, faults, known: Vec::new() }
    }

    /// A whole number within this range.
    pub(super) fn number(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.find(key)?;
        self.whole(key, value, &range)
    }

    /// A factor above 0.
    pub(super) fn factor(&mut self, key: &'static str) -> Option<f64> {
        let value = self.find(key)?;
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(integer) => integer.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        let factor = number.filter(|factor: &f64| *factor > 0.0 && factor.is_finite());
        if factor.is_none() {
            self.blame(value, format!("{key}: write a factor above 0, such as `{key} = 0.1`"));
        }
        factor
    }

    /// A number or a list of them, with the place of each.
    pub(super) fn numbers(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<Vec<(usize, u64)>> {
        let items = self.items(key)?;
        let number = |value| self.whole(key, value, &range).map(|number| (value.span().start, number));
        items.into_iter().map(number).collect()
    }

    /// A word or a list of them, with the place of each.
    pub(super) fn words(&mut self, key: &'static str, example: &str) -> Option<Vec<(usize, &'a str)>> {
        let items = self.items(key)?;
        let mut words = Vec::new();
        for value in items {
            match value.get_ref().as_str() {
                Some(word) => words.push((value.span().start, word)),
                None => self.blame(value, format!("{key}: write a word such as `{key} = \"{example}\"`")),
            }
        }
        Some(words)
    }

    /// Tables of an array `[[key]]`, with their places.
    pub(super) fn tables(&mut self, key: &'static str) -> Vec<(usize, &'a Table<'t>)> {
        let Some(value) = self.find(key) else { return Vec::new() };
        let Some(items) = value.get_ref().as_array() else {
            self.blame(value, format!("{key}: write `[[{key}]]`, and its keys below"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items {
            match item.get_ref().as_table() {
                Some(table) => tables.push((item.span().start, table)),
                None => self.blame(item, format!("{key}: write `[[{key}]]`, and its keys below")),
            }
        }
        tables
    }

    /// Refuses each key that nobody has asked for.
    pub(super) fn refuse_others(self) {
        for (name, _) in self.table {
            let word = name.get_ref().as_ref();
            if !self.known.contains(&word) {
                let text = unknown("key", word, self.known.iter().copied());
                self.faults.push(Fault { place: name.span().start, text });
            }
        }
    }

    fn find(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'t>>> {
        self.known.push(key);
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// The value of a key, or each of a list that is not empty.
    fn items(&mut self, key: &'static str) -> Option<Vec<&'a Spanned<DeValue<'t>>>> {
        let value = self.find(key)?;
        match value.get_ref().as_array() {
            None => Some(vec![value]),
            Some(items) if items.is_empty() => {
                self.blame(value, format!("{key}: the list is empty"));
                None
            }
            Some(items) => Some(items.iter().collect()),
        }
    }

    fn whole(&mut self, key: &str, value: &Spanned<DeValue<'_>>, range: &RangeInclusive<u64>) -> Option<u64> {
        let number = value.get_ref().as_integer().and_then(|integer| {
            u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
        });
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (start, end) = (range.start(), range.end());
            self.blame(value, format!("{key}: write a whole number from {start} to {end}"));
        }
        number
    }

    fn blame(&mut self, value: &Spanned<DeValue<'_>>, text: String) {
        self.faults.push(Fault { place: value.span().start, text });
    }
}

/// A sentence about a name that is not known, with the nearest that is.
pub(super) fn unknown<'k>(kind: &str, name: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(name, known);
    let nearest = known.clone().map(|known| (likeness(known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, known)) if likeness >= LIKENESS_MIN => {
            format!("unknown {kind} `{name}` (did you mean `{known}`?)")
        }
        _ => format!("unknown {kind} `{name}` (there are {})", known.collect::<Vec<_>>().join(", ")),
    }
}

/// Line and column of a place, both from 1; the column counts characters.
pub(super) fn line_and_column(text: &str, place: usize) -> (usize, usize) {
    let before = text.get(..place).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
