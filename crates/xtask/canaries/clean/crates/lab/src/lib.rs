//! A laboratory, which must never do more than show.
#![deny(unsafe_code)]

pub mod models;
