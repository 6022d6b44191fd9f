//! What a site is told at start, and why it may not start.

use std::fmt;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::content::negotiate::Encoding;

/// Everything a site needs to know.
#[derive(Debug, Clone)]
pub struct SiteConfig {
    /// The served folder. Nothing outside of it is ever opened, symbolic links included.
    pub root: PathBuf,
    /// Encodings to make and to take from side files, in the order preferred among equals. Empty: none.
    pub encodings: Vec<Encoding>,
    /// Budget of prepared content in bytes. 0: nothing is held, as with `no_cache`.
    pub cache_bytes_max: u64,
    /// Whether every request reads the disk, on the worker's thread: for comparison, not for crowds. Neither
    /// encodings nor side files are used then.
    pub no_cache: bool,
    /// Whether folders without index file are listed; else they get 403.
    pub listing: bool,
    /// Names of files that answer for their folder, the first that exists.
    pub index: Vec<String>,
    /// Whether names with a leading dot are served (`/.well-known/` always is).
    pub dotfiles: bool,
}

impl Default for SiteConfig {
    fn default() -> Self {
        Self {
            root: PathBuf::from("."),
            encodings: Encoding::ALL.to_vec(),
            cache_bytes_max: 256 * 1024 * 1024,
            no_cache: false,
            listing: true,
            index: vec!["index.html".to_owned()],
            dotfiles: false,
        }
    }
}

/// Why a site cannot be opened.
#[derive(Debug)]
pub enum SiteError {
    /// The folder does not exist, is none, or may not be read.
    Root {
        /// Its name.
        root: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// The system does not offer openat2, without which no path is safe.
    Confinement,
    /// A thread could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for SiteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root { root, errno } => match *errno {
                Errno::NOENT => write!(formatter, "the folder {} does not exist", root.display()),
                Errno::NOTDIR => write!(formatter, "{} is not a folder", root.display()),
                Errno::ACCESS => write!(formatter, "the folder {} may not be read", root.display()),
                errno => write!(formatter, "the folder {} cannot be opened: {errno}", root.display()),
            },
            Self::Confinement => {
                write!(
                    formatter,
                    "the system call openat2 is not available (blocked by a container's filter?)"
                )
            }
            Self::Thread(error) => write!(formatter, "a thread could not be started: {error}"),
        }
    }
}

impl std::error::Error for SiteError {}
