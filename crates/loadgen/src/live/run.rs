//! A run with readers from begin to end: they gather, updates are published, the last deliveries are awaited.
//!
//! It must never touch a connection: it only listens to the threads, and tells them when a phase is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, UNIX_EPOCH};

use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use staunch_netio::{Target, clock, descriptors};

use super::crew::LiveCrew;
use super::crowd::CrowdPlan;
use super::news::{CrewNews, CrowdNews};
use super::outcome::{LIVE_STEP_MS, LiveCounts, LiveMoment, LiveOutcome, LivePhase, LiveTimes, Publications};
use super::plan::{LivePlan, LiveWay, PublishPlan, TOPIC_VARIABLE};
use super::publisher::{PublishRequest, PublisherPlan};
use super::reader::SocketGreeting;
use super::shared::LiveShared;
use super::{socket, warnings};
use crate::backend::Backend;
use crate::describe;
use crate::fault::Fault;
use crate::probe::ServerProbe;
use crate::schedule::{Schedule, Share};
use crate::worker::RunControl;

/// A run whose readers find no server for so long, or nothing but refusals, ends before their time is over.
const HOPELESS_NS: u64 = 2_000_000_000;

/// Carries a plan out, and shows where it stands every [`LIVE_STEP_MS`]. The control ends it early: what was
/// published until then is awaited and settled.
///
/// # Errors
/// What keeps the plan from being carried out. What the server does is never an error.
pub fn run_live(
    plan: &LivePlan,
    control: &Arc<RunControl>,
    observe: &mut dyn FnMut(&LiveMoment),
) -> Result<LiveOutcome, Fault> {
    plan.check()?;
    let backend = Backend::choose(plan.io)?;
    // A limit that cannot be raised shows as connections that could not be begun.
    let _ = descriptors::raise_descriptor_limit();
    let probe = plan.probe.as_ref().map(ServerProbe::open).transpose()?;
    let began = clock::unix_time();
    let unix_ns = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let shared = Arc::new(LiveShared::new(plan.topics.len(), unix_ns.saturating_sub(clock::now_ns())));
    // Numbers of earlier runs may still be with the server: they are told apart by this.
    let run = (unix_ns / 1000) as u32 ^ std::process::id().rotate_left(16);
    let publisher =
        plan.publishing.as_ref().map(|publishing| publisher(plan, publishing, run)).transpose()?;
    let run = publisher.is_some().then_some(run);
    let crew = LiveCrew::hire(crowds(plan, run), publisher, backend, &shared, control)?;
    let mut conductor = Conductor::new(plan, crew, shared, probe);
    conductor.conduct(control, observe)?;
    conductor.crew.dismiss()?;
    let engine = describe::engine(backend.name(), &plan.threads);
    Ok(conductor.outcome(began, engine))
}

/// What each thread of readers is to do.
fn crowds(plan: &LivePlan, run: Option<u32>) -> Vec<(CrowdPlan, Option<usize>)> {
    let readers = &plan.readers;
    let of = plan.threads.len();
    let requests: Arc<[Vec<u8>]> = readers.urls.iter().map(|url| super::request::of(url, readers)).collect();
    let greetings: Arc<[_]> = match readers.way {
        LiveWay::Events => Arc::default(),
        LiveWay::WebSocket => plan.topics.iter().map(|topic| greeting(&readers.messages, topic)).collect(),
    };
    let gap_ns = |per_s: f64| (1e9 * of as f64 / per_s.max(1e-3)) as u64;
    let numbers = |thread: usize| (thread..readers.count as usize).step_by(of);
    let crowd = |(thread, cpu): (usize, &Option<usize>)| {
        let plan = CrowdPlan {
            thread,
            topics: numbers(thread).map(|number| (number % plan.topics.len()) as u32).collect(),
            stalled: numbers(thread).take_while(|number| *number < readers.stalled as usize).count(),
            requests: Arc::clone(&requests),
            greetings: Arc::clone(&greetings),
            targets: targets(plan, thread),
            gap_ns: readers.open_per_s.map_or(0, gap_ns),
            cut_every_ns: readers.cut_per_s.map(gap_ns),
            resume: readers.resume,
            may_skip: readers.may_skip,
            return_ns: readers.return_after.map(nanoseconds),
            run,
            random: Xoshiro256PlusPlus::seed_from_u64(plan.seed.wrapping_add(thread as u64)),
        };
        (plan, *cpu)
    };
    plan.threads.iter().enumerate().map(crowd).collect()
}

/// What begins the WebSockets of a topic's readers.
fn greeting(messages: &[String], topic: &str) -> SocketGreeting {
    let mut frames = Vec::new();
    for message in messages {
        socket::append_message(&message.replace(TOPIC_VARIABLE, topic), &mut frames);
    }
    SocketGreeting { frames: frames.into(), messages: messages.len() }
}

/// A target per source, those of this thread first, or one without a source.
fn targets(plan: &LivePlan, thread: usize) -> Vec<Target> {
    let target = |source| Target { source, ..Target::new(plan.address.clone()) };
    if plan.sources.is_empty() {
        return vec![target(None)];
    }
    let mut sources = plan.sources.clone();
    let turn = thread * sources.len() / plan.threads.len();
    sources.rotate_left(turn);
    sources.into_iter().map(|source| target(Some(source))).collect()
}

fn publisher(plan: &LivePlan, publishing: &PublishPlan, run: u32) -> Result<PublisherPlan, Fault> {
    let share = Share { part: 0, parts: 1 };
    let requests = publishing.urls.iter().zip(&plan.topics).map(|(url, topic)| {
        let head = super::request::publication_head(url, publishing);
        PublishRequest::new(&head, &publishing.body, topic)
    });
    Ok(PublisherPlan {
        requests: requests.collect(),
        target: Target::new(publishing.address.clone()),
        connections: publishing.connections,
        schedule: Schedule::new(&publishing.arrivals, &publishing.profile, plan.seed, share)?,
        updates: publishing.updates.unwrap_or(u64::MAX),
        until_ns: plan.duration.map_or(u64::MAX, nanoseconds),
        value_bytes: publishing.value_bytes,
        run,
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What a thread of readers has told last.
#[derive(Debug, Default)]
struct Standing {
    phase: Option<LivePhase>,
    open: u64,
    awaited: u64,
    counts: LiveCounts,
    is_over: bool,
}

/// Leads a run through its phases.
struct Conductor<'a> {
    plan: &'a LivePlan,
    crew: LiveCrew,
    shared: Arc<LiveShared>,
    standings: Vec<Standing>,
    phase: LivePhase,
    began_ns: u64,
    now_ns: u64,
    /// When the phase began.
    since_ns: u64,
    next_step_ns: u64,
    /// How many numbers had come when one did last, and when that was.
    delivered: (u64, u64),
    delay_max_ns: u64,
    gathered: u64,
    gathering_ns: u64,
    publishing_ns: u64,
    open_at_end: u64,
    publications: Publications,
    is_published: bool,
    times: LiveTimes,
    statuses: BTreeMap<u16, u64>,
    first_fault: Option<String>,
    busy_ns: Vec<u64>,
    probe: Option<ServerProbe>,
    /// Processor time of the server, outside the kernel and in it: until publishing began, then since.
    server_ms: Option<(u64, u64)>,
}

impl<'a> Conductor<'a> {
    fn new(plan: &'a LivePlan, crew: LiveCrew, shared: Arc<LiveShared>, probe: Option<ServerProbe>) -> Self {
        let now_ns = clock::now_ns();
        Self {
            plan,
            crew,
            shared,
            standings: plan.threads.iter().map(|_| Standing::default()).collect(),
            phase: LivePhase::Gathering,
            began_ns: now_ns,
            now_ns,
            since_ns: now_ns,
            next_step_ns: now_ns + LIVE_STEP_MS * 1_000_000,
            delivered: (0, now_ns),
            delay_max_ns: 0,
            gathered: 0,
            gathering_ns: 0,
            publishing_ns: 0,
            open_at_end: 0,
            publications: Publications::default(),
            is_published: false,
            times: LiveTimes::default(),
            statuses: BTreeMap::new(),
            first_fault: None,
            busy_ns: vec![0; plan.threads.len()],
            probe,
            server_ms: None,
        }
    }

    fn conduct(&mut self, control: &RunControl, observe: &mut dyn FnMut(&LiveMoment)) -> Result<(), Fault> {
        while self.standings.iter().any(|standing| !standing.is_over) {
            self.now_ns = clock::now_ns();
            let wait = Duration::from_nanos(self.next_step_ns.saturating_sub(self.now_ns));
            match self.crew.news.recv_timeout(wait) {
                Ok(told) => self.hear(told)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Fault::new("a thread of the generator ended before its time"));
                }
            }
            self.now_ns = clock::now_ns();
            self.go_on(control);
            if self.now_ns >= self.next_step_ns {
                self.next_step_ns = self.now_ns + LIVE_STEP_MS * 1_000_000;
                observe(&self.moment());
            }
        }
        observe(&self.moment());
        Ok(())
    }

    fn hear(&mut self, told: CrewNews) -> Result<(), Fault> {
        match told {
            CrewNews::Crowd(news) => self.hear_crowd(*news),
            CrewNews::Published(told) => {
                let (publications, publish, drift) = *told;
                self.publications = publications;
                (self.times.publish, self.times.drift) = (publish, drift);
                self.is_published = true;
            }
            CrewNews::Failed(fault) => return Err(fault),
        }
        Ok(())
    }

    fn hear_crowd(&mut self, news: CrowdNews) {
        let CrowdNews { thread, phase, open, awaited, counts, delay_max_ns, first_fault, last } = news;
        self.delay_max_ns = self.delay_max_ns.max(delay_max_ns);
        self.first_fault = self.first_fault.take().or(first_fault);
        let is_over = last.is_some();
        self.standings[thread] = Standing { phase, open, awaited, counts, is_over };
        if let Some((meter, busy_ns)) = last {
            self.busy_ns[thread] = busy_ns;
            self.times.delay.merge(&meter.delay);
            self.times.open.merge(&meter.open);
            for (status, count) in meter.statuses {
                *self.statuses.entry(status).or_default() += count;
            }
        }
        let delivered = self.counts().delivered;
        if delivered > self.delivered.0 {
            self.delivered = (delivered, self.now_ns);
        }
    }

    fn counts(&self) -> LiveCounts {
        let mut counts = LiveCounts::default();
        self.standings.iter().for_each(|standing| counts += standing.counts);
        counts
    }

    fn open(&self) -> u64 {
        self.standings.iter().map(|standing| standing.open).sum()
    }

    /// Begins the next phase when this one is over.
    fn go_on(&mut self, control: &RunControl) {
        let passed_ns = self.now_ns.saturating_sub(self.since_ns);
        match self.phase {
            LivePhase::Gathering => {
                let open = self.open();
                if control.is_stopped() || self.is_hopeless(passed_ns) {
                    self.gathered = open;
                    self.gathering_ns = passed_ns;
                    self.end();
                } else if open >= u64::from(self.plan.readers.count)
                    || passed_ns >= nanoseconds(self.plan.join_within)
                {
                    self.gathered = open;
                    self.gathering_ns = passed_ns;
                    self.begin(LivePhase::Publishing);
                    self.crew.publish();
                }
            }
            LivePhase::Publishing => {
                let is_listening = self.plan.publishing.is_none();
                let is_over = self.plan.duration.is_some_and(|duration| passed_ns >= nanoseconds(duration));
                if is_listening && (is_over || control.is_stopped()) {
                    self.publishing_ns = passed_ns;
                    self.end();
                } else if self.is_published {
                    self.publishing_ns = passed_ns;
                    self.begin(LivePhase::Settling);
                }
            }
            LivePhase::Settling => {
                let has_all = |standing: &Standing| {
                    standing.phase == Some(LivePhase::Settling) && standing.awaited == 0
                };
                let quiet_since_ns = self.delivered.1.max(self.since_ns);
                let is_quiet = self.now_ns.saturating_sub(quiet_since_ns) >= nanoseconds(self.plan.settle);
                if self.shared.phase().is_some() && (self.standings.iter().all(has_all) || is_quiet) {
                    self.end();
                }
            }
        }
    }

    /// Whether every attempt of a reader has failed for a while.
    fn is_hopeless(&self, passed_ns: u64) -> bool {
        let counts = self.counts();
        passed_ns >= HOPELESS_NS && counts.opened == 0 && counts.not_opened() + counts.reset > 0
    }

    fn begin(&mut self, phase: LivePhase) {
        self.phase = phase;
        self.since_ns = self.now_ns;
        if phase == LivePhase::Publishing {
            // What comes before is the readers' coming.
            let _ = self.sample();
        }
        self.shared.set_phase(Some(phase));
    }

    fn end(&mut self) {
        if self.phase != LivePhase::Gathering {
            self.server_ms = self.sample();
        }
        self.open_at_end = self.open();
        self.shared.set_phase(None);
    }

    /// Processor time of the server since this was asked last.
    fn sample(&mut self) -> Option<(u64, u64)> {
        let process = self.probe.as_mut()?.sample(self.now_ns).process?;
        Some((process.cpu_user_ms, process.cpu_system_ms))
    }

    fn moment(&mut self) -> LiveMoment {
        let publishing_ns = match self.phase {
            LivePhase::Gathering => 0,
            LivePhase::Publishing => self.now_ns.saturating_sub(self.since_ns),
            LivePhase::Settling => self.publishing_ns,
        };
        LiveMoment {
            at_ms: self.now_ns.saturating_sub(self.began_ns) / 1_000_000,
            publishing_ms: publishing_ns / 1_000_000,
            phase: self.phase,
            open: self.open(),
            published: self.shared.published_of_all(),
            counts: self.counts(),
            delay_max_ns: std::mem::take(&mut self.delay_max_ns),
        }
    }

    fn outcome(self, began: std::time::SystemTime, engine: String) -> LiveOutcome {
        let plan = self.plan;
        let mut outcome = LiveOutcome {
            command: plan.command.clone(),
            began,
            target: plan.target.clone(),
            engine,
            way: plan.readers.way,
            published: plan.publishing.is_some(),
            may_skip: plan.readers.may_skip,
            readers: u64::from(plan.readers.count),
            stalled: u64::from(plan.readers.stalled),
            gathered: self.gathered,
            gathering: Duration::from_nanos(self.gathering_ns),
            lasted: Duration::from_nanos(self.publishing_ns),
            open_at_end: self.open_at_end,
            counts: self.counts(),
            publications: self.publications,
            statuses: self.statuses,
            first_fault: self.first_fault,
            server_ms: self.server_ms,
            times: self.times,
            warnings: Vec::new(),
        };
        let ran_ns = self.now_ns.saturating_sub(self.began_ns);
        outcome.warnings = warnings::of(&outcome, &self.busy_ns, ran_ns);
        outcome
    }
}
