//! Patterns by place, found by their text, or by the beginnings of the names they have.
//!
//! It owns the index. It must never compare a name with a pattern whose literal beginning is another.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt as _};

use super::Pattern;
use crate::name::TopicName;

/// Patterns, each with something that belongs to it.
#[derive(Debug)]
pub(crate) struct PatternTable<T> {
    entries: Vec<Option<(Pattern, T)>>,
    free: Vec<u32>,
    places: HashMap<Pattern, u32>,
    /// By what all names of a pattern begin with.
    beginnings: HashMap<Box<str>, Vec<u32>>,
    /// Lengths of those, with how many there are of each.
    lengths: BTreeMap<usize, usize>,
}

impl<T> PatternTable<T> {
    pub(crate) fn new() -> Self {
        let (places, beginnings) = (HashMap::new(), HashMap::new());
        Self { entries: Vec::new(), free: Vec::new(), places, beginnings, lengths: BTreeMap::new() }
    }

    /// How many there are, those out of sight included.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn find(&self, pattern: &Pattern) -> Option<u32> {
        self.places.get(pattern).copied()
    }

    pub(crate) fn get(&self, place: u32) -> Option<&(Pattern, T)> {
        self.entries.get(place as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.entries.get_mut(place as usize)?.as_mut().map(|(_, own)| own)
    }

    /// Adds a pattern that is not there.
    pub(crate) fn add(&mut self, pattern: Pattern, own: T) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.places.insert(pattern.clone(), place);
        match self.beginnings.get_mut(pattern.begin()) {
            Some(places) => places.push(place),
            None => {
                *self.lengths.entry(pattern.begin().len()).or_default() += 1;
                self.beginnings.insert(pattern.begin().into(), vec![place]);
            }
        }
        self.entries[place as usize] = Some((pattern, own));
        place
    }

    /// Takes a pattern out of sight: it is found no more. Its place is kept until it is removed.
    pub(crate) fn hide(&mut self, place: u32) {
        let Some((pattern, _)) = self.entries.get(place as usize).and_then(Option::as_ref) else { return };
        if self.places.get(pattern) != Some(&place) {
            return;
        }
        self.places.remove(pattern);
        let begin = pattern.begin();
        let Some(places) = self.beginnings.get_mut(begin) else { return };
        places.retain(|own| *own != place);
        if places.is_empty() {
            self.beginnings.remove(begin);
            if let Some(count) = self.lengths.get_mut(&begin.len()) {
                *count -= 1;
                if *count == 0 {
                    self.lengths.remove(&begin.len());
                }
            }
        }
    }

    /// Removes a pattern; its place may be given to another.
    pub(crate) fn remove(&mut self, place: u32) -> Option<T> {
        self.hide(place);
        let (_, own) = self.entries.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(own)
    }

    /// The places of the patterns in sight that a name may have, by its beginning.
    pub(crate) fn candidates<'a>(&'a self, name: &'a TopicName) -> impl Iterator<Item = u32> {
        let name = name.as_str();
        let begins = self.lengths.keys().take_while(move |length| **length <= name.len());
        let begins = begins.filter_map(move |length| name.get(..*length));
        begins.filter_map(move |begin| self.beginnings.get(begin)).flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_found_by_beginnings_and_leave_nothing() {
        let mut table = PatternTable::new();
        let texts = ["a.b.*", "a.*", "*.b", "a.b.c.*", "x.>", "*"];
        let places: Vec<u32> = texts.map(|text| table.add(Pattern::new(text).unwrap(), text)).into();
        let found = |table: &PatternTable<&'static str>, name: &str| {
            let name = TopicName::new(name).unwrap();
            let mut found: Vec<_> =
                table.candidates(&name).map(|place| table.get(place).unwrap().1).collect();
            found.sort_unstable();
            found
        };
        assert_eq!(found(&table, "a.b.c"), ["*", "*.b", "a.*", "a.b.*"]);
        assert_eq!(found(&table, "ä"), ["*", "*.b"], "a beginning ends between two characters");
        table.hide(places[0]);
        assert_eq!(found(&table, "a.b.c"), ["*", "*.b", "a.*"]);
        assert_eq!((table.len(), table.find(&Pattern::new("a.b.*").unwrap())), (6, None));
        // Asked for again while it is out of sight, it has another place.
        let again = table.add(Pattern::new("a.b.*").unwrap(), "again");
        assert_eq!(table.remove(places[0]), Some("a.b.*"));
        assert_eq!(found(&table, "a.b.c"), ["*", "*.b", "a.*", "again"]);
        [&places[1..], &[again]]
            .concat()
            .into_iter()
            .for_each(|place| assert!(table.remove(place).is_some()));
        assert!(table.len() == 0 && table.lengths.is_empty() && table.beginnings.is_empty());
    }
}
