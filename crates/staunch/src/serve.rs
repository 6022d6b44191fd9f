//! `staunch serve`: sites over HTTP/1.1.

use std::sync::Arc;
use std::time::Instant;

use staunch_config::Config;
use staunch_config::groups::Content;
use staunch_engine::{Engine, StartError};
use staunch_server::log::Logged;
use staunch_server::{About, Reporting, SitesShared, StatusPage};

use crate::banner;
use crate::config::{self, Arguments, Failure};
use crate::confinement;
use crate::gate::Gate;
use crate::life::{Arrival, Duties};
use crate::reload::Reload;
use crate::seeing::Seeing;
use crate::settings;
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
    let mut settings = settings::of(&config, &handed)?;
    let mut seeing = Seeing::open(&config, arrival.takes_over())?;
    settings.notice = Arc::clone(&seeing.notice);
    let content = default_content(&config);
    let sites = SitesShared::open(sites::of(&config))?;
    let mut engine = Engine::bind_or_take_over(settings, arrival.sockets()).map_err(blame)?;
    let gate = gate(&config, &engine, &seeing, arrival.takes_over())?;
    // Before the first thread is started, and before logs are opened: as the user who will open them again.
    let confinement = confinement::confine(&mut engine, &config, arguments.loader.file(), user.as_ref())?;
    seeing.reload(&config.logs)?;
    sites.start(&engine.post())?;
    let about = About { version: env!("CARGO_PKG_VERSION"), io: engine.backend().0, stats: engine.stats() };
    let page = config.process.status.clone();
    let page = page.map(|path| Arc::new(StatusPage::new(path, about, Arc::clone(&sites), started)));
    let gate_words = gate.as_ref().map(|gate| gate.words.clone());
    banner::print(&content.root, &engine, &describe(content), &confinement, gate_words.as_deref());
    let mut gate = gate.map(Gate::run).transpose()?;
    seeing.announce();
    let shown = Arc::clone(&sites);
    seeing.show(
        &engine,
        started,
        move || shown.figures(),
        gate.as_mut().and_then(|gate| gate.metrics.take()),
    )?;
    banner::watch_preparation(&sites);
    let seeing = Arc::new(seeing);
    let reload = Reload {
        loader: arguments.loader.clone(),
        started: config.clone(),
        present: config,
        handed,
        confinement,
        control: engine.control(),
        sites: Arc::clone(&sites),
        seeing: Arc::clone(&seeing),
    };
    let keeper = arrival.keep(duties(&engine, reload, &seeing))?;
    let log = Arc::clone(&seeing.log);
    let end = engine
        .run(|worker| Logged::new(Reporting::new(sites.handler(), page.clone()), Arc::clone(&log), worker));
    if let Some(gate) = gate {
        gate.take_down();
    }
    keeper.leave();
    seeing.finish();
    Ok(end.map_err(|error| error.to_string())?)
}

/// The gate, if one is asked for. A process that takes over was born confined, and finds that of the one
/// before it on the interface: it goes without, and says so.
fn gate<M: Send + 'static>(
    config: &Config,
    engine: &Engine<M>,
    seeing: &Seeing,
    takes_over: bool,
) -> Result<Option<Gate>, String> {
    let interfaces = &config.process.gate;
    if takes_over && !interfaces.is_empty() {
        (seeing.notice)(
            "gate: an upgraded server cannot put it up again, it ends with the process before this \
                         one; start the server anew, or run `staunch gate` beside it",
        );
        return Ok(None);
    }
    Gate::put_up(interfaces, engine.addresses(), &seeing.notice)
}

/// What is done when signals come.
fn duties<M: Send + 'static>(engine: &Engine<M>, mut reload: Reload, seeing: &Arc<Seeing>) -> Duties {
    let (ending, reopening) = (Arc::clone(seeing), Arc::clone(seeing));
    Duties {
        control: engine.control(),
        backend: engine.backend().0,
        shares_queues: engine.shares_queues(),
        drain_timeout: reload.drain_timeout(),
        pid_file: reload.started.process.pid_file.clone(),
        environment: reload.confinement.environment().into_iter().collect(),
        reload: Box::new(move || reload.run()),
        reopen: Box::new(move || reopening.reopen()),
        end: Box::new(move |hands_over| ending.drain(hands_over)),
        say: Arc::clone(&seeing.notice),
    }
}

/// Whose fault it is that the engine cannot start.
fn blame(error: StartError) -> Failure {
    match error {
        StartError::Configuration(text) => Failure::configuration(text),
        StartError::System(text) => text.into(),
    }
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
