//! The run of a server: sites over HTTP, in plain text and over TLS.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use staunch_config::Config;
use staunch_config::syntax::choice;
use staunch_confine::Identity;
use staunch_engine::{Engine, Settings, StartError};
use staunch_server::log::Logged;
use staunch_server::metrics::ContentFigures;
use staunch_server::{
    About, LiveConfig, LiveError, LiveHandler, LiveSites, Mail, MoreMetrics, Reporting, SitesShared,
    StatusPage,
};

use crate::acme::{self, Agent};
use crate::banner::{self, Told};
use crate::behind_khttpd;
use crate::certificates::{self, Certificates, Pairs};
use crate::config::{Failure, Loader};
use crate::confinement;
use crate::fabric::{OpenFabric, ServedFabric};
use crate::gate::{ServedGate, WorkingGate};
use crate::life::{Duties, Further, Takeover};
use crate::live;
use crate::reach::OwnAddresses;
use crate::reload::Reload;
use crate::seeing::Seeing;
use crate::settings;
use crate::sites;

/// How long either process of an upgrade waits for the other one to go on with live data: as long as the new
/// one may take until it serves.
const CARRY_PATIENCE: Duration = Duration::from_secs(30);

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
    let started = Instant::now(); // tidy: allow(clock): the status page tells for how long it has been up.
    let config = loader.load()?;
    let user = confinement::identity(&config)?;
    let handed = arrival.names();
    let mut settings = settings::of(&config, &handed)?;
    let mut seeing = Seeing::open(&config, arrival.takes_over(), user.as_ref())?;
    settings.notice = Arc::clone(&seeing.notice);
    let may_start_freely = start_starter(&config, &mut arrival, user.as_ref());
    let agent = Agent::start(&config, arrival.agent(), user.as_ref(), &seeing.notice)?;
    // As the starting user: keys are often nobody else's to read.
    let (certificates, pairs) = secure(&config, &mut arrival, &mut settings, &seeing)?;
    let sites = SitesShared::open_what_can_be(sites::of(&config), Arc::clone(&seeing.notice))?;
    let mut engine = bind(settings, &mut arrival, &config)?;
    let unwatched = certificates.replace(&pairs, &config, engine.secured_addresses());
    let fabric = OpenFabric::open(&config, arrival.fabric(), arrival.takes_over(), &seeing.notice)?;
    let live = live::of(&config, engine.connections_max().0, fabric.as_ref().map(OpenFabric::node))?;
    let gate = gate(&config, &engine, &seeing, arrival.takes_over())?;
    let host = OwnAddresses::ask();
    // Before the first thread is started, and before logs are opened: as the user who will open them again.
    let confinement = confinement::confine(&mut engine, &config, loader.file(), user.as_ref())?;
    let live = open_live(live, &engine, &seeing, &mut arrival)?;
    open_logs(&seeing, &config)?;
    let fabric = start(&engine, &sites, live.as_ref(), fabric, &seeing)?;
    look_after(&certificates, agent.as_ref(), &config, &engine, &seeing, arrival.takes_over())?;
    let page = status_page(&config, &engine, &sites, started);
    let told = Told {
        config: &config,
        has_file: loader.file().is_some(),
        host,
        confinement: &confinement,
        gate: gate.as_ref().map(|gate| gate.words.as_str()),
        live: live.as_deref(),
        pairs: &pairs,
    };
    let pid_file = arrival.write_pid_file(config.process.pid_file.clone())?;
    banner::print(&seeing.block, &told, &engine);
    let mut gate = gate.map(ServedGate::run).transpose()?;
    announce(&seeing, &config, pairs.into_words().chain(unwatched));
    let figures = content(&sites, &certificates, live.as_ref(), fabric.as_ref());
    seeing.show(&engine, started, figures, Some(metrics(gate.as_mut(), &certificates, agent.as_ref())))?;
    banner::watch_preparation(&sites, &seeing.block);
    let seeing = Arc::new(seeing);
    let reload = Reload {
        loader: loader.clone(),
        started: config,
        handed,
        confinement,
        has_starter: may_start_freely,
        control: engine.control(),
        sites: Arc::clone(&sites),
        certificates: Arc::clone(&certificates),
        agent: agent.clone(),
        live: live.clone(),
        seeing: Arc::clone(&seeing),
    };
    let duties = duties(&engine, reload, &seeing, (live.clone(), fabric.clone()), agent);
    arrival.keep(duties, &pid_file)?;
    let https = &certificates.https;
    let end = engine.run(|worker| {
        let live = LiveHandler::new(sites.handler(), live.as_ref(), worker);
        Logged::new(Reporting::new(live, page.clone(), Arc::clone(https)), Arc::clone(&seeing.log), worker)
    });
    end_all(live.as_deref(), fabric.as_deref());
    gate.into_iter().for_each(|gate| gate.take_down());
    drop(pid_file);
    seeing.finish();
    Ok(end.map_err(|error| error.to_string())?)
}

/// Whether a process that is not confined can start the next one: this one, or one that is started for it.
fn start_starter(config: &Config, arrival: &mut Takeover, user: Option<&Identity>) -> bool {
    config.process.sandbox == choice::Sandbox::Off || arrival.start_starter(user)
}

/// The engine, with everything that connections are taken from.
fn bind(settings: Settings, arrival: &mut Takeover, config: &Config) -> Result<Engine<Mail>, Failure> {
    let mut engine = Engine::bind_or_take_over(settings, arrival.sockets()).map_err(blame)?;
    behind_khttpd::open(&mut engine, config)?;
    Ok(engine)
}

/// Reads certificates and keys of tickets, and tells the engine where TLS is spoken.
fn secure(
    config: &Config,
    arrival: &mut Takeover,
    settings: &mut Settings,
    seeing: &Seeing,
) -> Result<(Arc<Certificates>, Pairs), Failure> {
    let secured = settings::secured(config, &arrival.names(), &settings.listen)?;
    let certificates = Arc::new(Certificates::new()?);
    if let Some(tickets) = arrival.tickets() {
        certificates::take_over_tickets(certificates.context.tickets(), tickets, &seeing.notice);
    }
    let pairs = certificates.read_to_start(config)?;
    settings.tls = Some(certificates.settings(config, secured));
    Ok((certificates, pairs))
}

/// Opens the logs, and starts the threads that write.
fn open_logs(seeing: &Seeing, config: &Config) -> Result<(), Failure> {
    seeing.commit(seeing.prepare(&config.logs)?);
    Ok(seeing.block.start().map_err(|error| format!("cannot start a thread: {error}"))?)
}

/// What stands behind the server's own metrics.
fn metrics(
    gate: Option<&mut WorkingGate>,
    certificates: &Arc<Certificates>,
    agent: Option<&Agent>,
) -> MoreMetrics {
    acme::metrics(gate.and_then(|gate| gate.metrics.take()), certificates, agent)
}

/// Has certificates looked after: files are watched, and the agent is told what is wanted.
fn look_after<M: Send + 'static>(
    certificates: &Arc<Certificates>,
    agent: Option<&Agent>,
    config: &Config,
    engine: &Engine<M>,
    seeing: &Seeing,
    takes_over: bool,
) -> Result<(), String> {
    certificates::start(certificates, Arc::clone(&seeing.notice))?;
    let Some(agent) = agent else { return Ok(()) };
    let wishes = acme::wishes(config, [engine.addresses(), engine.secured_addresses()]);
    agent.listen(certificates, Arc::clone(&seeing.notice), wishes, takes_over)
}

/// The page about the server, if one is asked for.
fn status_page<M: Send + 'static>(
    config: &Config,
    engine: &Engine<M>,
    sites: &Arc<SitesShared>,
    started: Instant,
) -> Option<Arc<StatusPage>> {
    let about = About { version: env!("CARGO_PKG_VERSION"), io: engine.backend().0, stats: engine.stats() };
    let path = config.process.status.clone()?;
    Some(Arc::new(StatusPage::new(path, about, Arc::clone(sites), started)))
}

/// Says that it serves, and what is not as it was meant.
fn announce(seeing: &Seeing, config: &Config, further: impl Iterator<Item = String>) {
    seeing.announce();
    warnings(config).into_iter().chain(further).for_each(|text| (seeing.notice)(&text));
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
    let addresses = [engine.addresses(), engine.secured_addresses()].concat();
    ServedGate::put_up(interfaces, &addresses, &seeing.notice)
}

/// Starts the threads behind the workers.
fn start(
    engine: &Engine<Mail>,
    sites: &SitesShared,
    live: Option<&Arc<LiveSites>>,
    fabric: Option<OpenFabric>,
    seeing: &Seeing,
) -> Result<Option<Arc<ServedFabric>>, Failure> {
    sites.start(&engine.post())?;
    // Before the writers of live data number anything.
    fabric.iter().try_for_each(|fabric| fabric.follow(live))?;
    if let Some(live) = live {
        live.start(&engine.post()).map_err(|error| error.to_string())?;
    }
    let start = |fabric: OpenFabric| {
        let notice = Arc::clone(&seeing.notice);
        ServedFabric::start(fabric, live.cloned(), engine.stats(), notice).map(Arc::new)
    };
    fabric.map(start).transpose()
}

/// Ends live data, and then the fabric, which tells what was published last.
fn end_all(live: Option<&LiveSites>, fabric: Option<&ServedFabric>) {
    live.iter().for_each(|live| live.end());
    fabric.iter().for_each(|fabric| fabric.end());
}

/// What figures tell of sites, of live data and of the fabric.
fn content(
    sites: &Arc<SitesShared>,
    certificates: &Arc<Certificates>,
    live: Option<&Arc<LiveSites>>,
    fabric: Option<&Arc<ServedFabric>>,
) -> impl Fn() -> ContentFigures + Send + Sync + use<> {
    let (sites, live, fabric) = (Arc::clone(sites), live.cloned(), fabric.cloned());
    let certificates = Arc::clone(certificates);
    move || ContentFigures {
        sites: sites.figures(),
        live: live.as_ref().map(|live| live.figures()),
        fabric: fabric.as_ref().map(|fabric| fabric.figures()),
        troubles: [sites.troubles(), certificates.troubles()].concat(),
    }
}

/// Live data, if a site has any. What was kept is read by the user who will write it, and within the
/// confinement.
fn open_live<M: Send + 'static>(
    mut told: Vec<LiveConfig>,
    engine: &Engine<M>,
    seeing: &Seeing,
    arrival: &mut Takeover,
) -> Result<Option<Arc<LiveSites>>, Failure> {
    if told.is_empty() {
        return Ok(None);
    }
    let states = told.iter_mut().filter_map(|site| site.state.as_mut());
    states.for_each(|state| state.is_awaited = arrival.takes_over());
    let mut carried = arrival.live().map(File::from);
    let carried = carried.as_mut().map(|carried| carried as &mut dyn Read);
    let opened = LiveSites::open(told, engine.post().workers(), carried, &seeing.notice);
    if let (Ok(live), true) = (&opened, arrival.takes_over()) {
        live.await_former();
    }
    opened.map(Some).map_err(|error| match error {
        LiveError::State(_) | LiveError::Thread(_) | LiveError::Carried(_) => {
            Failure::from(error.to_string())
        }
        _ => Failure::configuration(error.to_string()),
    })
}

/// What is done when signals come.
fn duties<M: Send + 'static>(
    engine: &Engine<M>,
    mut reload: Reload,
    seeing: &Arc<Seeing>,
    (live, fabric): (Option<Arc<LiveSites>>, Option<Arc<ServedFabric>>),
    agent: Option<Agent>,
) -> Duties {
    let (line, certificates) = (agent.clone(), Arc::clone(&reload.certificates));
    let say = Arc::clone(&seeing.notice);
    let leaving_s = leaving_s(reload.drain_times().stop);
    let [serving, ending, reopening, finishing, noting] = [(); 5].map(|()| Arc::clone(seeing));
    let [lending, returning, succeeding, leaving] = [(); 4].map(|()| live.clone());
    let [fabric_lending, fabric_returning, fabric_leaving] = [(); 3].map(|()| fabric.clone());
    Duties {
        control: engine.control(),
        backend: engine.backend().0,
        shares_queues: engine.shares_queues(),
        drain: reload.drain_times(),
        environment: reload.confinement.environment().into_iter().collect(),
        reload: Box::new(move || reload.run()),
        note_reload: Box::new(move |is_applied, text| noting.note_reload(is_applied, text)),
        reopen: Box::new(move || reopening.reopen()),
        lend: Box::new(move || {
            let live = lending.as_ref().map_or(Ok(None), |live| lend(live))?;
            let fabric = fabric_lending.as_ref().and_then(|fabric| fabric.lend());
            Ok(Further { live, fabric, ..Further::default() })
        }),
        take_back: Box::new(move || {
            returning.iter().for_each(|live| live.take_back());
            fabric_returning.iter().for_each(|fabric| fabric.take_back());
        }),
        take_over: Box::new(move || succeeding.iter().for_each(|live| live.take_over())),
        serve: Box::new(move || serving.serve()),
        end: Box::new(move |hands_over| {
            ending.drain(hands_over);
            if let Some(agent) = agent.as_ref().filter(|_| hands_over) {
                agent.rest();
            }
            if let Some(live) = &live {
                if hands_over {
                    live.hand_over();
                }
                live.drain(leaving_s);
            }
            if let Some(fabric) = fabric.as_ref().filter(|_| hands_over) {
                fabric.hand_over();
            }
        }),
        finish: Box::new(move || {
            end_all(leaving.as_deref(), fabric_leaving.as_deref());
            finishing.finish_own();
        }),
        further: Box::new(move || Further {
            agent: line.as_ref().and_then(Agent::line),
            tickets: certificates::hand_over_tickets(certificates.context.tickets(), &say),
            ..Further::default()
        }),
        say: Arc::clone(&seeing.notice),
    }
}

/// Stops the numbering of live data for a new process. Gives the end of a pair of sockets at which that one
/// reads what is held without a store, if anything is.
fn lend(live: &LiveSites) -> Result<Option<OwnedFd>, String> {
    let fault = |error: std::io::Error| format!("live data cannot be handed over: {error}");
    if !live.has_unstored() {
        live.lend(std::io::sink()).map_err(fault)?;
        return Ok(None);
    }
    let (own, other) = UnixStream::pair().map_err(fault)?;
    // A process that takes over and knows nothing of this never reads.
    own.set_write_timeout(Some(CARRY_PATIENCE)).map_err(fault)?;
    other.set_read_timeout(Some(CARRY_PATIENCE)).map_err(fault)?;
    live.lend(own).map_err(fault)?;
    Ok(Some(other.into()))
}

/// In how many seconds readers of live data leave: before the drain is over, for what is under way needs some
/// of it.
fn leaving_s(drain: Duration) -> u64 {
    (drain.as_secs() / 2).max(1)
}

/// Whose fault it is that the engine cannot start.
fn blame(error: StartError) -> Failure {
    match error {
        StartError::Configuration(text) => Failure::configuration(text),
        StartError::System(text) => text.into(),
    }
}
