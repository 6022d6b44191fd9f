//! `-t`: whether the settings would do, without touching a socket or a log.

use super::loader::{Failure, Loader};
use crate::serve;

/// Tests the settings and says so, in the lines that administrators know.
///
/// # Errors
/// All that is wrong, and at last that the test failed.
pub(crate) fn run(loader: &Loader) -> Result<(), Failure> {
    let name = loader.name();
    let failed = |failure: Failure| Failure {
        code: failure.code,
        text: format!("{}\nconfiguration file {name} test failed", failure.text),
    };
    let config = loader.load().map_err(failed)?;
    eprintln!("staunch: the configuration file {name} syntax is ok");
    serve::settings(&config).map_err(failed)?;
    eprintln!("staunch: configuration file {name} test is successful");
    Ok(())
}
