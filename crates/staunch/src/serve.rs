//! `staunch serve` and `staunch proxy`: run a server, or test its settings.

use staunch_program::Failure;

use crate::config::{self, Arguments, ProxyArguments};

/// Serves until the server is ended.
///
/// # Errors
/// Whatever keeps the server from serving, in a sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let loader = &arguments.flags.0;
    if arguments.test { config::test(loader) } else { staunch_service::serve::run(loader) }
}

/// Serves what an application answers until the server is ended.
///
/// # Errors
/// Whatever keeps the server from serving, in a sentence.
pub(crate) fn run_proxy(arguments: &ProxyArguments) -> Result<(), Failure> {
    staunch_service::serve::run(&arguments.flags.0)
}
