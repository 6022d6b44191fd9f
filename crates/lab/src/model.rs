//! What is known of a server model before it runs.
//!
//! It owns the form of an entry in the list. It must never know a model.

use std::io;

use crate::options::Options;

/// A server model.
#[derive(Debug)]
pub struct Model {
    /// Short name, as on the command line.
    pub name: &'static str,
    /// The name in words.
    pub title: &'static str,
    /// What it teaches, in a sentence.
    pub lesson: &'static str,
    /// Its processes, threads and queues, drawn in text behind a first line that is empty.
    pub picture: &'static str,
    /// What the size of the pool means to it.
    pub pool: PoolUse,
    /// Whether it speaks the paper's protocol beside HTTP.
    pub speaks_paper: bool,
    /// Its number among the six models of Dong (2012), if it is one of them.
    pub paper_row: Option<u8>,
    /// Serves until the process is told to end by SIGTERM or SIGINT, and returns. Its child processes are
    /// gone then. Threads and connections end with the process: the caller has nothing else to do in it, and
    /// has started no thread before.
    ///
    /// # Errors
    /// The system call that a server cannot go on without.
    pub serve: fn(&Options) -> io::Result<()>,
}

/// What the size of the pool means to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolUse {
    /// Nothing: there is no pool.
    None,
    /// So many processes.
    Processes,
    /// So many threads.
    Threads,
}

impl Model {
    /// The lines of its picture.
    pub fn picture_lines(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.picture.lines().skip(1)
    }

    /// The model of this name.
    pub fn find<'a>(models: &[&'a Model], name: &str) -> Option<&'a Model> {
        models.iter().copied().find(|model| model.name == name)
    }
}
