//! The settings of `staunch serve` on the command line: flags, and what is printed about settings.
//!
//! The meaning of a key stands in `staunch-config`; `staunch-service` brings flags, environment and file
//! together.

mod arguments;
mod show;
mod test;

pub(crate) use arguments::{Arguments, ProxyArguments};
pub(crate) use show::{ConfigCommand, run};
pub(crate) use test::run as test;

pub(crate) use staunch_service::config::Loader;
