//! A worker with the handler on a simulated network.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use staunch_engine::{Ended, Mailbox, Post, Stats, Worker};
use staunch_netio::Io;
use staunch_netio::simulated::{Faults, PeerId, Simulated, Step, Transcript};
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
const TURNS_MAX: u64 = 400_000;

/// What became of a world.
pub(crate) struct Past {
    pub(crate) transcripts: Vec<Transcript>,
    pub(crate) ended: Vec<Ended>,
}

/// Plays these peers to their end. Every exchange that began must have been finished, once.
pub(crate) fn play(seed: u64, faults: Faults, scripts: Vec<Vec<Step>>) -> Past {
    let mut network = Simulated::new(seed, faults, scripts.len() as u32 + 1);
    let peers: Vec<PeerId> = scripts.into_iter().map(|script| network.peer(script)).collect();
    let mailbox = Arc::new(Mailbox::new(Box::new(network.waker())));
    let post = Post::new(vec![Arc::clone(&mailbox)]);
    let (drips, log) = (Arc::<AtomicUsize>::default(), Log::default());
    let handler = Echo::new(Arc::clone(&drips), Some(Arc::clone(&log)));
    let stats = Arc::new(Stats::default());
    let mut worker = Worker::new(network, handler, 1, mailbox, Arc::clone(&stats), TIMEOUTS, 0);
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
        if drips {
            post.send_to_worker(0, Tick);
        }
    }
    worker.io().check_empty();
    assert_eq!(stats.accepted.get(), stats.closed.get(), "a connection is leaked");
    assert_eq!(worker.held_bytes(), 0, "memory stays in the account");
    let log = log.lock().expect("no panic");
    assert_eq!(log.0, log.1.len(), "an exchange was not finished");
    assert_eq!(drips.load(Relaxed), 0);
    let transcripts = peers.iter().map(|peer| worker.io().transcript(*peer).clone()).collect();
    Past { transcripts, ended: log.1.clone() }
}
