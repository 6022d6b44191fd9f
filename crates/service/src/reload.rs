//! The configuration read again while the server runs: all of it is applied, or nothing.
//!
//! It must never leave the server between two configurations: whatever can fail is tried before anything
//! changes.

use std::net::SocketAddr;
use std::sync::Arc;

use rustix::io::Errno;
use staunch_config::Config;
use staunch_config::syntax::choice;
use staunch_confine::Confinement;
use staunch_engine::Control;
use staunch_server::{LiveSites, SiteError, SitesShared};

use crate::acme::{self, Agent};
use crate::certificates::{self, Certificates};
use crate::config::Loader;
use crate::confinement;
use crate::life::{DrainTimes, Reloaded};
use crate::seeing::Seeing;
use crate::{live, settings, sites};

/// What is reached by a new configuration.
pub(crate) struct Reload {
    pub(crate) loader: Loader,
    /// The configuration the server was started with.
    pub(crate) started: Config,
    /// Addresses of the sockets that were handed over, by name.
    pub(crate) handed: Vec<(String, SocketAddr)>,
    pub(crate) confinement: Confinement,
    /// Whether a process that was started before this one was confined can start another.
    pub(crate) has_starter: bool,
    pub(crate) control: Control,
    pub(crate) sites: Arc<SitesShared>,
    pub(crate) certificates: Arc<Certificates>,
    /// The agent that looks after certificates, if the server was started with one.
    pub(crate) agent: Option<Agent>,
    pub(crate) live: Option<Arc<LiveSites>>,
    pub(crate) seeing: Arc<Seeing>,
}

impl Reload {
    /// Reads it and applies it.
    ///
    /// # Errors
    /// Everything that is wrong with it. Then nothing has changed.
    pub(crate) fn run(&mut self) -> Result<Reloaded, String> {
        let config = self.loader.load().map_err(|failure| failure.text)?;
        live::refuse_served_stores(&self.started, &config).map_err(|failure| failure.text)?;
        let wanted = confinement::paths(&config, self.loader.file());
        let beyond = self.confinement.lacks(&wanted).map(|path| {
            format!("{} is not among what this process can reach since its start", path.display())
        });
        let wants_agent = certificates::store(&config).map_err(|failure| failure.text)?.is_some();
        let agent = || "tls: \"auto\" needs a process that this one cannot start any more".to_owned();
        if let Some(why) = beyond.or_else(|| (wants_agent && self.agent.is_none()).then(agent)) {
            return if self.has_starter {
                Ok(Reloaded::Beyond(why))
            } else {
                Err(format!("{why}: restart it"))
            };
        }
        if self.agent.is_some() && self.started.process.sandbox != choice::Sandbox::Off {
            Agent::refuse_other_files(&self.started, &config)?;
        }
        let settings = settings::of(&config, &self.handed).map_err(|failure| failure.text)?;
        let secured = settings::secured(&config, &self.handed, &settings.listen);
        let secured = secured.map_err(|failure| failure.text)?;
        let pairs = self.certificates.read(&config).map_err(|failure| failure.text)?;
        let change = self.control.prepare(&settings.listen, &secured).map_err(|error| error.to_string())?;
        let logging = self.seeing.prepare(&config.logs).map_err(|failure| failure.text)?;
        // The last step that can fail, and it changes nothing if it does.
        match self.sites.replace(sites::of(&config)) {
            // A folder that was made anew lies outside of the fence, though its name does not.
            Err(error @ SiteError::Root { errno: Errno::ACCESS, .. }) if self.has_starter => {
                return Ok(Reloaded::Beyond(error.to_string()));
            }
            other => other.map_err(|error| error.to_string())?,
        };
        let unwatched = self.certificates.replace(&pairs, &config, &secured);
        let told = self.tell_agent(&config, [&settings.listen, &secured]);
        let was_logged = self.seeing.log.is_on();
        self.seeing.commit(logging);
        let untold = self.untold(was_logged);
        self.control.set_timeouts(settings.timeouts);
        self.control.set_clients(&settings.clients);
        self.control.set_pressure(settings.pressure);
        self.control.set_http2(settings.http2);
        self.control.apply(change);
        let drain = drain_times(&config);
        let lines = self.unchanged(&config).into_iter().chain(pairs.warnings).chain(unwatched).chain(told);
        let lines = lines.chain(untold).collect();
        Ok(Reloaded::Applied { lines, drain })
    }

    /// Tells the agent what is wanted now. Gives what is to be said if it cannot be told.
    fn tell_agent(&self, config: &Config, listens: [&[SocketAddr]; 2]) -> Option<String> {
        self.agent.as_ref()?.configure(acme::wishes(config, listens)).err()
    }

    /// The line about readers of whom an access log cannot tell that was just switched on.
    fn untold(&self, was_logged: bool) -> Option<String> {
        let is_new = !was_logged && self.seeing.log.is_on();
        let streams = self.live.as_ref().filter(|_| is_new)?.streams();
        let text =
            || format!("the access log tells nothing of what readers at rest have asked, up to {streams}");
        (streams > 0).then(text)
    }

    /// How long a drain may take before the first reload.
    pub(crate) fn drain_times(&self) -> DrainTimes {
        drain_times(&self.started)
    }

    /// What only a restart changes.
    fn unchanged(&self, config: &Config) -> Option<String> {
        let keys = self.started.changed_needing_restart(config);
        (!keys.is_empty()).then(|| format!("only a restart or an upgrade changes {}", keys.join(", ")))
    }
}

/// How long a drain may take by this configuration.
fn drain_times(config: &Config) -> DrainTimes {
    DrainTimes { stop: config.process.drain_timeout, upgrade: config.process.upgrade_timeout }
}
