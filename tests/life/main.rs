//! The life of the program, from outside: every signal, its end, its upgrade, systemd, and violent death.
//!
//! It must never assert a time measured by the clock, and never leave a process behind.
#![forbid(unsafe_code)]

mod control;
mod conversation;
mod death;
mod ending;
mod house;
mod load;
mod notified;
mod reload;
mod socket_files;
mod sockets;
mod unheard;
mod upgrade;
