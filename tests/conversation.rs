//! A conversation: what is sent, what must come back, and the tree of files it is about.
//!
//! It owns the model of a `.wire` file (`tests/wire/README.md` is its grammar) and nothing else: it must
//! never open a socket or write a file. Order: [`parse`] gives a [`Conversation`], [`crate::player`] plays
//! it.

mod pattern;
mod read;
mod text;

use std::net::SocketAddr;

pub use pattern::{Pattern, Saved};
pub use read::{ParseError, parse};
pub use text::{Fragment, escape, join, unescape};

/// A parsed `.wire` file.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// Name of the file it came from, for messages.
    pub name: String,
    /// Bodies it is meant for; empty means all.
    pub only: Vec<String>,
    /// Further arguments of `staunch serve`.
    pub options: Vec<String>,
    /// Lines of a file of settings; empty if there is none. `{root}` stands for the served folder.
    pub settings: String,
    /// Changes that build the tree before the first step. Empty means the standard tree.
    pub tree: Vec<Change>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

impl Conversation {
    /// Whether it may be run on a body that goes by these names.
    pub fn is_for(&self, names: &[&str]) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| names.contains(&name.as_str()))
    }

    /// The text of its file of settings for this served folder and this address of its application, if it
    /// has any. Without sites of its own, the folder is the site, or the application is, with no limit that
    /// earlier conversations could have changed.
    pub fn settings_for(&self, root: &std::path::Path, application: Option<SocketAddr>) -> Option<String> {
        let root = root.to_string_lossy();
        let mut settings = self.settings.replace("{root}", &root);
        if let Some(application) = application {
            let application = application.to_string();
            if !settings.contains("{application}") {
                settings.insert_str(0, "proxy = \"{application}\"\n");
            }
            let settings = settings.replace("{application}", &application);
            return Some(format!("workers = 1\nproxy_limit = \"off\"\n{settings}"));
        }
        match settings.as_str() {
            "" => None,
            text if text.contains("[[site]]") => Some(settings),
            text => Some(format!("root = \"{root}\"\n{text}")),
        }
    }

    /// Whether a run changes the tree, so that the next run needs a fresh one.
    pub fn changes_tree(&self) -> bool {
        fn any(steps: &[Step]) -> bool {
            steps.iter().any(|step| match &step.action {
                Action::Change(_) => true,
                Action::Eventually(inner) => any(inner),
                _ => false,
            })
        }
        any(&self.steps)
    }

    /// Whether requests of it are passed on to an application, which it plays as well.
    pub fn has_application(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Application(_)))
    }
}

/// A step with the line it stands on.
#[derive(Debug, Clone)]
pub struct Step {
    /// Line in the file, from 1.
    pub line: usize,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Action {
    /// Send these bytes.
    Send(Vec<Fragment>),
    /// A response must come.
    Expect(Expectation),
    /// These bytes must come.
    ExpectBytes(Vec<Fragment>),
    /// A response of this status must begin, or has begun, and its connection end before it is whole.
    ExpectCut(Option<u16>),
    /// The peer must end the connection in an orderly way, with nothing more sent.
    Closed,
    /// The connection must still answer: an `OPTIONS *` is sent and its answer read.
    Open,
    /// Send no more.
    HalfClose,
    /// Break the connection with a reset.
    Reset,
    /// Let so many milliseconds pass.
    Wait(u64),
    /// Go on with the connection of this name; it is opened when new.
    Connection(String),
    /// Change the served tree.
    Change(Change),
    /// Repeat these steps, each time on a new connection, until they hold or ten seconds are over.
    Eventually(Vec<Step>),
    /// The application does this on its connection with the server. Nothing else in it is an application's.
    Application(Box<Action>),
}

/// An expected response, or an expected request at the application.
#[derive(Debug, Clone, Default)]
pub struct Expectation {
    /// Allowed status codes of a response.
    pub statuses: Vec<u16>,
    /// The request line of a request.
    pub line: Option<Pattern>,
    /// Rules about fields.
    pub fields: Vec<FieldRule>,
    /// What the body must be, with the line that says so. All must hold.
    pub bodies: Vec<(usize, BodyRule)>,
    /// Field values to remember: name of the memory, name of the field.
    pub saves: Vec<(String, String)>,
}

impl Expectation {
    /// Whether the response is to have no body whatever its fields say (the answer to HEAD).
    pub fn is_without_body(&self) -> bool {
        self.bodies.iter().any(|(_, rule)| matches!(rule, BodyRule::None))
    }
}

/// A rule about the fields of one name.
#[derive(Debug, Clone)]
pub struct FieldRule {
    /// Line in the file.
    pub line: usize,
    /// Field name; case does not matter.
    pub name: String,
    /// Whether the rule forbids (`<!`) instead of demands (`<`).
    pub forbidden: bool,
    /// Pattern of the value; `None` stands for any value.
    pub pattern: Option<Pattern>,
}

/// A rule about the body.
#[derive(Debug, Clone)]
pub enum BodyRule {
    /// No body bytes follow the head.
    None,
    /// These bytes.
    Exact(Vec<Fragment>),
    /// Bytes that match.
    Like(Pattern),
    /// So many bytes.
    Length(u64),
    /// The bytes of a file of the tree, after undoing the coding; part of it if a range (first, last) is
    /// given.
    File {
        /// The coding to undo.
        coding: Option<Coding>,
        /// Path in the tree.
        path: String,
        /// First and last byte.
        range: Option<(u64, u64)>,
    },
    /// A text that parses as JSON.
    Json,
    /// A part of a multipart/byteranges body, in order: `Content-Range` without its unit, and the bytes.
    Part {
        /// For instance `0-4/13`.
        content_range: String,
        /// The bytes of the part.
        bytes: Vec<Fragment>,
    },
}

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// The coding `gzip`.
    Gzip,
    /// br
    Brotli,
    /// The coding `zstd`.
    Zstd,
}

/// A change of the served tree. Paths are relative to its root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// Write a file in place, its folders included.
    File {
        /// Where.
        path: String,
        /// What.
        content: Content,
    },
    /// Make a folder.
    Folder(String),
    /// Make a symbolic link.
    Link {
        /// Where.
        path: String,
        /// What it says.
        target: String,
    },
    /// Make a fifo.
    Fifo(String),
    /// Delete a file, or a folder with all in it.
    Delete(String),
    /// Give a file or folder another name.
    Rename {
        /// From where.
        from: String,
        /// To where.
        to: String,
    },
    /// Append to a file.
    Append {
        /// Where.
        path: String,
        /// What.
        content: Content,
    },
    /// Cut a file to a length.
    Truncate {
        /// Which.
        path: String,
        /// New length.
        length_bytes: u64,
    },
    /// Set a modification time.
    Modified {
        /// Of which file.
        path: String,
        /// Seconds since 1970.
        unix_s: i64,
    },
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many bytes of a fixed pattern that no shift maps onto itself.
    Pattern(u64),
    /// A text so many times.
    Repeat(u64, Vec<u8>),
    /// A hole of so many bytes.
    Sparse(u64),
}
