//! A worker on the simulated network whose handler answers with the address it is told.
//!
//! It must never judge what came back.

use std::net::SocketAddr;
use std::sync::Arc;

use staunch_engine::{
    Answer, Answered, ClientPolicy, ClientTable, Handler, Mailbox, Stats, Worker, WorkerParts,
};
use staunch_netio::simulated::{Faults, PeerId, Simulated, Step, Transcript};
use staunch_protocol::{Request, Status, Timeouts};
use staunch_tests::response::Response;

const TIMEOUTS: Timeouts = Timeouts {
    header_ms: 3_000,
    keep_alive_ms: 60_000,
    body_ms: 2_000,
    send_ms: 4_000,
    linger_ms: 1_000,
    body_rate_min: 0,
};
const TURNS_MAX: u64 = 200_000;

pub(crate) const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Answers with the address of the peer.
pub(crate) struct Mirror;

impl Handler for Mirror {
    type Mail = ();

    fn handle(&mut self, _: &Request<'_>, answer: Answer<'_>) -> Answered {
        let text = answer.peer().map_or("nobody".into(), |peer| peer.to_string());
        let fields = format!("Content-Length: {}\r\n", text.len());
        answer.bytes(Status::OK, fields.as_bytes(), text.as_bytes())
    }

    fn resume(&mut self, (): (), request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.handle(request, answer)
    }
}

/// A worker and its counters.
pub(crate) struct World {
    pub(crate) worker: Worker<Simulated, Mirror>,
    pub(crate) stats: Arc<Stats>,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults, policy: ClientPolicy, table: &ClientTable) -> Self {
        let network = Simulated::new(seed, faults, 64);
        let mailbox = Arc::new(Mailbox::new(Box::new(network.waker())));
        let stats = Arc::new(Stats::default());
        let mut worker = Worker::new(
            network,
            Mirror,
            WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts: TIMEOUTS, index: 0 },
        );
        worker.share_clients(table.clone());
        worker.set_clients(policy);
        Self { worker, stats }
    }

    /// A peer that connects from there.
    pub(crate) fn peer(&mut self, from: &str, steps: Vec<Step>) -> PeerId {
        let address: SocketAddr = from.parse().expect("an address and a port");
        self.worker.io().peer_from(address, steps)
    }

    /// Turns until every connection has ended.
    pub(crate) fn run(&mut self) {
        for _ in 0..TURNS_MAX {
            if self.worker.io().finished() {
                self.worker.io().check_empty();
                assert_eq!(
                    self.stats.connections.accepted.get(),
                    self.stats.connections.closed.get(),
                    "a connection is leaked"
                );
                return;
            }
            self.worker.turn().expect("the simulator does not fail");
        }
        panic!("the worker spins");
    }

    /// Turns until nothing more can happen without time passing.
    pub(crate) fn settle(&mut self) {
        while self.worker.io().is_restless() {
            self.worker.turn().expect("the simulator does not fail");
        }
    }

    pub(crate) fn transcript(&mut self, peer: PeerId) -> Transcript {
        self.worker.io().transcript(peer).clone()
    }

    /// Status and body of every answer a peer got.
    pub(crate) fn answers(&mut self, peer: PeerId) -> Vec<(u16, String)> {
        let received = self.transcript(peer).received;
        let mut rest = &received[..];
        let mut answers = Vec::new();
        while let Some((response, taken)) = Response::read(rest, false).expect("responses") {
            answers.push((response.status, String::from_utf8_lossy(&response.body).into_owned()));
            rest = &rest[taken..];
        }
        answers
    }

    pub(crate) fn statuses(&mut self, peer: PeerId) -> Vec<u16> {
        self.answers(peer).into_iter().map(|answer| answer.0).collect()
    }
}
