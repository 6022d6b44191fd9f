//! What the black-box tests share beside servers and conversations.
//!
//! It must never know what a test is about.

pub mod disk;
pub mod ports;
pub mod skipping;
pub mod waiting;
