//! `staunch serve`: sites over HTTP/1.1.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use staunch_config::Config;
use staunch_config::groups::{Content, Deadlines, Network};
use staunch_config::syntax::choice::IoWay;
use staunch_config::units::ListenAddress;
use staunch_engine::{Engine, IoChoice, Settings};
use staunch_netio::cpu;
use staunch_protocol::Timeouts;
use staunch_server::log::Logged;
use staunch_server::{About, Reporting, SitesShared, StatusPage};

use crate::banner;
use crate::config::{self, Arguments, Failure};
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
    // tidy: allow(clock): the status page tells for how long it has been up.
    let started = Instant::now();
    let config = arguments.loader.load()?;
    let settings = settings(&config)?;
    let mut seeing = Seeing::open(&config, false)?;
    let content = default_content(&config);
    let sites = SitesShared::open(sites::of(&config))?;
    let engine = Engine::bind(settings).map_err(|error| error.to_string())?;
    sites.start(&engine.post())?;
    let about = About { version: env!("CARGO_PKG_VERSION"), io: engine.backend().0, stats: engine.stats() };
    let page = config.process.status.clone();
    let page = page.map(|path| Arc::new(StatusPage::new(path, about, Arc::clone(&sites), started)));
    banner::print(&content.root, &engine, &describe(content));
    seeing.announce();
    let shown = Arc::clone(&sites);
    seeing.show(&engine, started, move || shown.figures())?;
    banner::watch_preparation(&sites);
    let log = Arc::clone(&seeing.log);
    let handler =
        |worker| Logged::new(Reporting::new(sites.handler(), page.clone()), Arc::clone(&log), worker);
    let ended = engine.run(handler).map_err(|error| error.to_string());
    seeing.finish();
    Ok(ended?)
}

/// What the engine is to do, as far as the system allows it.
///
/// # Errors
/// A processor or a host that does not exist.
pub(crate) fn settings(config: &Config) -> Result<Settings, Failure> {
    Ok(Settings {
        listen: listen(&config.network)?,
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

/// Addresses to listen on, with names looked up.
fn listen(network: &Network) -> Result<Vec<SocketAddr>, Failure> {
    let address = |address: &ListenAddress| match address {
        ListenAddress::Socket(address) => Ok(*address),
        ListenAddress::Name(name) => {
            let found = name.to_socket_addrs().ok().and_then(|mut found| found.next());
            found.ok_or_else(|| Failure::configuration(format!("listen: no address is known for {name}")))
        }
        ListenAddress::Handed(name) => {
            Err(Failure::configuration(format!("listen: no socket called {name} was handed over")))
        }
    };
    network.listen.iter().map(address).collect()
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
