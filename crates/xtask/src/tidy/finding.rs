//! A breach of a rule, printed like a compiler's error.
//!
//! It owns the form of the output. It must never know what a rule is about.

use std::fmt;

/// Where a rule is broken and how.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path below the top of the tree.
    pub(crate) path: String,
    /// Line, counted from 1.
    pub(crate) line: usize,
    /// The rule's name; filled in by the list of rules.
    pub(crate) rule: &'static str,
    /// What is wrong, and what to do.
    pub(crate) message: String,
}

impl Finding {
    /// A finding at a line (counted from 1).
    pub(crate) fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule: "", message: message.into() }
    }

    /// This finding, of the rule with that name.
    pub(crate) fn of(self, rule: &'static str) -> Self {
        Self { rule, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}
