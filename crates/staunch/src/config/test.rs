//! `-t`: whether the settings would do, without touching a socket or a log.

use staunch_config::key::Key;
use staunch_server::SitesShared;

use super::loader::{Failure, Loader};
use super::places;
use crate::{settings, sites};

/// Tests the settings and says so, in the lines that administrators know.
///
/// # Errors
/// All that is wrong, and at last that the test failed.
pub(crate) fn run(loader: &Loader) -> Result<(), Failure> {
    let name = loader.name();
    let failed = |failure: Failure| Failure {
        code: failure.code,
        text: format!("{}\nconfiguration {name} test failed", failure.text),
    };
    let sources = loader.sources().map_err(failed)?;
    let config = staunch_config::read(&sources).map_err(|faults| failed(faults.into()))?;
    eprintln!("staunch: the configuration {name} syntax is ok");
    let keys: Vec<&Key> = staunch_config::flags().map(|(_, key)| key).collect();
    for hint in staunch_config::nearly_variables(&sources.environment, &keys) {
        eprintln!("staunch: {hint}");
    }
    let mut faults = places::faults(&config, sources.file.as_ref());
    if let Err(failure) = settings::of(&config, &settings::any_handed(&config)) {
        faults.push(failure.text);
    }
    // What only the whole of a site can tell, once its files are there: nothing is loaded, nothing started.
    if let (true, Err(error)) = (faults.is_empty(), SitesShared::open(sites::of(&config))) {
        faults.push(error.to_string());
    }
    if !faults.is_empty() {
        return Err(failed(Failure::configuration(faults.join("\n"))));
    }
    eprintln!("staunch: configuration {name} test is successful");
    Ok(())
}
