//! Reaches a path in the folder of the site in which it lies: the root, or a branch.
//!
//! This module must never join names: each folder opens its own files, under the name that they have there.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use staunch_engine::FileStamp;

use super::Load;
use crate::content::path::{Opened, Refusal, Root};
use crate::content::watch::{Changes, Watch};

impl Load {
    /// See [`Root::open_beneath`].
    pub(crate) fn open_beneath(&self, path: &[u8]) -> Result<Opened, Refusal> {
        let (root, path) = self.root_of(path);
        root.open_beneath(path)
    }

    /// See [`Root::stamp_at`].
    pub(super) fn stamp_at(&self, path: &[u8]) -> Result<Option<FileStamp>, Errno> {
        let (root, path) = self.root_of(path);
        root.stamp_at(path)
    }

    /// The open folder in which a path lies, if it is there, and what the path is called in it.
    pub(super) fn folder_of<'a>(&'a self, path: &'a [u8]) -> Option<(&'a OwnedFd, &'a [u8])> {
        let (root, path) = self.root_of(path);
        Some((root.folder()?, path))
    }

    /// See [`Watch::cover`].
    pub(crate) fn cover(&self, folder: &[u8]) -> bool {
        match self.branches.find(folder) {
            Some((branch, within)) => branch.watch.cover(within),
            None => self.watch.cover(folder),
        }
    }

    /// Whether a path lies in a branch.
    pub(super) fn is_in_branch(&self, path: &[u8]) -> bool {
        self.branches.find(path).is_some()
    }

    /// The watches of all folders, and the path below which each is served.
    pub(crate) fn watches(&self) -> impl Iterator<Item = (&Watch, &[u8])> {
        let of_branches = self.branches.iter().map(|branch| (&branch.watch, branch.prefix()));
        std::iter::once((&self.watch, &b"/"[..])).chain(of_branches)
    }

    /// Has everything forgotten that has changed in the folder of a watch, which is served below `prefix`.
    pub(crate) fn follow(&self, watch: &Watch, prefix: &[u8]) {
        let changes: Changes = watch.take_changes();
        self.forget(&changes.below(prefix));
    }

    fn root_of<'a>(&'a self, path: &'a [u8]) -> (&'a Root, &'a [u8]) {
        match self.branches.find(path) {
            Some((branch, within)) => (branch.root(), within),
            None => (&self.root, path),
        }
    }
}
