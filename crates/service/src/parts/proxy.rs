//! The proxy as a part: applications that answer for paths of sites.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use staunch_config::Config;
use staunch_config::syntax::choice;
use staunch_server::ProxyShared;
use staunch_server::metrics::ContentFigures;

use crate::config::Failure;
use crate::part::{BeforeBinding, Commit, NewSettings, Part, Refusal, Surroundings};
use crate::proxy::Names;
use crate::{proxy, settings};

/// The proxy of all sites. It stands in the list without an application, too: settings that name one later
/// need another process.
pub(crate) struct ProxyPart {
    shared: Option<Arc<ProxyShared>>,
    /// Ports that the process may connect to.
    ports: BTreeSet<u16>,
    /// Addresses of names, looked up at the start: once confined, a process cannot ask for others.
    names: Names,
    /// Names that led nowhere at the start.
    faults: Mutex<Vec<String>>,
}

impl ProxyPart {
    /// The proxy, with what it shares if any site passes requests on. Names are looked up while that is
    /// allowed.
    ///
    /// # Errors
    /// The workers cannot be counted.
    pub(super) fn open(opening: &BeforeBinding<'_>) -> Result<Self, Failure> {
        if !proxy::is_wanted(opening.config) {
            let (ports, names) = (BTreeSet::new(), Names::new());
            return Ok(Self { shared: None, ports, names, faults: Mutex::default() });
        }
        let workers = settings::workers(&opening.config.network)?.len();
        // Numbers of processes are the same in every container; this is another in each process.
        let pseudonym = format!("staunch-{:016x}", RandomState::new().hash_one(std::process::id()));
        let config = proxy::of(opening.config, workers);
        let shared = ProxyShared::new(config, &pseudonym, Arc::clone(opening.notice));
        let (names, faults) = proxy::names(opening.config);
        let applications = proxy::applications_at(opening.config, &names);
        shared.know(&applications);
        let (shared, ports) = (Some(shared), proxy::ports(opening.config));
        Ok(Self { shared, ports, names, faults: Mutex::new(faults) })
    }

    /// What the workers share.
    pub(crate) fn shared(&self) -> Option<&Arc<ProxyShared>> {
        self.shared.as_ref()
    }

    /// Refuses servers that this process may not connect to.
    fn refuse_other_ports(&self, new: &NewSettings<'_>) -> Result<(), Refusal> {
        if self.shared.is_none() && proxy::is_wanted(new.config) {
            let why = "proxy: a process that was started without an application connects to none";
            return Err(Refusal::Beyond(why.to_owned()));
        }
        if new.started.process.sandbox == choice::Sandbox::Off {
            return Ok(());
        }
        match proxy::ports(new.config).iter().find(|port| !self.ports.contains(port)) {
            None => Ok(()),
            Some(port) => {
                Err(Refusal::Beyond(format!("proxy: port {port} is none that this process may connect to")))
            }
        }
    }
}

impl Part for ProxyPart {
    fn describe(&self, config: &Config) -> Vec<String> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let limit = match config.proxy.proxy_limit {
            None => "none".to_owned(),
            Some(None) => "found by measuring".to_owned(),
            Some(Some(limit)) => limit.to_string(),
        };
        let figures = shared.figures();
        let servers: Vec<&str> = figures.servers.iter().map(|server| &*server.server).collect();
        vec![format!("  proxy        to {}; requests at once: {limit}", servers.join(", "))]
    }

    fn start(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        if let Some(shared) = &self.shared {
            shared.start(&around.post).map_err(|error| format!("cannot start a thread: {error}"))?;
        }
        Ok(std::mem::take(&mut *self.faults.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn prepare<'a>(&'a self, new: &'a NewSettings<'_>) -> Result<Commit<'a>, Refusal> {
        self.refuse_other_ports(new)?;
        if self.shared.is_some()
            && let Some(name) = proxy::new_name(new.config, &self.names)
        {
            return Err(Refusal::Beyond(format!(
                "proxy: {name} has to be looked up, which this process cannot"
            )));
        }
        let applications = proxy::applications_at(new.config, &self.names);
        Ok(Box::new(move || {
            self.shared.iter().for_each(|shared| shared.know(&applications));
            Vec::new()
        }))
    }

    fn end(&self) {
        self.shared.iter().for_each(|shared| shared.end());
    }

    fn figures(&self, figures: &mut ContentFigures) {
        figures.proxy = self.shared.as_ref().map(|shared| shared.figures());
    }

    fn metrics(&self, text: &mut String) {
        if let Some(shared) = &self.shared {
            staunch_server::metrics::proxy(&shared.figures(), text);
        }
    }
}
