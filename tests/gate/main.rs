//! The gate's program, as the kernel runs it: verdicts by test run, storms of random frames, and the whole on
//! interfaces of namespaces made for a test. Needs root; elsewhere every test says that it is skipped.
#![forbid(unsafe_code)]

mod answers;
mod attached;
#[allow(dead_code, reason = "the load generator's tests count what is received")]
#[path = "../../crates/loadgen/src/flood/tests/cable.rs"]
mod cable;
mod death;
mod dresses;
mod elsewhere;
mod learning;
mod lines;
mod oracle;
mod packet;
mod properties;
mod states;
mod storm;
mod trial;
mod verdicts;
mod visits;
