//! `staunch serve`: sites over HTTP/1.1.

use std::sync::Arc;
use std::time::Instant;

use staunch_config::Config;
use staunch_engine::{Engine, StartError};
use staunch_server::log::Logged;
use staunch_server::{About, Reporting, SitesShared, StatusPage};

use crate::banner::{self, Told};
use crate::config::{self, Arguments, Failure, Loader};
use crate::confinement;
use crate::gate::ServedGate;
use crate::life::{Duties, Takeover};
use crate::reach::OwnAddresses;
use crate::reload::Reload;
use crate::seeing::Seeing;
use crate::settings;
use crate::sites;

/// Serves until it is ended.
///
/// # Errors
/// Whatever keeps it from serving, in a sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.test {
        return config::test(&arguments.loader);
    }
    let mut arrival = Takeover::new()?;
    // tidy: allow(clock): the status page tells for how long it has been up.
    let started = Instant::now();
    let config = arguments.loader.load()?;
    let user = confinement::identity(&config)?;
    let handed = arrival.names();
    let mut settings = settings::of(&config, &handed)?;
    let mut seeing = Seeing::open(&config, arrival.takes_over())?;
    settings.notice = Arc::clone(&seeing.notice);
    let sites = SitesShared::open_with_notice(sites::of(&config), Arc::clone(&seeing.notice))?;
    let mut engine = Engine::bind_or_take_over(settings, arrival.sockets()).map_err(blame)?;
    let gate = gate(&config, &engine, &seeing, arrival.takes_over())?;
    let host = OwnAddresses::ask();
    // Before the first thread is started, and before logs are opened: as the user who will open them again.
    let confinement = confinement::confine(&mut engine, &config, arguments.loader.file(), user.as_ref())?;
    seeing.commit(seeing.prepare(&config.logs)?);
    seeing.block.start().map_err(|error| format!("cannot start a thread: {error}"))?;
    sites.start(&engine.post())?;
    let about = About { version: env!("CARGO_PKG_VERSION"), io: engine.backend().0, stats: engine.stats() };
    let page = config.process.status.clone();
    let page = page.map(|path| Arc::new(StatusPage::new(path, about, Arc::clone(&sites), started)));
    let gate_words = gate.as_ref().map(|gate| gate.words.clone());
    let has_file = arguments.loader.file().is_some();
    let gate_words = gate_words.as_deref();
    let told = Told { config: &config, has_file, host, confinement: &confinement, gate: gate_words };
    banner::print(&seeing.block, &told, &engine);
    let mut gate = gate.map(ServedGate::run).transpose()?;
    seeing.announce();
    warnings(&config).iter().for_each(|text| (seeing.notice)(text));
    let shown = Arc::clone(&sites);
    seeing.show(
        &engine,
        started,
        move || shown.figures(),
        gate.as_mut().and_then(|gate| gate.metrics.take()),
    )?;
    banner::watch_preparation(&sites, &seeing.block);
    let seeing = Arc::new(seeing);
    let reload = Reload {
        loader: arguments.loader.clone(),
        started: config,
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

/// What is not as it was meant, and no reason not to serve.
fn warnings(config: &Config) -> Vec<String> {
    let unknown = Loader::unknown_variables().into_iter().map(|text| format!("warning: {text}"));
    settings::without_ipv6(config).map(str::to_owned).into_iter().chain(unknown).collect()
}

/// The gate, if one is asked for. A process that takes over was born confined, and finds that of the one
/// before it on the interface: it goes without, and says so.
fn gate<M: Send + 'static>(
    config: &Config,
    engine: &Engine<M>,
    seeing: &Seeing,
    takes_over: bool,
) -> Result<Option<ServedGate>, String> {
    let interfaces = &config.process.gate;
    if takes_over && !interfaces.is_empty() {
        (seeing.notice)(
            "gate: an upgraded server cannot put it up again, it ends with the process before this \
                         one; start the server anew, or run `staunch gate` beside it",
        );
        return Ok(None);
    }
    ServedGate::put_up(interfaces, engine.addresses(), &seeing.notice)
}

/// What is done when signals come.
fn duties<M: Send + 'static>(engine: &Engine<M>, mut reload: Reload, seeing: &Arc<Seeing>) -> Duties {
    let [serving, ending, reopening, finishing] = [(); 4].map(|()| Arc::clone(seeing));
    Duties {
        control: engine.control(),
        backend: engine.backend().0,
        shares_queues: engine.shares_queues(),
        drain_timeout: reload.drain_timeout(),
        pid_file: reload.started.process.pid_file.clone(),
        environment: reload.confinement.environment().into_iter().collect(),
        reload: Box::new(move || reload.run()),
        reopen: Box::new(move || reopening.reopen()),
        serve: Box::new(move || serving.serve()),
        end: Box::new(move |hands_over| ending.drain(hands_over)),
        finish: Box::new(move || finishing.finish_own()),
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
