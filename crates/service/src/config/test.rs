//! A test of settings: whether they would do, without touching a socket or a log.

use staunch_program::Failure;
use staunch_server::SitesShared;

use super::loader::{Loader, of_faults};
use super::{exposure, old_hashes, places};
use crate::{certificates, fabric, live, proxy, settings, sites};

/// Tests the settings, and says (`say`) what stands before an outcome, in the lines that administrators know.
///
/// # Errors
/// All that is wrong, and at last that the test failed.
pub fn test(loader: &Loader, say: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    let name = loader.name();
    let failed = |failure: Failure| Failure {
        code: failure.code,
        text: format!("{}\nconfiguration {name} test failed", failure.text),
    };
    let sources = loader.sources().map_err(failed)?;
    let file = sources.file.as_ref();
    let mut reading = staunch_config::read_whole(&sources);
    let (config, is_read) = (reading.config.take(), reading.is_right());
    places::look(&mut reading);
    exposure::look(&mut reading);
    let usable = config.as_ref().map(|config| -> Result<Vec<String>, Failure> {
        let handed = settings::any_handed(config);
        let settings = settings::of(config, &handed)?;
        settings::secured(config, &handed, &settings.listen)?;
        fabric::realtime_topics(config)?;
        proxy::tls::read(config)?;
        let mut warnings = certificates::test(config)?;
        warnings.extend(proxy::tls::needless(config));
        Ok(warnings)
    });
    if let Some(Err(failure)) = &usable {
        let (key, text) = failure.text.split_once(": ").unwrap_or(("", &failure.text));
        reading.blame(0, key, text.to_owned());
    }
    // Faults that only a whole site shows, once its files are there: nothing is loaded, nothing started.
    let (mut whole, mut troubles) = (Ok(()), Vec::new());
    if let (true, Some(config)) = (reading.is_right(), &config) {
        let opened = SitesShared::open(sites::of(config)).map(|sites| troubles = sites.troubles());
        whole = opened.map_err(|error| error.to_string());
        whole =
            whole.and_then(|()| live::of(config, u64::MAX, None).map(drop).map_err(|failure| failure.text));
    }
    if is_read {
        say(&match file {
            Some(_) => format!("the configuration {name} syntax is ok"),
            None => format!("the syntax of the configuration {name} is ok"),
        });
    }
    let of_values =
        config.iter().flat_map(|config| [config.warnings(), old_hashes::warnings(config)].concat());
    for text in usable
        .into_iter()
        .flatten()
        .flatten()
        .chain(Loader::unknown_variables())
        .chain(of_values)
        .chain(troubles)
    {
        say(&format!("warning: {text}"));
    }
    reading.config = config;
    reading.end(file).map_err(|faults| {
        let mut failure = of_faults(&faults);
        // Settings that can be read and yet not be used are no wrong call, whoever gave them.
        if is_read {
            failure.code = Failure::configuration("").code;
        }
        failed(failure)
    })?;
    whole.map_err(|error| failed(Failure::configuration(error)))?;
    say(&format!("configuration {name} test is successful"));
    Ok(())
}
