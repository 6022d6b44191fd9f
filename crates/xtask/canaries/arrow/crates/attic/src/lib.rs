//! A room that must never be more than a canary.
#![forbid(unsafe_code)]
