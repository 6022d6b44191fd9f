//! The engine with the real site behind it, on a simulated network.
//!
//! Bytes are cut, delayed and reordered from a seed, and time passes only when nothing else can happen. Only
//! the site's own threads are real: while one of them owes an answer, real time is waited for. It must never
//! lose a byte: the network is unkind, not faulty.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use staunch_config::key::Form;
use staunch_config::{File, Sources};
use staunch_engine::{
    Address, Answer, Answered, Departure, Handler, Mailbox, Outbox, Owner, Post, Stats, Worker,
};
use staunch_netio::Io;
use staunch_netio::simulated::{self, Faults, PeerId, Simulated, Step};
use staunch_protocol::{Request, Timeouts};
use staunch_server::{Front, FrontParts, SiteConfig, SitesShared};

use super::End;
use super::session::timeouts;

/// From settings to sites, as the program does it.
#[path = "../../crates/service/src/sites.rs"]
mod sites;

/// How long the site's threads may take for an answer.
const REAL_MS_MAX: u64 = 20_000;
const CONNECTIONS_MAX: u32 = 64;

/// A worker on a simulated network.
pub struct SimulatorBody {
    world: Rc<RefCell<World>>,
    confusion: Confusion,
}

impl fmt::Debug for SimulatorBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SimulatorBody")
    }
}

struct World {
    worker: Worker<Simulated, Counting>,
    /// Requests given to the site. Those not yet answered are owed by its threads.
    asked: Rc<Cell<u64>>,
    stats: Arc<Stats>,
}

/// The front of a site, counting what it is asked.
struct Counting {
    front: Front,
    asked: Rc<Cell<u64>>,
    confusion: Confusion,
}

/// A canary, if it is there: length and path of the last head, taken for those of any head as long.
type Confusion = Rc<RefCell<Option<(usize, Vec<u8>)>>>;

impl Handler for Counting {
    type Mail = <Front as Handler>::Mail;

    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.asked.set(self.asked.get() + 1);
        if let Some(last) = &mut *self.confusion.borrow_mut() {
            let (length, path) = std::mem::replace(last, (request.head.len(), request.path.to_vec()));
            if length == request.head.len() {
                let mut mistaken = *request;
                mistaken.path = &path;
                return self.front.handle(&mistaken, answer);
            }
        }
        self.front.handle(request, answer)
    }

    fn left(&mut self, owner: Owner, address: Address, departure: Departure, outbox: &Outbox) {
        self.front.left(owner, address, departure, outbox);
    }

    fn resume(&mut self, mail: Self::Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.front.resume(mail, request, answer)
    }
}

impl SimulatorBody {
    /// Serves a folder with these arguments of `staunch serve`, or what a file of settings says.
    ///
    /// # Errors
    /// What keeps the site from starting, or an argument that means nothing here.
    pub fn new(root: &Path, options: &[String], settings: Option<String>, seed: u64) -> Result<Self, String> {
        let network = Simulated::new(seed, Faults::GENTLE, CONNECTIONS_MAX);
        let mailbox = Arc::new(Mailbox::new(Box::new(network.waker())));
        let sites =
            SitesShared::open(site_configs(root, options, settings)?).map_err(|error| error.to_string())?;
        sites.start(&Post::new(vec![Arc::clone(&mailbox)])).map_err(|error| error.to_string())?;
        let asked = Rc::new(Cell::new(0));
        let confusion = Confusion::default();
        let (asked_by, confused_by) = (Rc::clone(&asked), Rc::clone(&confusion));
        let front = Front::new(&FrontParts::of_sites(&sites), 0);
        let handler = Counting { front, asked: asked_by, confusion: confused_by };
        let stats = Arc::new(Stats::default());
        let timeouts: Timeouts = timeouts(options);
        let mut worker = Worker::new(network, handler, 1, mailbox, Arc::clone(&stats), timeouts, 0);
        worker.set_http2(!options.windows(2).any(|two| two == ["--http2", "off"]));
        Ok(Self { world: Rc::new(RefCell::new(World { worker, asked, stats })), confusion })
    }

    /// From now on it remembers heads by their length alone, so that a test can show that it would notice.
    pub fn confuse(&self) {
        *self.confusion.borrow_mut() = Some((0, Vec::new()));
    }

    /// A new connection.
    pub fn connect(&self) -> SimulatorLink {
        let peer = self.world.borrow_mut().worker.io().peer(Vec::new());
        SimulatorLink { world: Rc::clone(&self.world), peer, inbox: Vec::new(), seen_bytes: 0 }
    }
}

impl World {
    /// Turns until `done` or until the time has come. Whether it was done.
    fn run(&mut self, until_ms: u64, done: impl Fn(&Simulated) -> bool) -> bool {
        let mut real_ms = 0;
        loop {
            if done(self.worker.io()) {
                return true;
            }
            if self.worker.io().now_ms() >= until_ms {
                return false;
            }
            let owed = self.asked.get() > self.stats.requests.get();
            if owed && !self.worker.io().is_restless() {
                assert!(real_ms < REAL_MS_MAX, "the site owes an answer for {real_ms} ms");
                std::thread::sleep(Duration::from_millis(1));
                real_ms += 1;
            } else {
                self.worker.io().set_alarm(until_ms);
                self.worker.turn().expect("the simulator does not fail");
            }
        }
    }
}

/// A connection to the simulated server.
pub struct SimulatorLink {
    world: Rc<RefCell<World>>,
    peer: PeerId,
    inbox: Vec<u8>,
    seen_bytes: usize,
}

impl fmt::Debug for SimulatorLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SimulatorLink({})", self.peer)
    }
}

impl Drop for SimulatorLink {
    fn drop(&mut self) {
        self.step(Step::Close);
    }
}

impl SimulatorLink {
    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        self.step(Step::Send(bytes.to_vec()));
    }

    /// Sends no more.
    pub fn half_close(&mut self) {
        self.step(Step::HalfClose);
    }

    /// Breaks the connection off.
    pub fn reset(self) {
        self.step(Step::Reset);
    }

    /// Lets everything happen that can happen without time passing.
    pub fn settle(&mut self) {
        let mut world = self.world.borrow_mut();
        let now_ms = world.worker.io().now_ms();
        world.run(now_ms + 1, |network| !network.is_restless());
    }

    /// Lets time pass.
    pub fn pass(&mut self, ms: u64) {
        let mut world = self.world.borrow_mut();
        let until_ms = world.worker.io().now_ms() + ms;
        world.run(until_ms, |_| false);
    }

    /// Waits until something comes, bytes or the end.
    pub fn fill(&mut self, patience: Duration) -> bool {
        let mut world = self.world.borrow_mut();
        let until_ms = world.worker.io().now_ms() + patience.as_millis() as u64;
        let (peer, seen_bytes) = (self.peer, self.seen_bytes);
        let came = world.run(until_ms, |network| {
            let transcript = network.transcript(peer);
            transcript.received.len() > seen_bytes || transcript.ended.is_some()
        });
        let received = &world.worker.io().transcript(peer).received;
        self.inbox.extend_from_slice(&received[seen_bytes..]);
        self.seen_bytes = received.len();
        came
    }

    /// The bytes that came and were not taken.
    pub fn received(&self) -> &[u8] {
        &self.inbox
    }

    /// Takes bytes from the front.
    pub fn take(&mut self, bytes: usize) {
        self.inbox.drain(..bytes);
    }

    /// The end, if it came and everything before it was taken in.
    pub fn end(&self) -> Option<End> {
        let mut world = self.world.borrow_mut();
        let transcript = world.worker.io().transcript(self.peer);
        match transcript.ended? {
            _ if transcript.received.len() > self.seen_bytes => None,
            simulated::End::Reset => Some(End::Failed(rustix::io::Errno::CONNRESET.raw_os_error())),
            simulated::End::Orderly | simulated::End::Own => Some(End::Orderly),
        }
    }

    fn step(&self, step: Step) {
        self.world.borrow_mut().worker.io().add(self.peer, step);
    }
}

/// What these arguments of `staunch serve` and this file of settings say of sites.
fn site_configs(
    root: &Path,
    options: &[String],
    settings: Option<String>,
) -> Result<Vec<SiteConfig>, String> {
    let mut flags = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let known = staunch_config::flags().find(|(_, key)| key.flag() == *option);
        let (_, key) = known.ok_or_else(|| format!("{option} is no flag"))?;
        let value = match key.form {
            Form::Switch => "on".to_owned(),
            _ => options.next().cloned().unwrap_or_default(),
        };
        flags.push((key.name.to_owned(), value));
    }
    if settings.is_none() {
        flags.push(("root".to_owned(), root.display().to_string()));
    }
    let file = settings.map(|text| File { name: "staunch.toml".to_owned(), text });
    let sources = Sources { flags, environment: Vec::new(), file };
    let config = staunch_config::read(&sources).map_err(|faults| faults.to_string())?;
    Ok(sites::of(&config))
}
