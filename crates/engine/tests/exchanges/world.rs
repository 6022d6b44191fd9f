//! A worker with the handler on a simulated network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use staunch_engine::{Ended, Mailbox, Owner, Post, Stats, UpstreamTimeouts, Worker, WorkerParts};
use staunch_netio::simulated::{Faults, PeerId, Simulated, Step, Transcript};
use staunch_netio::{Capacity, Io};
use staunch_protocol::Timeouts;

use crate::handler::{Echo, Log, Tick};

const TIMEOUTS: Timeouts = Timeouts {
    header_ms: 3_000,
    keep_alive_ms: 5_000,
    body_ms: 2_000,
    send_ms: 4_000,
    linger_ms: 1_000,
    body_rate_min: 0,
};
const UPSTREAM_TIMEOUTS: UpstreamTimeouts =
    UpstreamTimeouts { connect_ms: 2_000, send_ms: 4_000, receive_ms: 6_000 };
const TURNS_MAX: u64 = 400_000;
/// Upstreams that echo, for each peer: as many as it may ask for.
const ECHOES_A_PEER: usize = 4;

/// What is played.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) faults: Faults,
    /// What clients do.
    pub(crate) scripts: Vec<Vec<Step>>,
    /// What each upstream does, by its number, one connection each. Nobody listens at another.
    pub(crate) upstreams: Vec<Vec<Step>>,
    /// Upstreams at a time.
    pub(crate) upstreams_max: u32,
    /// The upstream that accepts connections and never answers, if any.
    pub(crate) deaf: Option<usize>,
    pub(crate) budget_bytes: Option<u64>,
}

impl World {
    /// A perfect one.
    pub(crate) fn new(scripts: Vec<Vec<Step>>, upstreams: Vec<Vec<Step>>) -> Self {
        let upstreams_max = 2 * scripts.len() as u32 + 2;
        let (seed, faults, deaf, budget_bytes) = (1, Faults::NONE, None, None);
        Self { seed, faults, scripts, upstreams, upstreams_max, deaf, budget_bytes }
    }
}

/// What became of a world.
pub(crate) struct Past {
    pub(crate) transcripts: Vec<Transcript>,
    pub(crate) upstreams: Vec<Transcript>,
    pub(crate) ended: Vec<Ended>,
    /// The most that stood in the account of memory.
    pub(crate) held_bytes_max: u64,
}

fn upstream_address(number: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 80))
}

/// Plays these peers to their end, with upstreams of the number 0 that echo.
pub(crate) fn play(seed: u64, faults: Faults, scripts: Vec<Vec<Step>>) -> Past {
    let count = scripts.len() * ECHOES_A_PEER;
    let echoes = (0..count).map(|_| (0, vec![Step::Echo])).collect();
    play_with(World { seed, faults, ..World::new(scripts, Vec::new()) }, echoes)
}

/// Plays a world to its end.
pub(crate) fn play_world(mut world: World) -> Past {
    let upstreams = std::mem::take(&mut world.upstreams).into_iter();
    let outlasting = upstreams.map(|script| [vec![Step::Outlast], script].concat());
    play_with(world, outlasting.enumerate().collect())
}

/// Plays to the end. Every exchange that began must have been finished, once.
fn play_with(world: World, upstreams: Vec<(usize, Vec<Step>)>) -> Past {
    let capacity = Capacity { connected: world.upstreams_max, accepted: world.scripts.len() as u32 + 1 };
    let mut network = Simulated::new(world.seed, world.faults, capacity);
    let addresses = (0..=upstreams.len()).map(upstream_address).collect();
    let listen = |(number, script)| network.listener_at(upstream_address(number), script);
    let upstreams: Vec<PeerId> = upstreams.into_iter().map(listen).collect();
    world.deaf.into_iter().for_each(|number| network.deaf_at(upstream_address(number)));
    let peers: Vec<PeerId> = world.scripts.into_iter().map(|script| network.peer(script)).collect();
    let mailbox = Arc::new(Mailbox::new(Box::new(network.waker())));
    let post = Post::new(vec![Arc::clone(&mailbox)]);
    let (drips, log) = (Arc::<AtomicUsize>::default(), Log::default());
    let handler = Echo::new(Arc::clone(&drips), Some(Arc::clone(&log)));
    let handler = handler.with_upstreams(addresses, UPSTREAM_TIMEOUTS);
    let stats = Arc::new(Stats::default());
    let mut worker = Worker::new(
        network,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts: TIMEOUTS, index: 0 },
    );
    if let Some(budget_bytes) = world.budget_bytes {
        worker.set_memory_budget(budget_bytes);
    }
    let mut held_bytes_max = 0;
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "the worker spins");
        if worker.io().finished() {
            break;
        }
        let drips = drips.load(Relaxed) > 0 && !worker.io().is_restless();
        if drips {
            let now_ms = worker.io().now_ms();
            worker.io().set_alarm(now_ms + 20);
        }
        worker.turn().expect("the simulator does not fail");
        held_bytes_max = held_bytes_max.max(worker.held_bytes());
        if drips {
            post.send_to_worker(0, Owner::default(), Tick);
        }
    }
    worker.io().check_empty();
    assert_eq!(stats.connections.accepted.get(), stats.connections.closed.get(), "a connection is leaked");
    assert_eq!(stats.upstreams.opened.get(), stats.upstreams.closed.get(), "an upstream is leaked");
    assert_eq!((worker.held_bytes(), worker.leaving_bytes()), (0, 0), "memory stays in the account");
    let log = log.lock().expect("no panic");
    assert_eq!(log.0, log.1.len(), "an exchange was not finished");
    assert_eq!(drips.load(Relaxed), 0);
    let mut transcripts = |peers: Vec<PeerId>| -> Vec<Transcript> {
        peers.iter().map(|peer| worker.io().transcript(*peer).clone()).collect()
    };
    let (transcripts, upstreams) = (transcripts(peers), transcripts(upstreams));
    Past { transcripts, upstreams, ended: log.1.clone(), held_bytes_max }
}

/// Plays `STAUNCH_SEED`, or the first `STAUNCH_SEEDS` seeds. Where there are many, exchanges must have ended
/// in each of these ways.
pub(crate) fn play_seeds(run: impl Fn(u64) -> Vec<Ended>, ways: &[Ended]) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("STAUNCH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("STAUNCH_SEEDS").unwrap_or(500),
    };
    let count = seeds.end - seeds.start;
    let mut ended = Vec::new();
    for seed in seeds {
        println!("seed {seed}");
        ended.extend(run(seed));
    }
    for way in ways {
        assert!(count < 500 || ended.contains(way), "no exchange ended so: {way:?}");
    }
}
