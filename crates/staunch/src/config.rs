//! The settings of `staunch serve`: what is asked of the system to read them, and what is told about them.
//!
//! What a key means stands in `staunch-config`. This part brings the sources: flags, environment, file.

mod arguments;
mod exposure;
mod loader;
mod places;
mod show;
mod test;

pub(crate) use arguments::Arguments;
pub(crate) use loader::{Failure, Loader};
pub(crate) use show::{ConfigCommand, run};
pub(crate) use test::run as test;
