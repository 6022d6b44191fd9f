//! Descriptors that pass from one process to the next, by name.
//!
//! A name must never change: the process that takes over may be of another version.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use staunch_netio::handover;

/// Descriptors beside the listening sockets, each with the name of what it is.
#[derive(Debug, Default)]
pub(crate) struct Descriptors(BTreeMap<String, OwnedFd>);

impl Descriptors {
    /// Puts a descriptor there, if there is one.
    pub(crate) fn put(&mut self, name: &str, descriptor: Option<OwnedFd>) {
        self.0.extend(descriptor.map(|descriptor| (name.to_owned(), descriptor)));
    }

    /// Takes the descriptor of that name: once.
    pub(crate) fn take(&mut self, name: &str) -> Option<OwnedFd> {
        self.0.remove(name)
    }

    /// All of them, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &OwnedFd)> {
        self.0.iter().map(|(name, descriptor)| (&**name, descriptor))
    }

    /// Copies that a process started by this one has, too.
    ///
    /// # Errors
    /// EMFILE: there is no descriptor left.
    pub(crate) fn inheritable(self) -> io::Result<Self> {
        let copy = |(name, descriptor)| Ok((name, handover::inheritable(descriptor)?));
        self.0.into_iter().map(copy).collect::<io::Result<_>>().map(Self)
    }
}
