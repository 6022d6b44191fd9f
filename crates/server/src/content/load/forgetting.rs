//! What is forgotten of the store when files have changed.
//!
//! It must never keep an entry that a change may have made untrue.

use std::collections::HashSet;

use super::Load;
use crate::content::folder::Variant;
use crate::content::negotiate::Encoding;
use crate::content::path::folder_of;
use crate::content::spare_keys::is_spare;
use crate::content::watch::Changes;
use crate::rules::Rules;

impl Load {
    /// Has everything forgotten that changes touch.
    pub(crate) fn forget(&self, changes: &Changes) {
        let mut listed = HashSet::new();
        for (folder, name) in &changes.names {
            self.remove(&[folder, &name[..]].concat());
            let side =
                Encoding::ALL.iter().find_map(|encoding| name.strip_suffix(encoding.extension().as_bytes()));
            if let Some(stem) = side {
                self.remove(&[folder, stem].concat());
            }
            if self.config.index.iter().any(|index| index.as_bytes() == name) {
                self.remove(folder);
                self.forget_answered_by(folder);
            }
            self.forget_answered_by(&[folder, &name[..]].concat());
            self.forget_answered_by(&[folder, &name[..], b"/"].concat());
            // A folder's own listing, and that it stands in: its time is changed too.
            listed.insert(&**folder);
            listed.insert(folder_of(folder.strip_suffix(b"/").unwrap_or(folder)));
        }
        for folder in listed.into_iter().filter(|folder| !folder.is_empty()) {
            for variant in Variant::all() {
                self.remove(&variant.key(folder));
            }
        }
        let tries = self.rules.as_ref().is_some_and(|rules| rules.all_tries().next().is_some());
        if changes.everything || !changes.trees.is_empty() {
            // What is in a tree may answer for paths anywhere.
            let is_touched = |key: &[u8]| !is_spare(key) && (tries || changes.contains_tree_of(key));
            if self.rules.as_ref().is_some_and(Rules::have_dictionary) {
                let all = self.store.all();
                all.iter()
                    .filter(|entry| is_touched(&entry.key))
                    .for_each(|entry| self.keep_former(entry, None));
            }
            self.store.remove_where(is_touched);
        }
    }

    /// Has the paths forgotten for which what stands at another may answer, or no longer.
    fn forget_answered_by(&self, changed: &[u8]) {
        for tries in self.rules.iter().flat_map(|rules| rules.all_tries()) {
            tries.answered_by(changed).for_each(|path| self.remove(&path));
        }
    }
}
