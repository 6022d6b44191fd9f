//! Gives up what a server does not need: root, files that are not served, system calls it never makes.
//!
//! It owns the list of files and of system calls, and the change of user. It must never widen anything, and
//! decides nothing about what is served: who calls says which folders.
//!
//! Order of calls, all before the first thread is started, because most of it holds for the calling thread
//! and those it starts: bind sockets and raise limits, [`Identity::assume`], then [`confine`]. Whatever is
//! opened by then stays open.
//!
//! What is confined stays so over exec, so a process that another one was upgraded to is told by the
//! environment ([`INHERITED`]) what it has been born with. It believes that only as far as it can see it.
#![forbid(unsafe_code)]

mod calls;
mod client;
mod fence;
mod filter;
mod identity;
mod inherited;
mod outcome;
mod paths;

use std::fmt;

pub use client::{confine_client, confine_resolver};
pub use identity::{AssumeError, Identity, UnknownIdentity, group_number};
pub use inherited::INHERITED;
pub use outcome::Confinement;
pub use paths::Paths;

use inherited::Inherited;

/// How much is to be confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// As much as this kernel can.
    Auto,
    /// Everything, or an error.
    On,
    /// Nothing.
    Off,
}

/// A part of the sandbox that was demanded and is not to be had. Its `Display` is one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(what) = self;
        write!(formatter, "--sandbox on: {what}; --sandbox auto goes without")
    }
}

impl std::error::Error for Missing {}

/// Confines this process to these files and to the system calls of a server. `identity` is the user it has
/// become, for a process it is upgraded to.
///
/// # Errors
/// [`Sandbox::On`] where the kernel cannot do all of it. Some of it may be done by then: end the process.
///
/// # Panics
/// If the process has other threads: they would go on unconfined.
pub fn confine(sandbox: Sandbox, paths: Paths, identity: Option<&Identity>) -> Result<Confinement, Missing> {
    let inherited = Inherited::from_environment();
    if sandbox == Sandbox::Off {
        return Ok(Confinement::off(&inherited, paths, identity));
    }
    assert!(threads() <= 1, "confined before threads are started");
    let fence = fence::raise(&paths, &inherited);
    let filter = filter::apply(&inherited, &paths);
    if sandbox == Sandbox::On {
        let fence = fence.as_ref().map_err(String::clone)?;
        fence.is_whole()?;
        filter.as_ref().map_err(String::clone)?;
    }
    Ok(Confinement::of(fence, filter, paths, identity))
}

/// The process group of the process that started this one, if that has not ended. One that is ending has
/// none: the kernel says 0 then, which rustix does not expect.
#[must_use]
pub fn group_of_parent() -> Option<i32> {
    let group = nix::unistd::getpgid(Some(nix::unistd::getppid())).ok()?.as_raw();
    (group > 0).then_some(group)
}

/// What is to stand in the environment of a process that this one starts before it is confined, so that the
/// process finds this user again, and the confinement that this one was born in.
#[must_use]
pub fn hand_on(user: Option<&Identity>) -> Option<(&'static str, String)> {
    let inherited = Inherited { user: user.map(Identity::to_hand_on), ..Inherited::from_environment() };
    (!inherited.is_nothing()).then(|| (INHERITED, inherited.to_string()))
}

/// Whether this process was born within a fence, and cannot start one that is without.
#[must_use]
pub fn is_born_fenced() -> bool {
    Inherited::from_environment().fence.is_some()
}

impl From<String> for Missing {
    fn from(what: String) -> Self {
        Self(what)
    }
}

/// How many threads this process has, the kernel's own for io_uring not counted; none that is known of where
/// there is no `/proc`.
fn threads() -> usize {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let name = |thread: std::fs::DirEntry| std::fs::read(thread.path().join("comm")).unwrap_or_default();
    threads.flatten().map(name).filter(|name| !name.starts_with(b"iou-")).count()
}
