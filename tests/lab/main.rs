//! The laboratory from outside: every server model under the same tests.
//!
//! It must never test one model alone what all can be asked: a test goes over the list. It asserts no time
//! measured by the clock: waits have a limit so that a mistake cannot hang them.
#![forbid(unsafe_code)]

#[path = "../browser/chromium.rs"]
mod chromium;
mod client;
mod command;
mod crowd;
mod ending;
mod faults;
mod http;
mod meter;
mod model;
mod paper;
mod report;
mod run;
