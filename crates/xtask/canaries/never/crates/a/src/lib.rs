//! A crate that promises nothing.
#![forbid(unsafe_code)]
// The crate would never do so here.
