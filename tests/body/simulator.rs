//! The engine with the real site behind it, on a simulated network.
//!
//! Bytes are cut, delayed and reordered from a seed, and time passes only when nothing else can happen. Only
//! the site's own threads are real: while one of them owes an answer, real time is waited for. It must never
//! lose a byte: the network is unkind, not faulty.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use staunch_config::key::Form;
use staunch_config::{Config, File, Sources};
use staunch_engine::{
    Address, Answer, Answered, Body, ClientPolicy, Departure, Finished, Handler, Mailbox, Open, Outbox,
    Owner, PlacesLimit, Post, Reading, Refused, Stats, Upstream, UpstreamEvent, Worker, WorkerParts,
};
use staunch_netio::simulated::{self, Faults, PeerId, Simulated, Step};
use staunch_netio::{Capacity, Io};
use staunch_protocol::{Request, Timeouts};
use staunch_server::{
    Front, FrontParts, ProxyApplication, ProxyConfig, ProxyServer, ProxyShared, ProxyWire, SitesShared,
};

use super::End;
use super::session::timeouts;

/// From settings to sites, as the program does it.
#[path = "../../crates/service/src/sites.rs"]
mod sites;

/// How long the site's threads may take for an answer.
const REAL_MS_MAX: u64 = 20_000;
const CONNECTIONS_MAX: u32 = 64;
/// Connections that its application may have at a time, and that it is ready to accept.
const LINKS_MAX: u32 = 16;
/// Where the application of a simulated worker listens.
pub const SIMULATED_APPLICATION: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 80)), 8080);

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
    /// Whether requests are passed on: what is not answered may be owed by an application.
    has_application: bool,
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

    fn woken(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.front.woken(request, answer)
    }

    fn collected(&mut self, body: Vec<u8>, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.front.collected(body, request, answer)
    }

    fn reading(&mut self, body: Option<Body<'_>>, request: &Request<'_>, reading: Reading<'_>) -> Answered {
        self.front.reading(body, request, reading)
    }

    fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        self.front.body(body, open);
    }

    fn ready(&mut self, open: &mut Open<'_>) {
        self.front.ready(open);
    }

    fn mail(&mut self, owner: Owner, mail: Self::Mail, outbox: &Outbox) {
        self.front.mail(owner, mail, outbox);
    }

    fn upstreams_max(&self) -> u32 {
        self.front.upstreams_max()
    }

    fn upstream(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        open: Option<&mut Open<'_>>,
        outbox: &Outbox,
    ) {
        self.front.upstream(upstream, event, open, outbox);
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        self.front.finished(finished);
    }

    fn refused(&mut self, refused: &Refused<'_>) {
        self.front.refused(refused);
    }
}

impl SimulatorBody {
    /// Serves a folder with these arguments of `staunch serve`, or what a file of settings says.
    ///
    /// # Errors
    /// What keeps the site from starting, or an argument that means nothing here.
    pub fn new(root: &Path, options: &[String], settings: Option<String>, seed: u64) -> Result<Self, String> {
        let capacity = Capacity { connected: LINKS_MAX, accepted: CONNECTIONS_MAX };
        let network = Simulated::new(seed, Faults::GENTLE, capacity);
        let mailbox = Arc::new(Mailbox::new(Box::new(network.waker())));
        let config = read(root, options, settings)?;
        let sites = SitesShared::open(sites::of(&config)).map_err(|error| error.to_string())?;
        sites.start(&Post::new(vec![Arc::clone(&mailbox)])).map_err(|error| error.to_string())?;
        let asked = Rc::new(Cell::new(0));
        let confusion = Confusion::default();
        let (asked_by, confused_by) = (Rc::clone(&asked), Rc::clone(&confusion));
        let proxy = proxy(&config);
        let has_application = proxy.is_some();
        let front = Front::new(&FrontParts { proxy, ..FrontParts::of_sites(&sites) }, 0);
        let handler = Counting { front, asked: asked_by, confusion: confused_by };
        let stats = Arc::new(Stats::default());
        let timeouts: Timeouts = timeouts(options);
        let mut worker = Worker::new(
            network,
            handler,
            WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts, index: 0 },
        );
        worker.set_clients(ClientPolicy { addresses: has_application, ..ClientPolicy::default() });
        worker.set_http2(!options.windows(2).any(|two| two == ["--http2", "off"]));
        Ok(Self { world: Rc::new(RefCell::new(World { worker, asked, stats, has_application })), confusion })
    }

    /// The application that its requests are passed on to.
    pub fn application(&self) -> SimulatedApplication {
        let listening = VecDeque::new();
        let mut application = SimulatedApplication { world: Rc::clone(&self.world), listening };
        application.listen();
        application
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
            let owed = !self.has_application && self.asked.get() > self.stats.requests.answered.get();
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

/// The application behind a simulated worker.
pub struct SimulatedApplication {
    world: Rc<RefCell<World>>,
    /// Peers to each of which one connection leads.
    listening: VecDeque<PeerId>,
}

impl fmt::Debug for SimulatedApplication {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SimulatedApplication")
    }
}

impl SimulatedApplication {
    fn listen(&mut self) {
        let mut world = self.world.borrow_mut();
        while self.listening.len() < LINKS_MAX as usize {
            self.listening.push_back(world.worker.io().listener_at(SIMULATED_APPLICATION, Vec::new()));
        }
    }

    /// Waits for the next connection that the worker opens.
    pub fn accept(&mut self, patience: Duration) -> Option<SimulatorLink> {
        let peer = *self.listening.front()?;
        {
            let mut world = self.world.borrow_mut();
            let until_ms = world.worker.io().now_ms() + patience.as_millis() as u64;
            if !world.run(until_ms, |network| network.transcript(peer).accepted) {
                return None;
            }
        }
        self.listening.pop_front();
        self.listen();
        Some(SimulatorLink { world: Rc::clone(&self.world), peer, inbox: Vec::new(), seen_bytes: 0 })
    }

    /// Whether the worker has opened one more.
    pub fn has_another(&self) -> bool {
        let mut world = self.world.borrow_mut();
        self.listening.front().is_some_and(|peer| world.worker.io().transcript(*peer).accepted)
    }
}

/// A connection to the simulated server, or of it to its application.
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

/// The settings by these arguments of `staunch serve` and this file.
fn read(root: &Path, options: &[String], settings: Option<String>) -> Result<Config, String> {
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
    let file = settings.map(|text| File::new("staunch.toml", text));
    let sources = Sources { flags, environment: Vec::new(), file };
    staunch_config::read(&sources).map_err(|faults| faults.to_string())
}

/// The proxy, if requests are passed on to the application, with the deadlines of the settings.
fn proxy(config: &Config) -> Option<Arc<ProxyShared>> {
    let of_sites = config.sites.iter().any(|site| site.content.proxy.is_some());
    let of_paths = config.sites.iter().flat_map(|site| &site.paths).any(|rule| rule.proxy.is_some());
    if !of_sites && !of_paths {
        return None;
    }
    let ms = |time: Duration| time.as_millis() as u32;
    let proxy = &config.proxy;
    let told = ProxyConfig {
        connect_ms: ms(proxy.proxy_connect_timeout),
        send_ms: ms(config.deadlines.send_timeout),
        answer_ms: ms(proxy.proxy_answer_timeout),
        stream_ms: ms(proxy.proxy_stream_timeout),
        idle_ms: ms(proxy.proxy_keep_alive),
        sticky: None,
        fastcgi_idle_ms: None,
        patience_ms: ms(proxy.proxy_patience),
        limit: PlacesLimit::Off,
        body_bytes_kept: proxy.proxy_body_size as usize,
        memory_bytes: 256 << 20,
        links_max: LINKS_MAX,
        client_ipv6_bits: config.clients.client_prefix_ipv6,
    };
    let shared = ProxyShared::new(told, "staunch-simulated", Arc::new(|_| ()));
    let servers = vec![ProxyServer::Internet(SIMULATED_APPLICATION)];
    let name = SIMULATED_APPLICATION.to_string();
    shared.know(&[ProxyApplication { name, wire: ProxyWire::Http, servers }]);
    Some(shared)
}
