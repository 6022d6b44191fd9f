//! Brings the sources together: the saved flags, the environment, the file as it is now.
//!
//! A loader is kept for as long as the server lives, and asked again when the file has changed.

use std::path::{Path, PathBuf};

use staunch_config::{Config, Faults, File, Sources};
use staunch_netio::named_file::read_handed_text;
use staunch_program::Failure;
use staunch_server::SiteError;

use super::exposure;
use super::includes;
use super::places::plain;
use crate::limits::SETTINGS_BYTES_MAX;

/// Settings of the service, as the package installs them.
const SERVICE_SETTINGS: &str = "/etc/staunch/staunch.toml";

/// Why settings with these faults cannot be used; wrong flags alone are a wrong call.
pub fn of_faults(faults: &Faults) -> Failure {
    match faults.only_flags() {
        true => Failure::usage(faults.to_string()),
        false => Failure::configuration(faults.to_string()),
    }
}

/// Why a site cannot be served.
pub fn of_site_error(error: &SiteError) -> Failure {
    match error {
        SiteError::Rule { .. } | SiteError::Hosts(_) => Failure::configuration(error.to_string()),
        SiteError::Root { .. } | SiteError::Confinement | SiteError::Thread(_) => error.to_string().into(),
    }
}

/// Flags and the name of the file.
#[derive(Clone, Debug)]
pub struct Loader {
    flags: Vec<(String, String)>,
    file: Option<PathBuf>,
}

impl Loader {
    /// What the command line said. Without a file there, `STAUNCH_CONFIG` may name one.
    pub fn new(flags: Vec<(String, String)>, file: Option<PathBuf>) -> Self {
        let named = || std::env::var_os("STAUNCH_CONFIG").filter(|name| !name.is_empty()).map(PathBuf::from);
        Self { flags, file: file.or_else(named) }
    }

    /// Flags and the environment alone, whatever file that names.
    pub fn of_flags(flags: Vec<(String, String)>) -> Self {
        Self { flags, file: None }
    }

    /// As [`Self::new`], for commands about a server that runs or is to: where no file is named and the
    /// service's is there, it is meant.
    pub fn of_service(flags: Vec<(String, String)>, file: Option<PathBuf>) -> Self {
        let named = Self::new(flags, file);
        let service = || Some(PathBuf::from(SERVICE_SETTINGS)).filter(|file| file.exists());
        Self { file: named.file.or_else(service), ..named }
    }

    /// This one, or the service's file if it names none and that is there.
    pub fn or_service(&self) -> Self {
        Self::of_service(self.flags.clone(), self.file.clone())
    }

    /// What the settings are called in messages.
    pub fn name(&self) -> String {
        self.file
            .as_ref()
            .map_or("from flags and environment".into(), |file| format!("file {}", file.display()))
    }

    /// Variables that look like settings and are none, in sentences.
    pub fn unknown_variables() -> Vec<String> {
        staunch_config::unknown_variables(&environment())
    }

    /// The file they stand in, if they do.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// All that is said at this moment.
    ///
    /// # Errors
    /// The file, or one that it includes, cannot be read.
    pub fn sources(&self) -> Result<Sources, Failure> {
        let text = |path: &PathBuf| {
            let text = read_handed_text(path, SETTINGS_BYTES_MAX);
            let text = text
                .map_err(|error| Failure::configuration(format!("{}: {}", path.display(), plain(&error))))?;
            let mut file = File::new(path.display().to_string(), text);
            file.included = includes::read(&file, path).map_err(Failure::configuration)?;
            Ok::<File, Failure>(file)
        };
        Ok(Sources {
            flags: self.flags.clone(),
            environment: environment(),
            file: self.file.as_ref().map(text).transpose()?,
        })
    }

    /// The settings as they are at this moment. To be called again when the file has changed.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn load(&self) -> Result<Config, Failure> {
        let sources = self.sources()?;
        let mut reading = staunch_config::read_whole(&sources);
        exposure::look(&mut reading);
        reading.end(sources.file.as_ref()).map_err(|faults| of_faults(&faults))
    }
}

fn environment() -> Vec<(String, String)> {
    let ours = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let name = name.into_string().ok().filter(|name| name.starts_with("STAUNCH_"))?;
        Some((name, value.to_string_lossy().into_owned()))
    };
    std::env::vars_os().filter_map(ours).collect()
}
