//! The gate's law of control: on a simulated host, by a table of situations, and against any input.
#![allow(clippy::unwrap_used)]

mod bars;
mod conditions;
mod plant;
mod program;
mod properties;
mod scenario;
mod sensors;
mod situations;
mod strangers;
