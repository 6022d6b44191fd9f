//! The loop: observe, decide, order, tell.
//!
//! It owns the ticks and the life of the program. It must never decide how many are let in.
