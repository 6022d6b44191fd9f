//! How a polled value is sent other than as it is.

use crate::content::negotiate::Encoding;

/// A coding of a polled value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ValueCoding {
    /// The whole value, compressed.
    Whole(Encoding),
    /// The difference to the value of an earlier update of the topic, by that update's number (RFC 9842).
    Difference(u64),
}

impl ValueCoding {
    /// The name of the coding in Content-Encoding.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole(encoding) => encoding.name(),
            Self::Difference(_) => staunch_dictionary::CODING,
        }
    }
}
