//! `staunch serve`: sites over HTTP/1.1.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use staunch_config::Config;
use staunch_config::groups::{Content, Deadlines, Network};
use staunch_config::syntax::choice::IoWay;
use staunch_config::units::ListenAddress;
use staunch_confine::Confinement;
use staunch_engine::{Engine, IoChoice, Settings};
use staunch_netio::cpu;
use staunch_protocol::Timeouts;
use staunch_server::log::Logged;
use staunch_server::{About, Reporting, SitesShared, StatusPage};

use crate::banner;
use crate::config::{self, Arguments, Failure};
use crate::confinement;
use crate::life::{Arrival, Duties};
use crate::reload::Reload;
use crate::seeing::Seeing;
use crate::sites;
use crate::units;

/// Serves until it is ended.
///
/// # Errors
/// Whatever keeps it from serving, in a sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.test {
        return config::test(&arguments.loader);
    }
    let mut arrival = Arrival::new()?;
    // tidy: allow(clock): the status page tells for how long it has been up.
    let started = Instant::now();
    let config = arguments.loader.load()?;
    let user = confinement::identity(&config)?;
    let handed = arrival.names();
    let settings = settings(&config, &handed)?;
    let mut seeing = Seeing::open(&config, arrival.takes_over())?;
    let content = default_content(&config);
    let sites = SitesShared::open(sites::of(&config))?;
    let mut engine =
        Engine::bind_or_take_over(settings, arrival.sockets()).map_err(|error| error.to_string())?;
    // Before the first thread is started, and before logs are opened: as the user who will open them again.
    let confinement = confinement::confine(&mut engine, &config, arguments.loader.file(), user.as_ref())?;
    seeing.reload(&config.logs)?;
    sites.start(&engine.post())?;
    let about = About { version: env!("CARGO_PKG_VERSION"), io: engine.backend().0, stats: engine.stats() };
    let page = config.process.status.clone();
    let page = page.map(|path| Arc::new(StatusPage::new(path, about, Arc::clone(&sites), started)));
    banner::print(&content.root, &engine, &describe(content), &confinement);
    seeing.announce();
    let shown = Arc::clone(&sites);
    seeing.show(&engine, started, move || shown.figures())?;
    banner::watch_preparation(&sites);
    let seeing = Arc::new(seeing);
    let reload = Reload {
        loader: arguments.loader.clone(),
        started: config.clone(),
        present: config,
        handed,
        control: engine.control(),
        sites: Arc::clone(&sites),
        seeing: Arc::clone(&seeing),
    };
    let keeper = arrival.keep(duties(&engine, reload, &seeing, &confinement))?;
    let log = Arc::clone(&seeing.log);
    let end = engine
        .run(|worker| Logged::new(Reporting::new(sites.handler(), page.clone()), Arc::clone(&log), worker));
    keeper.leave();
    seeing.finish();
    Ok(end.map_err(|error| error.to_string())?)
}

/// What is done when signals come.
fn duties<M: Send + 'static>(
    engine: &Engine<M>,
    mut reload: Reload,
    seeing: &Arc<Seeing>,
    confinement: &Confinement,
) -> Duties {
    let (ending, reopening) = (Arc::clone(seeing), Arc::clone(seeing));
    Duties {
        control: engine.control(),
        backend: engine.backend().0,
        shares_queues: engine.shares_queues(),
        drain_timeout: reload.drain_timeout(),
        pid_file: reload.started.process.pid_file.clone(),
        reload: Box::new(move || reload.run()),
        reopen: Box::new(move || reopening.reopen()),
        end: Box::new(move |hands_over| ending.drain(hands_over)),
        environment: confinement.environment().into_iter().collect(),
        say: Arc::clone(&seeing.notice),
    }
}

/// What the engine is to do, as far as the system allows it. `handed` are the sockets that were handed over,
/// by name.
///
/// # Errors
/// A processor, a host or a socket that does not exist.
pub(crate) fn settings(config: &Config, handed: &[(String, SocketAddr)]) -> Result<Settings, Failure> {
    Ok(Settings {
        listen: listen(&config.network, handed)?,
        workers: workers(&config.network)?,
        io: match config.network.io {
            IoWay::Auto => IoChoice::Auto,
            IoWay::Uring => IoChoice::Uring,
            IoWay::Epoll => IoChoice::Epoll,
        },
        connections_max: config.network.max_connections,
        timeouts: timeouts(&config.deadlines),
    })
}

/// Content of the site for every host that has none of its own.
fn default_content(config: &Config) -> &Content {
    let site = config.sites.iter().find(|site| site.default);
    &site.unwrap_or(&config.sites[0]).content
}

fn describe(content: &Content) -> String {
    if content.no_cache {
        return "read from disk for every request (--no-cache)".into();
    }
    let size = units::show_size(content.cache_size);
    let codings: Vec<&str> = content.encodings.iter().flatten().map(|coding| coding.name()).collect();
    if codings.is_empty() {
        format!("held in memory up to {size}, not encoded")
    } else {
        format!("held in memory up to {size}; {} prepared in the background", codings.join(", "))
    }
}

/// A socket for every name that the settings want one of, for a test of them: who starts the server hands them
/// over then.
pub(crate) fn any_handed(config: &Config) -> Vec<(String, SocketAddr)> {
    let name = |address: &ListenAddress| match address {
        ListenAddress::Handed(name) => Some((name.clone(), SocketAddr::from(([0; 4], 0)))),
        _ => None,
    };
    config.network.listen.iter().filter_map(name).collect()
}

/// Addresses to listen on, with names looked up. Several sockets may have been handed over under one name.
fn listen(network: &Network, handed: &[(String, SocketAddr)]) -> Result<Vec<SocketAddr>, Failure> {
    let addresses = |address: &ListenAddress| match address {
        ListenAddress::Socket(address) => Ok(vec![*address]),
        ListenAddress::Name(name) => {
            let found = name.to_socket_addrs().ok().and_then(|mut found| found.next());
            let unknown = || Failure::configuration(format!("listen: no address is known for {name}"));
            Ok(vec![found.ok_or_else(unknown)?])
        }
        ListenAddress::Handed(name) => {
            let named = handed.iter().filter(|(own, _)| own == name);
            let found: Vec<SocketAddr> = named.map(|(_, address)| *address).collect();
            let text = || format!("listen: no socket called {name} was handed over");
            if found.is_empty() { Err(Failure::configuration(text())) } else { Ok(found) }
        }
    };
    Ok(network.listen.iter().map(addresses).collect::<Result<Vec<_>, _>>()?.concat())
}

/// One worker a processor, or as many as asked for on the processors there are.
fn workers(network: &Network) -> Result<Vec<Option<usize>>, Failure> {
    let allowed = cpu::available_cpus().map_err(|error| format!("cannot list the processors: {error}"))?;
    let mut cpus = match &network.cpus {
        Some(wanted) => match wanted.0.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(cpu) => {
                let text = format!("cpus: processor {cpu} is not one this process may use ({allowed:?})");
                return Err(Failure::configuration(text));
            }
            None => wanted.0.clone(),
        },
        None => allowed,
    };
    if network.leave_cpu0 && cpus.len() > 1 {
        cpus.retain(|&cpu| cpu != 0);
    }
    let count = network.workers.map_or(cpus.len(), |count| count.min(1024) as usize);
    Ok((0..count).map(|worker| Some(cpus[worker % cpus.len()])).collect())
}

fn timeouts(deadlines: &Deadlines) -> Timeouts {
    let ms = |duration: Duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
    Timeouts {
        header_ms: ms(deadlines.header_timeout),
        keep_alive_ms: ms(deadlines.keep_alive),
        body_ms: ms(deadlines.body_timeout),
        send_ms: ms(deadlines.send_timeout),
        ..Timeouts::default()
    }
}
