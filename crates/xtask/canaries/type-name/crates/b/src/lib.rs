//! A crate with a plan. It must never share it.
#![forbid(unsafe_code)]

/// What it means to do.
pub struct Place;

/// What is said on the command line.
pub(crate) struct Arguments;

struct Own;
