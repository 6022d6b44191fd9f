//! A crate that promises nothing.
#![forbid(unsafe_code)]
// It would never do so here.
