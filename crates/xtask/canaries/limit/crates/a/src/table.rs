//! Limits with and without a reason.

/// Fits into one page.
const ENTRIES_MAX: usize = 4096;

const SHIFT: u32 = 12;
const ECONNRESET: i32 = 104;

const CONNECTIONS_MAX: u32 = 1 << 16 | 5_000;
pub(crate) const ROUND_MS: u64 = 0xffff;
