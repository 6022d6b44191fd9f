//! A nest. It must never fly.
#![forbid(unsafe_code)]

mod nest;
