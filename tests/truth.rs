//! A server whose behaviour is known, to measure load generators by.
//!
//! Every behaviour is chosen by the path of the request (see the table in [`Truth`]), and what was done is
//! counted (see [`Counts`]). It is built on threads and blocking sockets of the standard library and shares
//! nothing with what it proves: it must never use our own protocol, engine or network code.

mod answer;
mod behaviour;
mod counts;
mod house;
mod pace;
mod plan;
mod pool;
mod request;
mod serve;
mod stream;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use answer::{GARBAGE, body, wrong_body};
pub use counts::{Counts, StallTimes};
pub use plan::{Address, Plan, Queue, Stall, Work, WorkersChange, duration};

use house::House;
use stream::{Listener, Stream};

/// How long [`Truth::await_counts`] waits.
const COUNTS_PATIENCE: Duration = Duration::from_secs(120);
/// How long accepting pauses when the kernel has no descriptor or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Enough for the deepest call of a connection; some thousand of them need little memory.
const STACK_BYTES: usize = 128 * 1024;

/// A running truth server. Ends when it is dropped.
///
/// | path | what it does |
/// |---|---|
/// | `/ok?bytes=N` | a right answer of N bytes ([`body`]); 100 if not said, here and below |
/// | `/status/503` | an answer with this status, 200 to 599 |
/// | `/delay/20ms` | a right answer after this time, without a worker |
/// | `/stall` | never an answer |
/// | `/reset` | a reset instead of an answer (over a Unix socket, which has none, a close) |
/// | `/reset-in-body?bytes=N` | half the body, then a reset |
/// | `/short?bytes=N` | half the body, then an orderly close |
/// | `/wrong-body?bytes=N` | one byte of the body is wrong ([`wrong_body`]) |
/// | `/close?bytes=N` | a right answer with `Connection: close`, and a close |
/// | `/chunked?bytes=N&chunk=M` | a right answer in chunks of M bytes, 1000 if not said |
/// | `/no-length?bytes=N` | a right answer that ends with the connection |
/// | `/slow-body?bytes=N&over=1s` | the head, then ten pieces, each after a tenth of this time |
/// | `/echo` | the bytes of the request, head and body, as the body |
/// | `/garbage` | bytes that are not HTTP ([`GARBAGE`]), then an orderly close |
/// | `/hang-after-head?bytes=N` | a head that promises a body, then nothing |
/// | `/1xx` | a status 100, then a right answer |
/// | `/truth` | the counts as JSON: at once, even in a stall, on a connection that is open |
///
/// Connections are kept open and requests may be pipelined. A request is first served by a worker, if there
/// is a service time; then comes what its path asks for. The wish of `Connection: close` is granted. A peer
/// that half-closes counts as gone: it gets no answer. `Expect` is not looked at, bodies in chunks are
/// refused (411).
#[derive(Debug)]
pub struct Truth {
    house: Arc<House>,
    listener: Arc<Listener>,
    address: Address,
    threads: Vec<JoinHandle<()>>,
}

impl Truth {
    /// Begins to listen and to serve.
    ///
    /// # Errors
    /// What the kernel says against the address, and a wish that cannot be: no workers.
    pub fn start(plan: Plan) -> io::Result<Self> {
        if plan.workers == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a server needs a worker"));
        }
        let listener = Arc::new(Listener::open(&plan.address, plan.backlog)?);
        let address = listener.address(&plan.address)?;
        let house = Arc::new(House::new(plan));
        let mut truth = Self { house, listener, address, threads: Vec::new() };
        let acceptors = match truth.house.plan.queue {
            Queue::Connection => 1,
            Queue::Accept => truth.house.plan.workers_max(),
        };
        for _ in 0..acceptors {
            let (house, listener) = (Arc::clone(&truth.house), Arc::clone(&truth.listener));
            truth.threads.push(thread::Builder::new().spawn(move || accept(&house, &listener))?);
        }
        if let Some(stall) = truth.house.plan.stall {
            let house = Arc::clone(&truth.house);
            truth.threads.push(thread::Builder::new().spawn(move || stall_once(&house, stall))?);
        }
        if !truth.house.plan.changes.is_empty() {
            let house = Arc::clone(&truth.house);
            truth.threads.push(thread::Builder::new().spawn(move || change(&house))?);
        }
        Ok(truth)
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The URL of a path, which begins with a slash. Of a Unix socket: `unix:PATH` and no more.
    pub fn url(&self, path: &str) -> String {
        match &self.address {
            Address::Internet(address) => format!("http://{address}{path}"),
            Address::Unix(_) => self.address.to_string(),
        }
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.house.ledger.counts()
    }

    /// Waits until the counts are as wanted: what a peer does is noticed a moment later.
    ///
    /// # Panics
    /// When they are not within 20 s.
    pub fn await_counts(&self, wanted: impl FnMut(&Counts) -> bool) -> Counts {
        let (counts, as_wanted) = self.house.ledger.await_counts(COUNTS_PATIENCE, wanted);
        assert!(as_wanted, "the counts did not become as wanted: {counts:?}");
        counts
    }

    /// From now on nothing is accepted, served or written, but what a thread has begun to write.
    pub fn pause(&self) {
        self.house.stall(true);
    }

    /// Everything goes on.
    pub fn resume(&self) {
        self.house.stall(false);
    }

    /// Closes the listener and all connections, and says what was done.
    pub fn finish(mut self) -> Counts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        self.house.pace.end();
        self.listener.end();
        self.house.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Truth {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end();
        }
    }
}

fn stall_once(house: &House, stall: Stall) {
    if house.pace.sleep(stall.after).is_ok() {
        house.stall(true);
        let _ = house.pace.sleep(stall.length);
        house.stall(false);
    }
}

/// Has other numbers of workers, each from its time on.
fn change(house: &House) {
    let mut passed = Duration::ZERO;
    for change in &house.plan.changes {
        if house.pace.sleep(change.after.saturating_sub(passed)).is_err() {
            return;
        }
        passed = change.after;
        house.pool.set_workers(change.workers);
    }
}

/// Takes connections until the server ends. When requests wait in the accept queue it serves them itself.
fn accept(house: &Arc<House>, listener: &Listener) {
    while house.pace.pass().is_ok() {
        match listener.accept() {
            // The stall may have begun while there was nobody to accept.
            Ok(stream) if house.pace.pass().is_ok() => welcome(house, stream),
            Ok(_) => return,
            Err(_) if house.pace.has_ended() => return,
            Err(_) => {
                let _ = house.pace.sleep(ACCEPT_PAUSE);
            }
        }
    }
}

fn welcome(house: &Arc<House>, stream: Stream) {
    let Some((number, stream)) = house.admit(stream) else { return };
    if house.plan.queue == Queue::Accept {
        serve::converse(house, &stream);
        return house.leave(number, stream);
    }
    let (host, guest) = (Arc::clone(house), Arc::clone(&stream));
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        serve::converse(&host, &guest);
        host.leave(number, guest);
    });
    if thread.is_err() {
        house.ledger.note(|counts| counts.connections_dropped += 1);
        house.leave(number, stream);
    }
}
