//! Figures of differences (RFC 9842), by what is told as one.
//!
//! This module owns the names of the kinds.

use super::exposition::Exposition;
use super::snapshot::Snapshot;
use crate::dictionary::DictionaryFigures;

/// A metric's name, what it says, and its figure.
type Family = (&'static str, &'static str, fn(&DictionaryFigures) -> u64);

const FAMILIES: [Family; 4] = [
    (
        "staunch_dictionary_asked_total",
        "Requests with a dictionary to which a difference may be told.",
        |figures| figures.asked,
    ),
    ("staunch_dictionary_answered_total", "Of them, those answered by a difference.", |figures| {
        figures.answered
    }),
    ("staunch_dictionary_unknown_total", "Of them, those whose dictionary is not known here.", |figures| {
        figures.unknown
    }),
    ("staunch_dictionary_saved_bytes_total", "Bytes of bodies that differences saved.", |figures| {
        figures.saved_bytes
    }),
];

impl Snapshot {
    /// Figures of differences by kind: of what there is.
    pub fn dictionaries(&self) -> Vec<(&'static str, DictionaryFigures)> {
        let files = self.sites.iter().filter_map(|site| site.dictionary).reduce(|mut all, site| {
            all.add(&site);
            all
        });
        let live = self.live.as_ref().map(|live| ("live", live.dictionary));
        files.map(|files| ("file", files)).into_iter().chain(live).collect()
    }
}

/// Writes them.
pub(super) fn dictionaries(snapshot: &Snapshot, out: &mut Exposition) {
    let kinds = snapshot.dictionaries();
    if kinds.is_empty() {
        return;
    }
    for (name, help, of) in FAMILIES {
        out.counter(name, help);
        for (kind, figures) in &kinds {
            out.sample(&[("kind", kind)], of(figures));
        }
    }
}
