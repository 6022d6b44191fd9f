//! The program from outside: its command line, its limits, hostile and foreign clients, files that change.
//!
//! It must never assert a time measured by the clock: waits have a limit so that a mistake cannot hang them,
//! and what is asserted are answers, counters of the kernel, and processor time.
#![forbid(unsafe_code)]

mod changing_files;
mod clients;
mod clients_killed;
mod command_line;
mod crossing;
mod differences;
mod instruments;
mod kernel_fails;
mod kernel_short;
mod load_tools;
mod outside;
mod redbot;
mod resources;
mod slow_attack;
mod slow_mounts;
mod slow_readers;
