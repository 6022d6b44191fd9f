//! `staunch doctor` from outside, on recorded hosts.
//!
//! It must never judge or change the machine it runs on, but for one look whose outcome is not asserted.
#![forbid(unsafe_code)]

mod apply;
mod recorded;
mod report;
