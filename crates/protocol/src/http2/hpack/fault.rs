//! What can be wrong with a block of fields.
//!
//! It must never repeat bytes of the peer.

/// Why a block cannot be read. The tables of both ends differ from then on, so the connection ends (RFC 9113,
/// section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HpackFault {
    /// The block ends within a field.
    Truncated,
    /// A number is larger than any that has a meaning.
    Number,
    /// An index that neither table has.
    Index,
    /// A text in the Huffman code breaks its rules.
    Huffman,
    /// The size of the table is changed to more than was allowed, or not at the start of a block.
    TableSize,
    /// The fields are many times longer than what is taken: read to the end they would cost too much.
    TooLong,
    /// All tables of the worker together hold as much as they may.
    TooMuchHeld,
}

impl HpackFault {
    /// What is wrong, as a sentence without its full stop.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "a block of fields ends within a field",
            Self::Number => "a number in a block of fields is too large",
            Self::Index => "a block of fields names an entry that no table has",
            Self::Huffman => "a text is not in the Huffman code it is said to be in",
            Self::TableSize => "the size of the table of fields is changed to what was not allowed",
            Self::TooLong => "a block of fields is many times longer than what is taken",
            Self::TooMuchHeld => "there is no room for another field in a table",
        }
    }
}
