//! A room that follows later.

/// It is not mended yet.
pub struct Later;
