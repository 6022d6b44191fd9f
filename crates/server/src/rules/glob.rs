//! Patterns of paths: `*` stands for any run of bytes, slashes and nothing included; all else for itself.
//!
//! Matching takes time in proportion to the path and its pattern: every star but the last takes as little as
//! it can, and nothing is tried twice.

use memchr::memmem;

/// A pattern, cut at its stars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    /// What stands before the first star; all of it if there is none.
    first: Box<[u8]>,
    /// What follows each star.
    rest: Box<[Box<[u8]>]>,
}

impl Glob {
    /// The pattern of a text.
    pub(crate) fn new(text: &str) -> Self {
        let mut pieces = text.as_bytes().split(|&byte| byte == b'*').map(Box::from);
        let first = pieces.next().unwrap_or_default();
        Self { first, rest: pieces.collect() }
    }

    /// How many stars it has.
    pub(crate) fn stars(&self) -> usize {
        self.rest.len()
    }

    /// Whether it matches the whole path.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        self.walk(path, |_| {})
    }

    /// What its stars stand for, if it matches the whole path.
    pub(crate) fn captures<'a>(&self, path: &'a [u8]) -> Option<Vec<&'a [u8]>> {
        let mut found = Vec::with_capacity(self.stars());
        self.walk(path, |piece| found.push(piece)).then_some(found)
    }

    fn walk<'a>(&self, path: &'a [u8], mut capture: impl FnMut(&'a [u8])) -> bool {
        let Some(mut path) = path.strip_prefix(&*self.first) else { return false };
        let Some((last, middle)) = self.rest.split_last() else { return path.is_empty() };
        for piece in middle {
            let Some(at) = memmem::find(path, piece) else { return false };
            capture(&path[..at]);
            path = &path[at + piece.len()..];
        }
        let ends = path.strip_suffix(&**last);
        ends.map(capture).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns() {
        for (pattern, path, expected) in [
            ("/a", "/a", Some(vec![])),
            ("/a", "/ab", None),
            ("/a", "/", None),
            ("*", "/any/thing", Some(vec!["/any/thing"])),
            ("/assets/*", "/assets/", Some(vec![""])),
            ("/assets/*", "/assets/a/b.js", Some(vec!["a/b.js"])),
            ("/assets/*", "/assets", None),
            ("*.js", "/a/b.js", Some(vec!["/a/b"])),
            ("*.js", "/a/b.js.map", None),
            ("/a/*/b/*", "/a/1/2/b/3/b/4", Some(vec!["1/2", "3/b/4"])),
            ("/a*b*b", "/abb", Some(vec!["", ""])),
            ("/a*b*b", "/ab", None),
            ("/x*x", "/x", None),
            ("**", "/a", Some(vec!["", "/a"])),
            ("/[a]?", "/[a]?", Some(vec![])),
        ] {
            let glob = Glob::new(pattern);
            let found = glob.captures(path.as_bytes());
            let expected: Option<Vec<&[u8]>> =
                expected.map(|pieces| pieces.into_iter().map(str::as_bytes).collect());
            assert_eq!(found, expected, "{pattern} {path}");
            assert_eq!(glob.matches(path.as_bytes()), found.is_some(), "{pattern} {path}");
        }
    }

    /// The meaning of a pattern, as short as it can be said, and exponentially slow.
    fn matches_slowly(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], []) => true,
            ([b'*', pattern @ ..], _) => {
                (0..=path.len()).any(|start| matches_slowly(pattern, &path[start..]))
            }
            ([first, pattern @ ..], [byte, path @ ..]) => first == byte && matches_slowly(pattern, path),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_means_what_it_should(pattern in "[ab/*]{0,8}", path in "[ab/]{0,10}") {
            let glob = Glob::new(&pattern);
            let found = glob.captures(path.as_bytes());
            prop_assert_eq!(found.is_some(), matches_slowly(pattern.as_bytes(), path.as_bytes()));
            if let Some(found) = found {
                let mut pieces = found.iter();
                let whole: Vec<u8> = pattern.bytes().flat_map(|byte| match byte {
                    b'*' => pieces.next().unwrap().to_vec(),
                    byte => vec![byte],
                }).collect();
                prop_assert_eq!(whole, path.as_bytes(), "put in their places, the pieces are the path");
            }
        }
    }
}
