//! The program with less than it needs: slots, descriptors, memory, and peers that are in no hurry.
//!
//! It must never assert a time measured by the clock: waits have a limit so that a mistake cannot hang them.
#![forbid(unsafe_code)]

mod client;
mod memory;
mod rates;
mod slots;
mod taking;
mod watches;
