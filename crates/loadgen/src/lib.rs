//! A load generator: offers a server what was asked for, whether it keeps up or not, and counts what became
//! of each request.
//!
//! It must never use the engine or the server: a meter must not share what it measures.
#![forbid(unsafe_code)]

pub mod check;
mod fault;
pub mod mix;
pub mod probe;
pub mod request;
pub mod template;
pub mod url;

pub use fault::Fault;
