//! Compression dictionaries of HTTP (RFC 9842): a former answer is the dictionary of a later one, which then
//! is sent as the difference.
//!
//! The crate owns four things: the fields (`Available-Dictionary` read, `Use-As-Dictionary` written),
//! whether a request accepts `dcz`, the rule that says when a difference may be sent at all, and the making
//! of one. It must never do input or output, read a clock, or keep a dictionary: who calls it holds the
//! versions and knows which hash is whose.
//!
//! `dcz` (Zstandard) is made, `dcb` (Brotli) is not: the encoder of the `brotli` crate has a custom
//! dictionary of the kind before the format of shared Brotli (RFC 9841), a beginning of its own window, and
//! nowhere promises that decoders of `dcb` read what it makes. A client that takes `dcb` alone gets today's
//! answer.
#![forbid(unsafe_code)]

mod coding;
mod difference;
mod hash;
mod offer;
mod safety;

pub use coding::accepts_dcz;
pub use difference::{GAIN_BYTES_MIN, HEADER_BYTES, INPUT_BYTES_MAX, apply, level_for, make};
pub use hash::{Hash, available};
pub use offer::{Refusal, offer, pattern_of_path};
pub use safety::{Facts, is_local_host};

/// Name of the content coding that is made.
pub const CODING: &str = "dcz";
