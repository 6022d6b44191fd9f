//! The configuration read again while the server runs: all of it is applied, or nothing.
//!
//! A reload must never leave the server between two configurations: whatever can fail is tried before
//! anything changes.

use std::sync::Arc;

use staunch_config::Config;
use staunch_confine::Confinement;
use staunch_engine::Control;
use staunch_netio::ListenPlace;

use crate::config::{Loader, old_hashes};
use crate::life::{DrainTimes, Reloaded};
use crate::part::{NewSettings, Refusal};
use crate::parts::Parts;
use crate::seeing::Seeing;
use crate::{confinement, settings};

/// Everything that a new configuration reaches.
pub(crate) struct Reload {
    pub(crate) loader: Loader,
    /// The configuration the server was started with.
    pub(crate) started: Config,
    /// Where the sockets listen that were handed over, by name.
    pub(crate) handed: Vec<(String, ListenPlace)>,
    pub(crate) confinement: Confinement,
    /// Whether a process that was started before this one was confined can start another.
    pub(crate) has_starter: bool,
    pub(crate) control: Control,
    pub(crate) parts: Arc<Parts>,
    pub(crate) seeing: Arc<Seeing>,
}

impl Reload {
    /// Reads it and applies it.
    ///
    /// # Errors
    /// Everything that is wrong with it. Then nothing has changed.
    pub(crate) fn run(&mut self) -> Result<Reloaded, String> {
        let config = self.loader.load().map_err(|failure| failure.text)?;
        match self.apply(&config) {
            Ok(lines) => Ok(Reloaded::Applied { lines, drain: drain_times(&config) }),
            Err(Refusal::Faulty(why)) => Err(why),
            Err(Refusal::Beyond(why)) if self.has_starter => Ok(Reloaded::Beyond(why)),
            Err(Refusal::Beyond(why)) => Err(format!("{why}: restart it")),
        }
    }

    /// Prepares everything, and then applies it. Gives what is to be said.
    fn apply(&self, config: &Config) -> Result<Vec<String>, Refusal> {
        let wanted = confinement::paths(config, self.loader.file());
        if let Some(path) = self.confinement.lacks(&wanted) {
            let path = path.display();
            return Err(Refusal::Beyond(format!(
                "{path} is not among what this process can reach since its start"
            )));
        }
        let settings = settings::of(config, &self.handed)?;
        let secured = settings::secured(config, &self.handed, &settings.listen)?;
        let [plain_addresses, secured_addresses] = [&settings.listen, &secured]
            .map(|places| places.iter().filter_map(ListenPlace::address).collect::<Vec<_>>());
        let new = NewSettings {
            started: &self.started,
            config,
            plain: &plain_addresses,
            secured: &secured_addresses,
            has_starter: self.has_starter,
            begins_access_log: !self.seeing.log.is_on() && config.has_access_log(),
        };
        let change = self.control.prepare(&settings.listen, &secured);
        let change = change.map_err(|error| Refusal::Faulty(error.to_string()))?;
        let logging = self.seeing.prepare(config)?;
        let commit = self.parts.prepare(&new)?;
        let lines = commit();
        self.seeing.commit(logging);
        self.control.set_timeouts(settings.timeouts);
        self.control.set_clients(&settings.clients);
        self.control.set_pressure(settings.pressure);
        self.control.set_http2(settings.http2);
        self.control.apply(change);
        let warnings = [config.warnings(), old_hashes::warnings(config)].concat();
        let warnings = warnings.into_iter().map(|text| format!("warning: {text}"));
        Ok(self.unchanged(config).into_iter().chain(lines).chain(warnings).collect())
    }

    /// How long a drain may take before the first reload.
    pub(crate) fn drain_times(&self) -> DrainTimes {
        drain_times(&self.started)
    }

    /// Settings that only a restart changes.
    fn unchanged(&self, config: &Config) -> Option<String> {
        let keys = self.started.changed_needing_restart(config);
        (!keys.is_empty()).then(|| format!("only a restart or an upgrade changes {}", keys.join(", ")))
    }
}

/// How long a drain may take by this configuration.
fn drain_times(config: &Config) -> DrainTimes {
    DrainTimes { stop: config.process.drain_timeout, upgrade: config.process.upgrade_timeout }
}
