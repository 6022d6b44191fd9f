//! Docs that say what the name says. It must never be built.

/// The limits.
#[derive(Debug)]
pub struct Limit {
    /// Bytes of body.
    pub body_bytes: u64,
    /// `bytes`
    pub bytes: u64,
    /// Bytes of the head.
    pub bytes_of_all: u64,
    /// The rate
    /// at which it is reached.
    pub rate: u64,
}

impl Limit {
    /// All of it.
    pub(crate) const fn whole() -> Self {
        Self::LARGEST
    }

    /// The LARGEST.
    pub const LARGEST: Self = Self::whole();
}
