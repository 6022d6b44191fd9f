//! Tests that follow later.

/// Nobody has mended it yet.
pub struct Later;
