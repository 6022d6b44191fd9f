//! Which answers are told as dictionaries, and for which paths (RFC 9842).
//!
//! This module must never look at an answer: which are held, and which versions there were, is the content's.

use staunch_dictionary::{offer, pattern_of_path};

use crate::config::Dictionary;

/// Cache-Control of answers whose rules say nothing of caches: browsers keep no dictionary of what they may
/// not use without asking (`no-cache`), and none that is not fresh, or stale within this time.
pub(super) const CACHE_CONTROL: &str = "max-age=0, stale-while-revalidate=60";
/// Words of Cache-Control with which no browser keeps a dictionary.
const KEPT_BY_NOBODY: [&str; 2] = ["no-cache", "no-store"];

/// A rule ready to be applied.
#[derive(Debug)]
pub(crate) struct DictionaryRule {
    /// The pattern of the paths that are dictionaries for each other; `None`: each path for itself.
    pattern: Option<Box<str>>,
}

impl DictionaryRule {
    /// Reads a rule.
    ///
    /// # Errors
    /// The fault in the rule.
    pub(crate) fn new(dictionary: &Dictionary) -> Result<Self, String> {
        let pattern = match dictionary {
            Dictionary::Own => None,
            Dictionary::Pattern(text) if text.starts_with('/') => Some(text.as_str().into()),
            Dictionary::Pattern(text) => return Err(format!("dictionary = {text:?} does not begin with /")),
        };
        Ok(Self { pattern })
    }

    /// The name under which versions are dictionaries for each other.
    pub(crate) fn family<'a>(&'a self, path: &'a [u8]) -> &'a [u8] {
        self.pattern.as_deref().map_or(path, str::as_bytes)
    }

    /// Whether versions of different paths are dictionaries for each other.
    pub(crate) fn has_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// The value of Use-As-Dictionary in answers for this path. A file that answers for its folder, by one
    /// of the names of `index`, is a dictionary for both paths.
    pub(crate) fn offer(&self, path: &[u8], index: &[String]) -> Option<Box<str>> {
        let pattern = match &self.pattern {
            Some(pattern) => pattern
                .split('*')
                .map(|piece| pattern_of_path(piece.as_bytes()))
                .collect::<Vec<_>>()
                .join("*"),
            None => own_pattern(path, index),
        };
        offer(&pattern, None).ok().map(String::into_boxed_str)
    }
}

fn own_pattern(path: &[u8], index: &[String]) -> String {
    let name_at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, name) = path.split_at(name_at);
    match index.iter().any(|index| index.as_bytes() == name) {
        true => format!("{}{{{}}}?", pattern_of_path(folder), pattern_of_path(name)),
        false => pattern_of_path(path),
    }
}

/// Whether no browser keeps a dictionary under this Cache-Control.
pub(super) fn is_kept_by_nobody(cache_control: &str) -> bool {
    let mut words = cache_control.split(',').map(str::trim);
    words.any(|word| KEPT_BY_NOBODY.iter().any(|nobody| word.eq_ignore_ascii_case(nobody)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers() {
        let index = ["index.html".to_owned()];
        let offer = |dictionary: Dictionary, path: &str| {
            DictionaryRule::new(&dictionary).unwrap().offer(path.as_bytes(), &index).unwrap()
        };
        let app = || Dictionary::Pattern("/assets/app.*.js".to_owned());
        assert_eq!(&*offer(Dictionary::Own, "/a b.html"), "match=\"/a%20b.html\"");
        assert_eq!(&*offer(Dictionary::Own, "/index.html"), "match=\"/{index.html}?\"");
        assert_eq!(&*offer(Dictionary::Own, "/a/index.html"), "match=\"/a/{index.html}?\"");
        assert_eq!(&*offer(Dictionary::Own, "/xindex.html"), "match=\"/xindex.html\"");
        assert_eq!(&*offer(app(), "/assets/app.1f.js"), "match=\"/assets/app.*.js\"");
        assert!(DictionaryRule::new(&Dictionary::Pattern("*.js".to_owned())).is_err());
    }

    #[test]
    fn who_keeps_nothing() {
        for value in ["no-cache", "max-age=5, No-Store", "private,no-cache"] {
            assert!(is_kept_by_nobody(value), "{value}");
        }
        for value in ["", "max-age=5", CACHE_CONTROL, "public, immutable"] {
            assert!(!is_kept_by_nobody(value), "{value}");
        }
    }
}
