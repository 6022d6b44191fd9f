//! The run of a server: sites over HTTP, in plain text and over TLS.

use std::sync::Arc;
use std::time::Instant;

use staunch_config::Config;
use staunch_config::syntax::choice;
use staunch_confine::Identity;
use staunch_engine::{Engine, Notice, Settings, StartError};
use staunch_netio::memory;
use staunch_program::Failure;
use staunch_server::{About, Front, FrontParts, Mail, StatusPage};

use crate::banner::{self, Told};
use crate::behind_khttpd;
use crate::config::{Loader, old_hashes};
use crate::confinement;
use crate::life::{Duties, Takeover};
use crate::part::{BeforeBinding, Surroundings};
use crate::parts::{Parts, Served};
use crate::reach::OwnAddresses;
use crate::reload::Reload;
use crate::seeing::Seeing;
use crate::settings;

/// Serves until it is ended.
///
/// # Errors
/// Whatever keeps it from serving, in a sentence.
pub fn run(loader: &Loader) -> Result<(), Failure> {
    let arrival = Takeover::new()?;
    let last_words = arrival.last_words();
    let served = serve(loader, arrival);
    if let (Err(failure), Some(last_words)) = (&served, last_words) {
        last_words.say(&failure.text);
    }
    served
}

/// Serves until it is told to end.
fn serve(loader: &Loader, mut arrival: Takeover) -> Result<(), Failure> {
    memory::share_heaps_within_a_limit();
    let started = Instant::now(); // tidy: allow(clock): the status page tells for how long it has been up.
    let config = loader.load()?;
    let user = confinement::identity(&config)?;
    let handed = arrival.names();
    let mut settings = settings::of(&config, &handed)?;
    let secured = settings::secured(&config, &handed, &settings.listen)?;
    let takes_over = arrival.takes_over();
    let mut seeing = Seeing::open(&config, takes_over, user.as_ref())?;
    settings.notice = Arc::clone(&seeing.notice);
    let has_starter = start_starter(&config, &mut arrival, user.as_ref());
    let opening = BeforeBinding { config: &config, user: user.as_ref(), notice: &seeing.notice, takes_over };
    let parts = Parts::open(&opening, arrival.descriptors())?;
    settings.tls = Some(parts.served.certificates.settings(&config, secured));
    let mut engine = bind(settings, &mut arrival, &config, user.as_ref())?;
    parts.bound(&surroundings(&engine, &config, &seeing.notice, takes_over))?;
    let host = OwnAddresses::ask();
    // Before the first thread is started, and before logs are opened: as the user who will open them again.
    let confinement = confinement::confine(&mut engine, &config, loader.file(), user.as_ref())?;
    open_logs(&seeing, &config)?;
    let remarks = parts.start(&surroundings(&engine, &config, &seeing.notice, takes_over))?;
    let pid_file = arrival.write_pid_file(config.process.pid_file.clone())?;
    let (confined, has_file) = (&confinement, loader.file().is_some());
    let told = Told { config: &config, has_file, host, confinement: confined, parts: &parts };
    banner::print(&seeing.block, &told, &engine);
    announce(&seeing, &config, remarks);
    let parts = Arc::new(parts);
    seeing.show(&engine, started, &parts)?;
    banner::watch_preparation(&parts.served.sites, &seeing.block);
    let (seeing, control) = (Arc::new(seeing), engine.control());
    let page = status_page(&config, &engine, &parts.served, started);
    let reload = Reload {
        loader: loader.clone(),
        started: config,
        handed,
        confinement,
        has_starter,
        control,
        parts: Arc::clone(&parts),
        seeing: Arc::clone(&seeing),
    };
    arrival.keep(duties(&engine, reload), &pid_file)?;
    let control = engine.control();
    let end = work(engine, &parts.served, &seeing, page);
    control.remove_files();
    parts.end();
    drop(pid_file);
    seeing.finish();
    end
}

/// Whether a process that is not confined can start the next one: this one, or one that is started for it.
fn start_starter(config: &Config, arrival: &mut Takeover, user: Option<&Identity>) -> bool {
    config.process.sandbox == choice::Sandbox::Off || arrival.start_starter(user)
}

/// The engine, with everything that connections are taken from.
fn bind(
    settings: Settings,
    arrival: &mut Takeover,
    config: &Config,
    user: Option<&Identity>,
) -> Result<Engine<Mail>, Failure> {
    let mut engine = Engine::bind_or_take_over(settings, arrival.sockets()).map_err(blame)?;
    if let Some(user) = user.filter(|_| rustix::process::geteuid().is_root()) {
        engine.control().give_files(|file| user.give(file)).map_err(blame)?;
    }
    behind_khttpd::open(&mut engine, config)?;
    Ok(engine)
}

/// The surroundings of parts, once sockets are bound.
fn surroundings<'a>(
    engine: &'a Engine<Mail>,
    config: &'a Config,
    notice: &'a Notice,
    takes_over: bool,
) -> Surroundings<'a> {
    Surroundings {
        config,
        notice,
        takes_over,
        plain: engine.addresses(),
        secured: engine.secured_addresses(),
        connections_max: engine.connections_max().0,
        post: engine.post(),
        stats: engine.stats(),
    }
}

/// Opens the logs, and starts the threads that write.
fn open_logs(seeing: &Seeing, config: &Config) -> Result<(), Failure> {
    seeing.start_logs(config)?;
    Ok(seeing.block.start().map_err(|error| format!("cannot start a thread: {error}"))?)
}

/// The page about the server, if one is asked for.
fn status_page(
    config: &Config,
    engine: &Engine<Mail>,
    served: &Served,
    started: Instant,
) -> Option<Arc<StatusPage>> {
    let about = About { version: env!("CARGO_PKG_VERSION"), io: engine.backend().0, stats: engine.stats() };
    let path = config.process.status.clone()?;
    Some(Arc::new(StatusPage::new(path, about, Arc::clone(&served.sites), started)))
}

/// Says that it serves, and what is not as it was meant.
fn announce(seeing: &Seeing, config: &Config, further: Vec<String>) {
    seeing.announce();
    warnings(config).into_iter().chain(further).for_each(|text| (seeing.notice)(&text));
}

/// Sentences about settings that may not be meant so, and are no reason not to serve.
fn warnings(config: &Config) -> Vec<String> {
    let unknown = Loader::unknown_variables().into_iter().map(|text| format!("warning: {text}"));
    let of_values = [config.warnings(), old_hashes::warnings(config)].concat();
    let of_values = of_values.into_iter().map(|text| format!("warning: {text}"));
    settings::without_ipv6(config).map(str::to_owned).into_iter().chain(unknown).chain(of_values).collect()
}

/// Duties of the process when signals come.
fn duties(engine: &Engine<Mail>, mut reload: Reload) -> Duties {
    Duties {
        control: engine.control(),
        backend: engine.backend().0,
        shares_queues: engine.shares_queues(),
        drain: reload.drain_times(),
        environment: reload.confinement.environment().into_iter().collect(),
        parts: Arc::clone(&reload.parts),
        seeing: Arc::clone(&reload.seeing),
        reload: Box::new(move || reload.run()),
    }
}

/// Has the workers serve until they are told to end.
fn work(
    engine: Engine<Mail>,
    served: &Served,
    seeing: &Seeing,
    page: Option<Arc<StatusPage>>,
) -> Result<(), Failure> {
    let parts = FrontParts {
        sites: Arc::clone(&served.sites),
        live: served.live.as_ref().and_then(|live| live.sites()).cloned(),
        proxy: served.proxy.shared().cloned(),
        page,
        https: Arc::clone(served.certificates.https()),
        log: Arc::clone(&seeing.log),
    };
    let end = engine.run(|worker| Front::new(&parts, worker));
    Ok(end.map_err(|error| error.to_string())?)
}

/// Whose fault it is that the engine cannot start.
fn blame(error: StartError) -> Failure {
    match error {
        StartError::Configuration(text) => Failure::configuration(text),
        StartError::System(text) => text.into(),
    }
}
