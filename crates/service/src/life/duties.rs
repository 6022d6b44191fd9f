//! What a server's life needs to know of the server, and nothing more.
//!
//! It must never decide when something is done: the keeper does.

use std::sync::Arc;
use std::time::Duration;

use staunch_engine::Control;

use super::handover::Further;

/// Tells the one who runs the server a line.
pub(crate) type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Takes note of what came of a reload: whether it is in use, and a sentence.
pub(crate) type NoteReload = Box<dyn Fn(bool, &str) + Send>;

/// What came of reading the configuration again.
#[derive(Debug)]
pub(crate) enum Reloaded {
    /// It is in use.
    Applied {
        /// What is to be said about it: keys that need a restart.
        lines: Vec<String>,
        /// How long a drain may take from now on.
        drain: DrainTimes,
    },
    /// Nothing has changed: only a process that confines itself anew can go by it. Why, in words.
    Beyond(String),
}

/// How long a drain may take.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DrainTimes {
    /// When the server ends.
    pub(crate) stop: Duration,
    /// When another process has taken over.
    pub(crate) upgrade: Duration,
}

/// What is done when signals come.
pub(crate) struct Duties {
    /// Orders to the workers.
    pub(crate) control: Control,
    /// Name of their backend.
    pub(crate) backend: &'static str,
    /// Whether they accept at the sockets of the program before this one.
    pub(crate) shares_queues: bool,
    /// How long a drain may take.
    pub(crate) drain: DrainTimes,
    /// Reads the configuration again and applies it, or says why everything stays as it was.
    pub(crate) reload: Box<dyn FnMut() -> Result<Reloaded, String> + Send>,
    /// Told what came of reading the configuration again: whether it is in use, and a sentence.
    pub(crate) note_reload: NoteReload,
    /// Opens logs anew.
    pub(crate) reopen: Box<dyn Fn() + Send>,
    /// Told that another process is about to take over; gives the lines by which live data and the fabric
    /// pass to that one.
    pub(crate) lend: Box<dyn Fn() -> Result<Further, String> + Send>,
    /// Told that the other process did not take over.
    pub(crate) take_back: Box<dyn Fn() + Send>,
    /// Told that the process before this one has left the sockets, or is gone.
    pub(crate) take_over: Box<dyn Fn() + Send>,
    /// Told that every worker accepts.
    pub(crate) serve: Box<dyn Fn() + Send>,
    /// Told that a drain begins, and whether another process takes over.
    pub(crate) end: Box<dyn Fn(bool) + Send>,
    /// Waits until live data is kept, which takes as long as a disk does, and, but not long, for the last
    /// lines said.
    pub(crate) finish: Box<dyn Fn() + Send>,
    /// Descriptors beside the sockets, for the program that takes over.
    pub(crate) further: Box<dyn Fn() -> Further + Send>,
    /// Further variables for the program that takes over.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Where lines go.
    pub(crate) say: Say,
}
