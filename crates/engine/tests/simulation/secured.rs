//! Secured connections on the simulated network: clients of rustls, any seed, any fault, every byte in order.
//!
//! Handshakes have random numbers of their own, so a seed gives the same world and not the same bytes.

use std::io::{Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use staunch_engine::{Mailbox, Post, Stats, TlsHandshake, TlsRefusal, TlsSettings, Worker, WorkerParts};
use staunch_netio::simulated::{End, Faults, PeerId, Random, Simulated, Step};
use staunch_netio::{FileReader, Waker};
use staunch_tls::{CertificatePair, CertificateStore, LocalAuthority, Tickets, TlsContext, WallTime};

use crate::fixture::{Fixture, Waiting, answer_some, body};
use crate::{TIMEOUTS, TURNS_MAX, seeds};

/// A context with one certificate, and what its clients trust.
struct House {
    context: Arc<TlsContext>,
    client: Arc<ClientConfig>,
}

impl House {
    fn new() -> Self {
        // Clients of rustls go by the machine's clock.
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now_unix_s = since.expect("the clock stands after 1970").as_secs();
        let authority = LocalAuthority::create(now_unix_s).expect("an authority");
        let issued = authority.issue(&["localhost"], now_unix_s).expect("a local name");
        let pair = CertificatePair::read(issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes());
        let store = Arc::new(CertificateStore::new(&[Arc::new(pair.expect("a pair"))], false));
        let time = Arc::new(WallTime::new(now_unix_s));
        let tickets = Arc::new(Tickets::new(Arc::clone(&time)).expect("random numbers"));
        let context = Arc::new(TlsContext::new(store, tickets, time, &[b"http/1.1"]));
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes()).expect("PEM");
        roots.add(root).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .expect("suites of both versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { context, client: Arc::new(client) }
    }
}

/// A client, and what it is to read.
struct Visitor {
    peer: PeerId,
    client: ClientConnection,
    /// How much of the transcript the client was given.
    read_bytes: usize,
    requests: Vec<u8>,
    expected: Vec<u8>,
    got: Vec<u8>,
    /// The client was told that nothing follows.
    is_told: bool,
    has_asked: bool,
    is_over: bool,
}

impl Visitor {
    fn new(house: &House, world: &mut Simulated, random: &mut Random) -> Self {
        let name = "localhost".try_into().expect("a name");
        let client = ClientConnection::new(Arc::clone(&house.client), name).expect("a client");
        let (mut requests, mut expected) = (Vec::new(), Vec::new());
        let count = 1 + random.below(5);
        for place in 1..=count {
            let kind = ["own", "shared", "later", "block"][random.below(4)];
            let size = [0, 1, 5_000, 20_000, 200_000][random.below(5)];
            let path = format!("/{kind}/{size}");
            let end = if place == count { "Connection: close\r\n" } else { "" };
            requests
                .extend_from_slice(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{end}\r\n").as_bytes());
            expected.extend_from_slice(&body(path.as_bytes(), size));
        }
        let peer = world.peer(Vec::new());
        Self {
            peer,
            client,
            read_bytes: 0,
            requests,
            expected,
            got: Vec::new(),
            is_told: false,
            has_asked: false,
            is_over: false,
        }
    }

    /// Reads what came and says what is to be said.
    fn follow(&mut self, world: &mut Simulated) {
        let transcript = world.transcript(self.peer);
        let mut news = &transcript.received[self.read_bytes..];
        self.read_bytes = transcript.received.len();
        let has_ended = transcript.ended.is_some();
        while !news.is_empty() && !self.is_over {
            self.client.read_tls(&mut news).expect("memory");
            if let Err(error) = self.client.process_new_packets() {
                assert!(has_ended, "the server spoke nonsense: {error}");
                self.is_over = true;
            }
            let mut piece = [0; 4_096];
            while let Ok(count) = self.client.reader().read(&mut piece) {
                self.got.extend_from_slice(&piece[..count]);
                self.is_told |= count == 0;
                if count == 0 {
                    break;
                }
            }
        }
        if !self.client.is_handshaking() && !self.has_asked {
            self.has_asked = true;
            self.client.writer().write_all(&self.requests).expect("memory");
        }
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).expect("memory");
        }
        if !bytes.is_empty() && !has_ended {
            world.add(self.peer, Step::Send(bytes));
        }
    }

    /// The bodies of the answers, as far as they came, and whether the server gave the last request up: heads
    /// are of no interest here.
    fn bodies(&self) -> (Vec<u8>, bool) {
        let (mut rest, mut bodies) = (&self.got[..], Vec::new());
        while let Some((status, length, body)) = crate::split_head(rest) {
            if status == 408 {
                return (bodies, true);
            }
            assert_eq!(status, 200);
            let count = length.min(body.len());
            bodies.extend_from_slice(&body[..count]);
            rest = &body[count..];
        }
        (bodies, false)
    }
}

/// A worker whose connections are all secured. Few shake hands at a time, so that the oldest has to go now
/// and then.
fn secured_worker(
    house: &House,
    world: Simulated,
    handler: Fixture,
) -> (Worker<Simulated, Fixture>, Post<()>, Arc<Stats>) {
    let mailbox = Arc::new(Mailbox::new(Box::new(world.waker())));
    let post = Post::new(vec![Arc::clone(&mailbox)]);
    let stats = Arc::new(Stats::default());
    let mut worker = Worker::new(
        world,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts: TIMEOUTS, index: 0 },
    );
    let reader = FileReader::new(Waker::new().expect("a descriptor"));
    let settings = TlsSettings::new(Arc::clone(&house.context), Vec::new());
    worker.set_tls(TlsSettings { handshakes_max: 2, ..settings }, reader);
    worker.secure_listeners();
    (worker, post, stats)
}

fn run(house: &House, seed: u64, spoil_above: usize) -> Arc<Stats> {
    let mut random = Random::new(seed ^ 0x71_5eed);
    let faults = [Faults::NONE, Faults::GENTLE, Faults::HOSTILE][seed as usize % 3];
    let mut world = Simulated::new(seed, faults, 1 + random.below(4) as u32);
    let count = 1 + random.below(4);
    let mut visitors: Vec<Visitor> =
        (0..count).map(|_| Visitor::new(house, &mut world, &mut random)).collect();
    let waiting = Waiting::default();
    let handler = Fixture::new(&waiting, spoil_above);
    let (mut worker, post, stats) = secured_worker(house, world, handler);
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "the worker spins");
        for visitor in &mut visitors {
            visitor.follow(worker.io());
        }
        if worker.io().finished() {
            break;
        }
        answer_some(&waiting, &post, &mut random);
        worker.turn().expect("the simulator does not fail");
    }
    assert_eq!(worker.held_bytes(), 0, "the account is not even");
    let crowded = stats.tls.refusals(TlsRefusal::Crowded) > 0;
    worker.io().check_empty();
    for visitor in &visitors {
        let (bodies, is_given_up) = visitor.bodies();
        let is_beginning = visitor.expected.starts_with(&bodies);
        assert!(is_beginning, "{} of {} bytes differ", bodies.len(), visitor.expected.len());
        let is_whole = bodies.len() == visitor.expected.len() && visitor.has_asked;
        assert!(!visitor.is_told || is_whole || is_given_up, "a cut answer was said to be whole");
        let ended = worker.io().transcript(visitor.peer).ended;
        let goes_well = faults != Faults::HOSTILE && !crowded;
        assert!(!goes_well || is_whole && visitor.is_told && ended == Some(End::Orderly), "{ended:?}");
    }
    assert_eq!(stats.connections.accepted.get(), stats.connections.closed.get(), "a connection is leaked");
    assert_eq!((stats.tls.shaking.get(), stats.tls.awake.get(), stats.tls.asleep.get()), (0, 0, 0));
    stats
}

#[test]
fn every_seed_of_secured_connections_gives_every_byte_in_order() {
    let house = House::new();
    let (mut handshakes, mut crowded) = (0, 0);
    for seed in seeds(600) {
        match catch_unwind(AssertUnwindSafe(|| run(&house, seed, usize::MAX))) {
            Ok(stats) => {
                handshakes += stats.tls.handshakes(TlsHandshake::Full13);
                handshakes += stats.tls.handshakes(TlsHandshake::Resumed13);
                crowded += stats.tls.refusals(TlsRefusal::Crowded);
            }
            Err(_) => panic!("seed {seed}: STAUNCH_SEED={seed} cargo test --test simulation secured"),
        }
    }
    println!("{handshakes} handshakes, {crowded} gave way to others");
    assert!(std::env::var_os("STAUNCH_SEED").is_some() || handshakes > 500 && crowded > 0);
}

#[test]
fn canary_a_wrong_byte_under_seal_is_found() {
    let house = House::new();
    let fails = |seed: &u64| catch_unwind(AssertUnwindSafe(|| run(&house, *seed, 4_000))).is_err();
    assert!((0..30).filter(fails).count() > 0, "the oracle does not see a wrong byte");
}

/// A client that has shaken hands and asks nothing has its tickets at once: they acknowledge its last
/// message, for which it may wait before it asks. Then its connection rests as any other.
#[test]
fn tickets_come_as_the_handshake_ends() {
    let house = House::new();
    let mut world = Simulated::new(1, Faults::NONE, 1);
    let mut visitor = Visitor::new(&house, &mut world, &mut Random::new(1));
    visitor.has_asked = true;
    let handler = Fixture::new(&Waiting::default(), usize::MAX);
    let (mut worker, _post, stats) = secured_worker(&house, world, handler);
    let mut turn_until = |visitor: &mut Visitor, has_come: &dyn Fn(&Visitor) -> bool| {
        for _ in 0..TURNS_MAX {
            visitor.follow(worker.io());
            if has_come(visitor) {
                return;
            }
            worker.turn().expect("the simulator does not fail");
        }
        panic!("what is awaited does not come");
    };
    turn_until(&mut visitor, &|visitor| visitor.client.tls13_tickets_received() > 0);
    assert_eq!(visitor.client.tls13_tickets_received(), 2);
    assert_eq!(stats.tls.asleep.get(), 0, "only when it rests");
    assert_eq!(visitor.got, b"");
    turn_until(&mut visitor, &|_| stats.tls.asleep.get() == 1);
}
