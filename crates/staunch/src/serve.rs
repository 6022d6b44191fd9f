//! `staunch serve`: runs a server, or tests its settings.

use crate::config::{self, Arguments, Failure};

/// Serves until the server is ended.
///
/// # Errors
/// Whatever keeps the server from serving, in a sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let loader = &arguments.flags.0;
    if arguments.test { config::test(loader) } else { staunch_service::serve::run(loader) }
}
