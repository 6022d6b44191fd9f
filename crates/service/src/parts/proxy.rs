//! The proxy as a part: applications that answer for paths of sites.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use staunch_config::Config;
use staunch_config::syntax::choice;
use staunch_program::Failure;
use staunch_server::ProxyShared;
use staunch_server::metrics::ContentFigures;

use crate::part::{BeforeBinding, Commit, NewSettings, Part, Refusal, Surroundings};
use crate::proxy::{Applications, Names};
use crate::resolver::{self, Beginning, Found, Resolver};
use crate::{proxy, settings};

/// The proxy of all sites. It stands in the list without an application, too: settings that name one later
/// need another process.
pub(crate) struct ProxyPart {
    shared: Option<Arc<ProxyShared>>,
    /// Ports that the process may connect to.
    ports: BTreeSet<u16>,
    servers: Arc<Servers>,
    /// The process that follows names, if there are any.
    resolver: Option<Arc<Resolver>>,
    /// Lines about names that led nowhere at the start, and about servers that prove nothing.
    faults: Mutex<Vec<String>>,
}

/// The applications of the settings in use, and where the names of their servers lead.
#[derive(Default)]
struct Servers {
    known: Mutex<(Applications, Names)>,
    /// The name in the certificates of all servers, if the settings give one.
    tls_name: Option<String>,
}

impl Servers {
    fn lock(&self) -> MutexGuard<'_, (Applications, Names)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes by these applications from now on.
    fn replace(&self, applications: Applications, shared: &ProxyShared) {
        let mut servers = self.lock();
        servers.0 = applications;
        shared.know(&proxy::at(&servers.0, &servers.1, self.tls_name.as_deref()));
    }

    /// A name was looked up.
    fn hear(&self, found: Found, shared: &ProxyShared) {
        let mut servers = self.lock();
        let change = servers.1.hear(found);
        if change.has_moved {
            shared.know(&proxy::at(&servers.0, &servers.1, self.tls_name.as_deref()));
        }
        change.lines.iter().for_each(|line| shared.say(line));
    }
}

impl ProxyPart {
    /// The proxy, with what it shares if any site passes requests on. Names are looked up, and a process
    /// that follows them is started, while that is allowed.
    ///
    /// # Errors
    /// The workers cannot be counted; that process cannot be started; files for TLS to servers are not good.
    pub(super) fn open(opening: &BeforeBinding<'_>) -> Result<Self, Failure> {
        if !proxy::is_wanted(opening.config) {
            let (servers, faults) = (Arc::default(), Mutex::default());
            return Ok(Self { shared: None, ports: BTreeSet::new(), servers, resolver: None, faults });
        }
        let workers = settings::workers(&opening.config.network)?.len();
        // Numbers of processes are the same in every container; this is another in each process.
        let pseudonym = format!("staunch-{:016x}", RandomState::new().hash_one(std::process::id()));
        let config = proxy::of(opening.config, workers);
        let shared = ProxyShared::new(config, &pseudonym, Arc::clone(opening.notice));
        let (names, mut faults) = Names::looked_up(proxy::all_names(opening.config), resolver::look_up);
        if proxy::tls::is_wanted(opening.config) && opening.config.proxy.proxy_tls_insecure {
            faults.push("proxy_tls_insecure: servers by https:// are believed whoever they are".to_owned());
        }
        let resolver = Self::start_resolver(opening, &names)?;
        if let Some(tls) = proxy::tls::read(opening.config)? {
            shared.secure(tls);
        }
        let known = Mutex::new((Applications::new(), names));
        faults.extend(proxy::tls::needless(opening.config));
        let servers = Arc::new(Servers { known, tls_name: opening.config.proxy.proxy_tls_name.clone() });
        servers.replace(proxy::all(opening.config), &shared);
        let (shared, ports) = (Some(shared), proxy::ports(opening.config));
        Ok(Self { shared, ports, servers, resolver, faults: Mutex::new(faults) })
    }

    fn start_resolver(opening: &BeforeBinding<'_>, names: &Names) -> Result<Option<Arc<Resolver>>, Failure> {
        let names = names.all();
        if names.is_empty() {
            return Ok(None);
        }
        let beginning = Beginning {
            names: &names,
            interval: opening.config.proxy.proxy_resolve_interval,
            sandbox: opening.config.process.sandbox,
            user: opening.user,
        };
        let started = Resolver::start(&beginning);
        Ok(Some(started.map_err(|error| format!("proxy: the resolver cannot be started: {error}"))?))
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
        let mut servers: Vec<&str> = figures.servers.iter().map(|server| &*server.server).collect();
        if servers.is_empty() {
            servers.push("names that lead nowhere so far");
        }
        vec![format!("  proxy        to {}; requests at once: {limit}", servers.join(", "))]
    }

    fn start(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        let blame = |error| format!("cannot start a thread: {error}");
        if let Some(shared) = &self.shared {
            shared.start(&around.post).map_err(blame)?;
            proxy::check(around.config).map_or(Ok(()), |check| check.start(shared)).map_err(blame)?;
            if let Some(resolver) = &self.resolver {
                let (servers, shared) = (Arc::clone(&self.servers), Arc::clone(shared));
                let heard = move |found| servers.hear(found, &shared);
                resolver.listen(Arc::clone(around.notice), heard).map_err(blame)?;
            }
        }
        Ok(std::mem::take(&mut *self.faults.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn prepare<'a>(&'a self, new: &'a NewSettings<'_>) -> Result<Commit<'a>, Refusal> {
        self.refuse_other_ports(new)?;
        if self.shared.as_ref().is_some_and(|shared| !shared.is_secured())
            && proxy::tls::is_wanted(new.config)
        {
            let why = "proxy: authorities have to be read for servers by https://, which this process cannot";
            return Err(Refusal::Beyond(why.to_owned()));
        }
        proxy::tls::expect_names(new.config)?;
        let is_new = |name: &String| !self.servers.lock().1.knows(name);
        if let Some(name) = proxy::all_names(new.config).into_iter().find(is_new) {
            return Err(Refusal::Beyond(format!(
                "proxy: {name} has to be looked up, which this process cannot"
            )));
        }
        let applications = proxy::all(new.config);
        let lines: Vec<String> = proxy::tls::needless(new.config).into_iter().collect();
        Ok(Box::new(move || {
            self.shared.iter().for_each(|shared| self.servers.replace(applications.clone(), shared));
            lines
        }))
    }

    fn end(&self) {
        self.resolver.iter().for_each(|resolver| resolver.end());
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
