//! Tests of the whole house: conversations held with every body of the server, and the program from outside.
//!
//! It owns the language of `.wire` files, their player, and the processes under test. It must never be used
//! by anything but tests.
#![forbid(unsafe_code)]

pub mod body;
pub mod conversation;
pub mod house;
pub mod module;
pub mod player;
pub mod process;
pub mod request;
pub mod response;
pub mod split;
pub mod suite;
pub mod terminal;
pub mod tree;
pub mod truth;
