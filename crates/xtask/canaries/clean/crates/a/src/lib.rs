//! What looks like a breach and must never be reported.
#![forbid(unsafe_code)]

mod bird;
mod nest;

pub use bird::Bird;

/// Says "unsafe", `Instant::now` and { in a string.
pub const WORDS: &str = "unsafe { Instant::now() } mod utils;";

/// The rows of a table: as many as a page shows. Above an attribute, too.
#[allow(dead_code)]
const ROWS_MAX: usize = 1_000;

/// The type of a function, without a body.
pub type Call = fn(u8) -> [u8; 2];
