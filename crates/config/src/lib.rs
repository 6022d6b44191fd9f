//! Settings of the server: every key, its layers, and where each value comes from.
//!
//! It owns the table of keys ([`groups`]), the way each value is written ([`syntax`]), the precedence (flag,
//! environment, file, default) and what is wrong, with its place. It is text in, settings out: it must
//! never open a file, look up a name or ask the system anything; who calls it does.
#![forbid(unsafe_code)]

mod changes;
mod config;
mod environment;
mod foreign;
pub mod group;
pub mod groups;
mod joined;
pub mod key;
pub mod node;
mod reader;
mod redirects;
pub mod reference;
mod report;
mod site;
mod sources;
pub mod syntax;
pub mod units;
mod whole;

pub use config::{Config, Reading, flags, read, read_whole};
pub use environment::unknown_variables;
pub use reader::{GivenKey, Origin};
pub use report::{Faults, Section, describe, show};
pub use site::Site;
pub use sources::{File, Sources};
