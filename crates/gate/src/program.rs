//! The XDP program on one interface: loaded, attached, told its orders, read.
//!
//! It owns the program, its maps and the link that holds it on the interface. It must never decide how many
//! are let in.
