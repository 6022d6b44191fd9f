//! `staunch model` from outside: what it says is compared with formulas written down here, and with hosts
//! made up.
//!
//! It must never compare with a figure that the program said before.
#![forbid(unsafe_code)]

#[path = "../browser/chromium.rs"]
mod chromium;
mod command;
mod faults;
mod fits;
mod pictures;
mod predictions;
mod sizes;
