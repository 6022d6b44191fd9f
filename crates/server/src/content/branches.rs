//! Folders that rules name for the paths below a prefix, each in the place of what stands there in the root.
//!
//! This module owns which folder stands behind a path, and under which name that folder knows it.
//! Confinement is each folder's own ([`Root`]), so a path of one never leads into another. A branch that
//! cannot be opened must never close its site: its paths alone answer 503 until it is there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::io::Errno;
use staunch_engine::Notice;

use super::path::{FolderNow, Root};
use super::watch::Watch;
use crate::config::{SiteError, SiteRules};

/// A folder that a rule names, opened.
pub(crate) struct Named {
    /// The path below which it is served, with its closing slash: `/media/`.
    prefix: Box<[u8]>,
    /// The name of the folder, as it was told.
    told: PathBuf,
    root: Root,
    /// Why it could not be opened.
    closed: Option<String>,
}

/// A folder that is served below a path.
pub(crate) struct Branch {
    named: Named,
    pub(crate) watch: Watch,
    /// Whether its name led nowhere when it was looked at last.
    is_gone: AtomicBool,
}

/// All branches of a site.
#[derive(Default)]
pub(crate) struct Branches {
    /// Branches in the order of the rules: the last that holds a path is taken.
    all: Vec<Branch>,
}

impl Branches {
    /// Opens the folders that rules name. Quick: nothing of them is read. What is not there is closed.
    ///
    /// # Errors
    /// A folder that may not be read, unless `may_be_closed` says of its name that this is no reason.
    pub(crate) fn open(
        rules: &SiteRules,
        may_be_closed: impl Fn(&Path) -> bool,
    ) -> Result<Vec<Named>, SiteError> {
        let named = rules.paths.iter().filter_map(|rule| {
            let folder = rule.folder.as_deref()?;
            Some((prefix_of(&rule.pattern)?, folder))
        });
        let open = |(prefix, folder): (Box<[u8]>, &Path)| match Root::open(folder) {
            Err(errno @ Errno::ACCESS) if !may_be_closed(folder) => {
                Err(SiteError::Root { root: folder.to_path_buf(), errno })
            }
            opened => Ok(Named::new(prefix, folder, opened)),
        };
        named.map(open).collect()
    }

    /// Watches these folders.
    pub(crate) fn new(named: Vec<Named>, notice: &Notice) -> Self {
        let branch = |named: Named| Branch {
            watch: Watch::new(named.root.name(), Arc::clone(notice)),
            named,
            is_gone: AtomicBool::new(false),
        };
        Self { all: named.into_iter().map(branch).collect() }
    }

    /// Whether a folder of this name is closed.
    pub(crate) fn have_closed(&self, folder: &Path) -> bool {
        self.all.iter().any(|branch| branch.named.told == folder && branch.named.closed.is_some())
    }

    /// The branch that a decoded path or a folder's key leads into, and what it is called there. The path of
    /// the branch without its slash is its folder.
    #[inline]
    pub(crate) fn find<'p>(&self, path: &'p [u8]) -> Option<(&Branch, &'p [u8])> {
        self.all.iter().rev().find_map(|branch| Some((branch, branch.within(path)?)))
    }

    /// The branches, in the order of the rules.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Branch> {
        self.all.iter()
    }

    /// Whether the branches are these folders, at the same paths.
    pub(crate) fn are(&self, named: &[Named]) -> bool {
        let same = |(branch, other): (&Branch, &Named)| {
            branch.named.prefix == other.prefix && branch.named.root.is_same_folder(&other.root)
        };
        self.all.len() == named.len() && self.all.iter().zip(named).all(same)
    }
}

impl Named {
    fn new(prefix: Box<[u8]>, folder: &Path, opened: Result<Root, Errno>) -> Self {
        let (root, closed) = match opened {
            Ok(root) => (root, None),
            Err(errno) => (Root::absent(folder), Some(closed(&prefix, folder, errno))),
        };
        Self { prefix, told: folder.to_path_buf(), root, closed }
    }
}

impl Branch {
    /// The folder itself.
    pub(crate) fn root(&self) -> &Root {
        &self.named.root
    }

    /// The path below which it is served, with its closing slash.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.named.prefix
    }

    fn within<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let prefix = self.prefix();
        match path.strip_prefix(&prefix[..prefix.len() - 1])? {
            [] => Some(b"/"),
            below @ [b'/', ..] => Some(below),
            _ => None,
        }
    }

    /// Looks where its name leads now; `say` is told when it has gone.
    pub(crate) fn look(&self, say: impl FnOnce(&str)) -> FolderNow {
        let place = self.root().place_of(&self.named.told);
        let is_gone = place == FolderNow::Gone;
        if is_gone && !self.is_gone.swap(true, Relaxed) && !self.root().is_absent() {
            say(&self.gone());
        }
        self.is_gone.store(is_gone, Relaxed);
        place
    }

    /// The trouble with the folder, if there is any.
    pub(crate) fn trouble(&self) -> Option<String> {
        let gone = self.is_gone.load(Relaxed) && !self.root().is_absent();
        self.named.closed.clone().or_else(|| gone.then(|| self.gone()))
    }

    fn gone(&self) -> String {
        let (path, folder) = (String::from_utf8_lossy(self.prefix()), self.named.told.display());
        format!("{path}*: {folder} is gone: it is opened again when it is there")
    }
}

fn closed(prefix: &[u8], folder: &Path, errno: Errno) -> String {
    let error = SiteError::Root { root: folder.to_path_buf(), errno };
    format!("{}*: {error}: 503 until it does", String::from_utf8_lossy(prefix))
}

/// The path below which the folder of a rule is served, with its closing slash: what stands before the star
/// at the pattern's end. `None` for a pattern of another form, and for that of everything.
pub(crate) fn prefix_of(pattern: &str) -> Option<Box<[u8]>> {
    let prefix = pattern.strip_suffix('*').filter(|prefix| prefix.ends_with('/'))?;
    let mut names = prefix.strip_prefix('/')?.strip_suffix('/')?.split('/');
    let is_plain = names.all(|name| !matches!(name, "" | "." | "..") && !name.contains(['*', '\0']));
    is_plain.then(|| prefix.as_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PathRule;
    use crate::content::testing::Folder;

    #[test]
    fn prefixes() {
        for (pattern, expected) in [
            ("/media/*", Some("/media/")),
            ("/a/b c/*", Some("/a/b c/")),
            ("/*", None),
            ("*", None),
            ("/media*", None),
            ("/media/", None),
            ("/*/media/*", None),
            ("/media/*.jpg", None),
            ("/media//*", None),
            ("/media/../*", None),
            ("//*", None),
        ] {
            let found = prefix_of(pattern);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{pattern}");
        }
    }

    #[test]
    fn the_last_branch_that_holds_a_path_is_taken() {
        let folder = Folder::new();
        let rule = |pattern: &str| PathRule {
            pattern: pattern.into(),
            folder: Some(folder.path().into()),
            ..PathRule::default()
        };
        let paths = vec![rule("/media/*"), rule("/media/raw/*")];
        let notice: Notice = Arc::new(|_| ());
        let rules = SiteRules { paths, ..SiteRules::default() };
        let branches = Branches::new(Branches::open(&rules, |_| false).unwrap(), &notice);
        let found = |path: &'static str| {
            let (branch, within) = branches.find(path.as_bytes())?;
            Some((String::from_utf8_lossy(branch.prefix()).into_owned(), String::from_utf8_lossy(within)))
        };
        for (path, expected) in [
            ("/media", Some(("/media/", "/"))),
            ("/media/", Some(("/media/", "/"))),
            ("/media/a/b", Some(("/media/", "/a/b"))),
            ("/media/raw", Some(("/media/raw/", "/"))),
            ("/media/raw/a", Some(("/media/raw/", "/a"))),
            ("/media/rawer", Some(("/media/", "/rawer"))),
            ("/mediaa", None),
            ("/media..", None),
            ("/", None),
            ("", None),
        ] {
            let found = found(path);
            let found = found.as_ref().map(|(prefix, within)| (prefix.as_str(), &**within));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_missing_folder_is_told() {
        let folder = Folder::new();
        let missing = folder.path().join("none");
        let notice: Notice = Arc::new(|_| ());
        let opened = Root::open(&missing);
        let named = Named::new(b"/media/"[..].into(), &missing, opened);
        let branches = Branches::new(vec![named], &notice);
        let branch = branches.iter().next().unwrap();
        let trouble = branch.trouble().unwrap_or_default();
        assert!(trouble.starts_with("/media/*: the folder ") && trouble.contains("none does not exist"));
        assert_eq!(branch.look(|_| ()), FolderNow::Gone);
        folder.make_folder("none");
        assert_eq!(branch.look(|_| ()), FolderNow::Other, "it is to be opened");
    }
}
