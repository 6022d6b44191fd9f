//! Versions of content to which later ones are told as differences (RFC 9842), and these differences.
//!
//! This module owns which versions are known: those of one family, a path or a pattern of paths, in the
//! order in which they came. What is held of them stands in the store, under keys that are no paths, and
//! gives way there before all else. It must never be asked by a worker, who looks into the store alone.
//!
//! Order of calls: `note` when content was taken in, `keep_former` when it is no longer current, `make` when
//! a difference was asked for.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use staunch_dictionary::{Hash, level_for};

use super::entry::{Content, Entry, Kind, KnownVersion, OfferedDictionary, Representation};
use super::freshness::Freshness;
use super::prepare;
use super::spare_keys::{version_key, write_difference_key};
use super::store::{Room, Store};
use crate::limits::{
    DICTIONARY_FAMILIES_MAX, DIFFERENCES_PER_FAMILY_MAX, VERSIONS_OF_PATH_MAX, VERSIONS_OF_PATTERN_MAX,
};
use crate::rules::dictionary::DictionaryRule;

/// Bytes of a dictionary's hash in the entity tag of a difference.
const TAGGED_BYTES: usize = 8;

/// The known versions of each family.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    families: Mutex<HashMap<Box<[u8]>, Family>>,
}

#[derive(Debug, Default)]
struct Family {
    /// In the order in which they came, the last one behind.
    versions: VecDeque<Hash>,
    /// Keys of the differences that were made.
    differences: Vec<Arc<[u8]>>,
}

impl Versions {
    /// Content was taken in: its version is known, and the oldest is forgotten where there are too many.
    pub(crate) fn note(&self, store: &Store, entry: &Entry) {
        let Some((rule, told)) = dictionary_of(entry) else { return };
        let family = rule.family(&entry.key);
        let most = if rule.has_pattern() { VERSIONS_OF_PATTERN_MAX } else { VERSIONS_OF_PATH_MAX };
        let mut families = self.lock();
        make_room(&mut families, family, store);
        let known = families.entry(family.into()).or_default();
        if known.versions.back() != Some(&told.hash) {
            known.versions.retain(|hash| *hash != told.hash);
            known.versions.push_back(told.hash);
            known.drop_differences(store);
        }
        while known.versions.len() > most {
            let Some(oldest) = known.versions.pop_front() else { break };
            store.remove(&version_key(family, &oldest));
        }
        put(
            store,
            entry,
            &version_key(family, &told.hash),
            Kind::Version(KnownVersion::Current(Arc::clone(&entry.key))),
        );
    }

    /// Content is no longer current: its bytes are kept as long as there is room.
    pub(crate) fn keep_former(&self, store: &Store, entry: &Entry) {
        let Some((rule, told)) = dictionary_of(entry) else { return };
        let Some(identity) = entry.content().and_then(Content::identity) else { return };
        let family = rule.family(&entry.key);
        let families = self.lock();
        if families.get(family).is_some_and(|known| known.versions.contains(&told.hash)) {
            let former = Kind::Version(KnownVersion::Former(identity.clone()));
            put(store, entry, &version_key(family, &told.hash), former);
        }
    }

    /// Makes the difference between a version and what is current at a path, and puts it into the store;
    /// where it would not be shorter than what is sent without, that is noted there.
    pub(crate) fn make(&self, store: &Store, path: &[u8], dictionary: &Hash) {
        let Some(entry) = store.get(path) else { return };
        let Some(((rule, told), content)) = dictionary_of(&entry).zip(entry.content()) else { return };
        let Some(identity) = content.identity() else { return };
        let family = rule.family(path);
        let Some(former) = bytes_of(store, family, dictionary) else { return };
        let mut key = Vec::new();
        write_difference_key(&mut key, path, dictionary, &told.hash);
        let others = content.representations.iter().flatten().map(Representation::length_bytes);
        let shortest = others.min().unwrap_or_default();
        let body = identity.body();
        let made = staunch_dictionary::make(former.body(), dictionary, body, level_for(body.len()));
        let kind = match made.filter(|made| (made.len() as u64) < shortest) {
            Some(made) => {
                let common = content.common(entry.ruling.as_deref());
                let tag = difference_tag(identity, dictionary);
                Kind::Content(Content::of_identity(&common, prepare::difference(&common, &made, &tag)))
            }
            None => Kind::NoDifference,
        };
        self.remember(store, family, &key);
        put(store, &entry, &key, kind);
    }

    /// Notes that a difference was made, so that it is forgotten with the version it leads to.
    fn remember(&self, store: &Store, family: &[u8], key: &[u8]) {
        let mut families = self.lock();
        let Some(known) = families.get_mut(family) else { return };
        if known.differences.len() >= DIFFERENCES_PER_FAMILY_MAX {
            known.drop_differences(store);
        }
        known.differences.push(key.into());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Family>> {
        self.families.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Family {
    fn drop_differences(&mut self, store: &Store) {
        for key in self.differences.drain(..) {
            store.remove(&key);
        }
    }
}

/// Lets any other family go where there are too many for one more.
fn make_room(families: &mut HashMap<Box<[u8]>, Family>, family: &[u8], store: &Store) {
    if families.len() < DICTIONARY_FAMILIES_MAX || families.contains_key(family) {
        return;
    }
    let Some(name) = families.keys().next().cloned() else { return };
    let Some(mut gone) = families.remove(&name) else { return };
    gone.drop_differences(store);
    for hash in gone.versions {
        store.remove(&version_key(&name, &hash));
    }
}

/// The bytes of a version, if they are held.
fn bytes_of(store: &Store, family: &[u8], hash: &Hash) -> Option<Representation> {
    let version = store.get(&version_key(family, hash))?;
    match &version.kind {
        Kind::Version(KnownVersion::Former(former)) => Some(former.clone()),
        Kind::Version(KnownVersion::Current(path)) => {
            let current = store.get(path)?;
            let content = current.content()?;
            let is_same = content.told.as_ref().is_some_and(|told| told.hash == *hash);
            content.identity().filter(|_| is_same).cloned()
        }
        _ => None,
    }
}

fn dictionary_of(entry: &Entry) -> Option<(&DictionaryRule, &OfferedDictionary)> {
    let rule = entry.ruling.as_deref()?.dictionary.as_deref()?;
    Some((rule, entry.content()?.told.as_deref()?))
}

/// Puts something under a key that is no path; it is not settled by an encoder, nor looked at again.
fn put(store: &Store, of: &Entry, key: &[u8], kind: Kind) {
    let entry = Arc::new(Entry::new(key.into(), kind, of.stamp, Freshness::new(true, 0)));
    entry.settle();
    store.insert(store.ticket(key), &entry, Room::Made);
}

/// The entity tag of a difference: the identity's, and which dictionary it needs. Whoever has it has the
/// content.
fn difference_tag(identity: &Representation, dictionary: &Hash) -> Vec<u8> {
    let mut tag = start_of_tags(identity);
    for byte in &dictionary.as_bytes()[..TAGGED_BYTES] {
        tag.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    tag.push(b'"');
    tag
}

/// Whether an entity tag is that of a difference that leads to this identity.
pub(crate) fn leads_to(identity: &Representation, tag: &[u8]) -> bool {
    let dictionary = tag.strip_prefix(&*start_of_tags(identity)).and_then(|rest| rest.strip_suffix(b"\""));
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    dictionary.is_some_and(|hash| hash.len() == 2 * TAGGED_BYTES && hash.iter().all(is_digit))
}

/// Beginning of the tags of all differences that lead to this identity.
fn start_of_tags(identity: &Representation) -> Vec<u8> {
    let tag = identity.etag();
    [tag.strip_suffix(b"\"").unwrap_or(tag), b"-dcz-"].concat()
}

#[cfg(test)]
#[path = "versions/tests.rs"]
mod tests;
