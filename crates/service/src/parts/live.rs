//! Live data as a part: what was kept is read by the user who will write it, and within the fence.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use staunch_config::{Config, Site};
use staunch_program::Failure;
use staunch_server::metrics::ContentFigures;
use staunch_server::{LiveConfig, LiveError, LiveShared, LiveSites};

use crate::descriptors::Descriptors;
use crate::live;
use crate::part::{BeforeBinding, Commit, Leaving, NewSettings, Part, Refusal, Surroundings};

/// How long either process of an upgrade waits for the other one to go on with live data: as long as the new
/// one may take until it serves.
const CARRY_PATIENCE: Duration = Duration::from_secs(30);

/// The name under which the line for what is held passes to the next process.
const LIVE: &str = "live";

/// The fabric's side of live data, which follows it for other servers.
pub(super) struct Follower {
    /// The number by which others know this server.
    pub(super) node: u16,
    /// Called when there are letters.
    pub(super) wake: Arc<dyn Fn() + Send + Sync>,
}

/// Live data: settings until it is started, then the live data of all sites.
pub(crate) struct LivePart {
    follower: Option<Follower>,
    unopened: Mutex<Unopened>,
    sites: OnceLock<Arc<LiveSites>>,
}

/// Settings and limits that live data is opened by.
#[derive(Default)]
struct Unopened {
    configs: Vec<LiveConfig>,
    /// The line by which what was held comes from the process before.
    carried: Option<File>,
}

impl LivePart {
    /// Live data, if a site has any.
    pub(super) fn open(
        opening: &BeforeBinding<'_>,
        left: &mut Descriptors,
        follower: Option<Follower>,
    ) -> Option<Self> {
        let carried = left.take(LIVE).map(File::from);
        let is_wanted = opening.config.sites.iter().any(|site| site.live.live);
        let unopened = Mutex::new(Unopened { carried, ..Unopened::default() });
        is_wanted.then(|| Self { follower, unopened, sites: OnceLock::new() })
    }

    /// Live data of all sites, once it is started.
    pub(crate) fn sites(&self) -> Option<&Arc<LiveSites>> {
        self.sites.get()
    }
}

impl Part for LivePart {
    fn bound(&self, around: &Surroundings<'_>) -> Result<(), Failure> {
        let node = self.follower.as_ref().map(|follower| follower.node);
        let mut configs = live::of(around.config, around.connections_max, node)?;
        let states = configs.iter_mut().filter_map(|site| site.state.as_mut());
        states.for_each(|state| state.is_awaited = around.takes_over);
        self.unopened.lock().unwrap_or_else(PoisonError::into_inner).configs = configs;
        Ok(())
    }

    fn describe(&self, config: &Config) -> Vec<String> {
        let sites = self.sites().into_iter().flat_map(|live| live.iter());
        sites.map(|live| format!("  live         {}", describe_site(live, &config.sites))).collect()
    }

    fn start(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        let unopened = &mut *self.unopened.lock().unwrap_or_else(PoisonError::into_inner);
        let Unopened { configs, mut carried } = std::mem::take(unopened);
        let carried = carried.as_mut().map(|carried| carried as &mut dyn Read);
        let live = LiveSites::open(configs, around.post.workers(), carried, around.notice).map_err(blame)?;
        // Set only here, and this runs once.
        let live = self.sites.get_or_init(|| live);
        if around.takes_over {
            live.await_former();
        }
        // Before the writers number anything.
        self.follower.iter().for_each(|follower| live.follow(Arc::clone(&follower.wake)));
        live.start(&around.post).map_err(|error| error.to_string())?;
        Ok(Vec::new())
    }

    fn prepare<'a>(&'a self, new: &'a NewSettings<'_>) -> Result<Commit<'a>, Refusal> {
        live::refuse_served_stores(new.started, new.config)?;
        Ok(Box::new(|| {
            let streams = self.sites().filter(|_| new.begins_access_log).map_or(0, |live| live.streams());
            let text = || {
                format!("the access log tells nothing of what readers at rest have asked, up to {streams}")
            };
            (streams > 0).then(text).into_iter().collect()
        }))
    }

    fn lend(&self, lent: &mut Descriptors) -> Result<(), String> {
        let Some(live) = self.sites() else { return Ok(()) };
        let line = lend(live).map_err(|error| format!("live data cannot be handed over: {error}"))?;
        lent.put(LIVE, line);
        Ok(())
    }

    fn take_back(&self) {
        self.sites().into_iter().for_each(|live| live.take_back());
    }

    fn take_over(&self) {
        self.sites().into_iter().for_each(|live| live.take_over());
    }

    fn drain(&self, leaving: Leaving) {
        let Some(live) = self.sites() else { return };
        if leaving.hands_over {
            live.hand_over();
        }
        live.drain(leaving.readers_within_s);
    }

    fn end(&self) {
        self.sites().into_iter().for_each(|live| live.end());
    }

    fn figures(&self, figures: &mut ContentFigures) {
        figures.live = self.sites().map(|live| live.figures());
    }
}

/// Stops the numbering of live data for a new process. Gives the end of a pair of sockets at which that one
/// reads what is held without a store, if anything is.
fn lend(live: &LiveSites) -> std::io::Result<Option<OwnedFd>> {
    if !live.has_unstored() {
        live.lend(std::io::sink())?;
        return Ok(None);
    }
    let (own, other) = UnixStream::pair()?;
    // A process that takes over and knows nothing of this never reads.
    own.set_write_timeout(Some(CARRY_PATIENCE))?;
    other.set_read_timeout(Some(CARRY_PATIENCE))?;
    live.lend(own)?;
    Ok(Some(other.into()))
}

/// Whose fault it is that live data cannot be opened.
fn blame(error: LiveError) -> Failure {
    match error {
        LiveError::State(_) | LiveError::Thread(_) | LiveError::Carried(_) => error.to_string().into(),
        _ => Failure::configuration(error.to_string()),
    }
}

/// How many readers a site may have, and what else is worth knowing of its live data.
fn describe_site(live: &LiveShared, sites: &[Site]) -> String {
    let figures = live.figures();
    let publish = if live.may_publish() { "" } else { "; nobody may publish (publish_token)" };
    let own = sites.iter().find(|site| site.name() == live.site());
    let is_hidden = |path: &&&str| {
        let root = own.and_then(|site| site.content.root.as_ref());
        root.is_some_and(|root| root.join(path.trim_start_matches('/')).exists())
    };
    let hidden = LiveShared::PATHS.iter().find(is_hidden);
    let hidden = hidden.map(|path| format!("; {path} is an endpoint, the file of that name is not served"));
    let kept = live.state_folder().map(|folder| {
        let topics = figures.topics;
        format!("; {topics} topics kept in {}", folder.display())
    });
    let kept = kept.unwrap_or_default();
    let name = match (sites.len(), live.site()) {
        (1, _) => String::new(),
        (_, "") => "every other host: ".to_owned(),
        (_, name) => format!("{name}: "),
    };
    format!("{name}at most {} readers{publish}{kept}{}", figures.readers_max, hidden.unwrap_or_default())
}
