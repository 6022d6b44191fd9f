//! Kernel, network and peers in one value, driven by a seed: the same seed gives the same run.
//!
//! It owns a virtual clock and scripted peers, plays every fault of [`Faults`], and checks the engine's side
//! of the contract of [`Io`]: a violation panics with the seed. It must never ask the real time or open a
//! socket.

mod arriving;
mod connecting;
mod connection;
mod faults;
mod peer;
mod play;
mod random;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

pub use self::faults::Faults;
pub use self::peer::{End, PeerId, Step, Transcript};
pub use self::random::Random;

use self::connection::{Connection, Flight};
use self::faults::{ACCEPT_ERRNOS, ENFILE, JUMP_MS_MAX};
use self::peer::Peer;
use rustix::io::Errno;

use crate::datagram::{Readiness, Watch};
use crate::{Capacity, Completion, Input, Io, Outgoing, Queue, Slot, Target, Tuning};

/// Receive buffers there are; so few that a worker that keeps one is found out.
const BUFFERS: usize = 4;
/// Connections that wait for a listener at first.
const QUEUE_LIMIT: u32 = 4096;

/// The simulated backend.
pub struct Simulated {
    seed: u64,
    random: Random,
    faults: Faults,
    now_ms: u64,
    /// Milliseconds the owner's work has taken since the last wait.
    worked_ms: Arc<AtomicU64>,
    capacity: Capacity,
    peers: Vec<Peer>,
    /// Peers that connect and are not yet accepted.
    backlog: VecDeque<PeerId>,
    /// Peers that wait to be connected to.
    listening: VecDeque<PeerId>,
    /// Where nobody answers.
    deaf: Vec<SocketAddr>,
    slots: Vec<Option<Connection>>,
    accepting: bool,
    dropped: bool,
    learns_peers: bool,
    /// The connection reported last as accepted.
    accepted: Option<Slot>,
    buffers: Vec<Option<Vec<u8>>>,
    ready: VecDeque<Completion>,
    woken: Arc<AtomicBool>,
    /// What is watched, by number.
    watched: Vec<Option<Arc<AtomicBool>>>,
    alarm_ms: Option<u64>,
    turns: u64,
}

impl Simulated {
    /// An empty world for so many connections.
    pub fn new(seed: u64, faults: Faults, capacity: impl Into<Capacity>) -> Self {
        Self {
            seed,
            random: Random::new(seed),
            faults,
            now_ms: 1_000_000,
            worked_ms: Arc::default(),
            capacity: capacity.into(),
            peers: Vec::new(),
            backlog: VecDeque::new(),
            listening: VecDeque::new(),
            deaf: Vec::new(),
            slots: Vec::new(),
            accepting: false,
            dropped: false,
            learns_peers: false,
            accepted: None,
            buffers: vec![None; BUFFERS],
            ready: VecDeque::new(),
            woken: Arc::default(),
            watched: Vec::new(),
            alarm_ms: None,
            turns: 0,
        }
    }

    /// Adds a step to the end of a peer's script.
    pub fn add(&mut self, peer: PeerId, step: Step) {
        self.peers[peer].add(step);
    }

    /// The next wait ends at this time at the latest, whatever its timeout.
    pub fn set_alarm(&mut self, at_ms: u64) {
        self.alarm_ms = Some(at_ms);
    }

    /// Whether something can happen without time passing.
    pub fn is_restless(&self) -> bool {
        self.woken.load(Ordering::SeqCst)
            || self.watched.iter().flatten().any(|flag| flag.load(Ordering::SeqCst))
            || self.accepting && !self.backlog.is_empty()
            || self.slots.iter().flatten().any(|connection| connection.can_act(&self.peers, self.now_ms))
            || self.peers.iter().any(|peer| peer.can_act(self.now_ms))
    }

    /// What a peer saw so far.
    pub fn transcript(&self, peer: PeerId) -> &Transcript {
        &self.peers[peer].transcript
    }

    /// What was set on the connection of a slot, in order.
    pub fn tunings(&self, slot: Slot) -> &[Tuning] {
        let connection = self.slots.get(slot as usize).and_then(Option::as_ref);
        connection.map_or(&[], |connection| &connection.tunings)
    }

    /// Whether every peer's connection has ended on both sides.
    pub fn finished(&self) -> bool {
        self.backlog.is_empty()
            && self.slots.iter().all(Option::is_none)
            && self.peers.iter().all(Peer::is_done)
    }

    /// How many slots are in use.
    pub fn slots_used(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// How many inputs were reported and not released.
    pub fn inputs_held(&self) -> usize {
        self.buffers.iter().flatten().count()
    }

    /// How many turns were waited for.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// What wakes this backend, for a mailbox.
    pub fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let woken = Arc::clone(&self.woken);
        move || woken.store(true, Ordering::SeqCst)
    }

    /// Lets work take time: so many milliseconds pass at once for the owner, and for the world at the next
    /// wait.
    pub fn work(&self) -> impl Fn(u64) + Send + Sync + 'static {
        let worked_ms = Arc::clone(&self.worked_ms);
        move |ms| _ = worked_ms.fetch_add(ms, Ordering::Relaxed)
    }

    /// Sees to it that nothing is left over.
    ///
    /// # Panics
    /// If a slot, a buffer or a completion is.
    pub fn check_empty(&self) {
        self.demand(self.slots.iter().all(Option::is_none), "a slot is leaked");
        self.demand(self.buffers.iter().all(Option::is_none), "an input was not released");
        self.demand(self.ready.is_empty(), "a completion was not taken");
    }

    #[track_caller]
    fn demand(&self, holds: bool, what: &str) {
        assert!(holds, "seed {}: turn {}: {what}", self.seed, self.turns);
    }

    #[track_caller]
    fn slot(&mut self, slot: Slot) -> &mut Connection {
        let known = self.slots.get(slot as usize).is_some_and(Option::is_some);
        self.demand(known, "an operation on a free slot");
        self.slots[slot as usize].as_mut().expect("checked above")
    }

    #[track_caller]
    fn connected_slot(&mut self, slot: Slot) -> &mut Connection {
        let early = self.slot(slot).peer_connected().is_none();
        self.demand(!early, "an operation before the connection is there");
        self.slot(slot)
    }

    /// Plays one round of the world. Whatever may happen next happens in a seeded order.
    fn play(&mut self) {
        for peer in &mut self.peers {
            peer.advance(self.now_ms);
        }
        self.play_accept();
        let open = |slot: &usize| self.slots[*slot].as_ref().is_some_and(|connection| !connection.gone);
        let mut order: Vec<usize> = (0..self.slots.len()).filter(open).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, self.random.below(index + 1));
        }
        for slot in order {
            if !self.random.chance(self.faults.delays) {
                self.play_slot(slot as Slot);
            }
        }
        for (watch, flag) in self.watched.iter().enumerate() {
            if flag.as_ref().is_some_and(|flag| flag.swap(false, Ordering::SeqCst)) {
                self.ready.push_back(Completion::Ready { watch: watch as Watch });
            }
        }
        let woken = self.woken.swap(false, Ordering::SeqCst);
        if woken || self.random.chance(self.faults.false_wakes) {
            self.ready.push_back(Completion::Woken);
        }
    }

    fn play_accept(&mut self) {
        while self.accepting && !self.backlog.is_empty() {
            let free = self.free_slot(self.capacity.connected..self.capacity.slots());
            let failing = self.random.chance(self.faults.accept_stops);
            let (Some(slot), false) = (free, failing) else {
                self.accepting = false;
                let errno = if failing { ACCEPT_ERRNOS[self.random.below(4)] } else { ENFILE };
                self.ready.push_back(Completion::AcceptStopped { listener: 0, errno });
                return;
            };
            let Some(peer) = self.backlog.pop_front() else { return };
            self.peers[peer].transcript.accepted = true;
            self.open(slot, Connection::accepted(peer));
            self.ready.push_back(Completion::Accepted { listener: 0, slot });
        }
    }

    /// The first free one of these slots.
    fn free_slot(&self, mut of: std::ops::Range<Slot>) -> Option<Slot> {
        of.find(|&slot| self.slots.get(slot as usize).is_none_or(Option::is_none))
    }

    fn open(&mut self, slot: Slot, connection: Connection) {
        if self.slots.len() <= slot as usize {
            self.slots.resize_with(slot as usize + 1, || None);
        }
        self.slots[slot as usize] = Some(connection);
    }

    /// When something can happen by itself.
    fn next_ms(&self) -> Option<u64> {
        let attempts = self.slots.iter().flatten().filter_map(Connection::over_ms);
        self.peers.iter().filter_map(Peer::next_ms).chain(attempts).chain(self.alarm_ms).min()
    }
}

impl Io for Simulated {
    fn now_ms(&self) -> u64 {
        self.now_ms + self.worked_ms.load(Ordering::Relaxed)
    }

    fn now_ns(&self) -> u64 {
        self.now_ms() * 1_000_000
    }

    fn wall_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_000 + self.now_ms())
    }

    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn accept(&mut self, listener: u16) {
        self.demand(listener == 0, "no such listener");
        self.demand(!self.accepting, "accept while accepting");
        self.accepting = true;
    }

    fn refuse(&mut self, listener: u16) {
        self.demand(listener == 0, "no such listener");
        self.accepting = false;
    }

    fn drop_syn(&mut self, listener: u16) {
        self.demand(listener == 0, "no such listener");
    }

    fn drop_listener(&mut self, listener: u16) {
        self.refuse(listener);
        self.dropped = true;
        for peer in self.backlog.drain(..) {
            self.peers[peer].end(End::Reset, self.now_ms);
        }
    }

    fn admit_syn(&mut self, listener: u16) {
        self.demand(listener == 0, "no such listener");
    }

    fn queue(&self, _listener: u16) -> Option<Queue> {
        let queue = Queue { waiting: self.backlog.len() as u32, limit: QUEUE_LIMIT };
        (!self.dropped).then_some(queue)
    }

    fn learn_peers(&mut self) {
        self.learns_peers = true;
    }

    fn peer_address(&self, slot: Slot) -> Option<SocketAddr> {
        self.address_of(slot)
    }

    fn connect(&mut self, target: &Target) -> io::Result<Slot> {
        self.begin_connecting(target)
    }

    fn inspect(&mut self, slot: Slot) {
        let now_ms = self.now_ms;
        let connection = self.slot(slot);
        let (closing, retransmitted) = (connection.closing, connection.retransmitted(now_ms));
        let taken = connection.peer_connected().map(|peer| self.peers[peer].taken());
        self.demand(!closing, "an inspection after the close");
        self.ready.push_back(Completion::Inspected { slot, retransmitted, taken });
    }

    fn receive(&mut self, slot: Slot) {
        let connection = self.connected_slot(slot);
        if !connection.ended {
            connection.receiving = true;
        }
    }

    fn pause(&mut self, slot: Slot) {
        self.connected_slot(slot).receiving = false;
    }

    fn send(&mut self, slot: Slot, outgoing: Box<Outgoing>, last: bool) {
        let connection = self.connected_slot(slot);
        let wrong = if connection.flight.is_some() {
            Some("a second send while one is under way")
        } else if connection.shut || connection.last || connection.closing {
            Some("a send after the end")
        } else {
            None
        };
        connection.last = last;
        match (wrong, Flight::new(outgoing, last)) {
            (Some(wrong), _) => self.demand(false, wrong),
            (None, Ok(flight)) if flight.bytes.is_empty() => self.demand(false, "an empty send"),
            (None, Ok(flight)) => self.slot(slot).flight = Some(flight),
            (None, Err((outgoing, errno))) => {
                self.ready.push_back(Completion::Sent { slot, outgoing, errno })
            }
        }
    }

    fn tune(&mut self, slot: Slot, tuning: Tuning) {
        self.connected_slot(slot).tunings.push(tuning);
    }

    fn shutdown(&mut self, slot: Slot) {
        let connection = self.connected_slot(slot);
        let early = connection.flight.is_some();
        connection.shut = true;
        self.demand(!early, "a half-close while a send is under way");
    }

    fn close(&mut self, slot: Slot) {
        let connection = self.slot(slot);
        connection.closing = true;
        if let Some(flight) = &mut connection.flight {
            flight.last = false;
        }
    }

    fn input(&self, input: &Input) -> &[u8] {
        let bytes = self.buffers[input.buffer as usize].as_deref();
        self.demand(bytes.is_some(), "an input was used after its release");
        bytes.unwrap_or_default()
    }

    fn input_mut(&mut self, input: &Input) -> &mut [u8] {
        let held = self.buffers[input.buffer as usize].is_some();
        self.demand(held, "an input was used after its release");
        self.buffers[input.buffer as usize].as_deref_mut().unwrap_or_default()
    }

    fn release(&mut self, input: Input) {
        let held = self.buffers[input.buffer as usize].take();
        self.demand(held.is_some(), "an input was released twice");
    }

    fn watch(&mut self, readiness: Readiness) -> io::Result<Watch> {
        let Readiness::Flag(flag) = readiness else { return Err(Errno::OPNOTSUPP.into()) };
        let free = self.watched.iter().position(Option::is_none).unwrap_or(self.watched.len());
        self.watched.splice(free..self.watched.len().min(free + 1), [Some(flag)]);
        Ok(free as Watch)
    }

    /// There is always room.
    fn watch_room(&mut self, watch: Watch) {
        self.ready.push_back(Completion::Ready { watch });
    }

    fn unwatch(&mut self, watch: Watch) {
        self.watched[watch as usize] = None;
    }

    fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.turns += 1;
        self.now_ms += self.worked_ms.swap(0, Ordering::Relaxed);
        self.play();
        if !self.ready.is_empty() || self.is_restless() {
            return Ok(());
        }
        // As a kernel does: never awake before the time is over.
        let wanted_ms = timeout.map(|timeout| {
            self.now_ms.saturating_add(timeout.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX))
        });
        let next_ms = match (self.next_ms(), wanted_ms) {
            (Some(next_ms), Some(wanted_ms)) => next_ms.min(wanted_ms),
            (Some(ms), None) | (None, Some(ms)) => ms,
            (None, None) => {
                let stuck = self.peers.iter().any(Peer::has_steps) || !self.finished();
                self.demand(!stuck, "nothing can happen any more, but the peers are not done");
                self.now_ms
            }
        };
        self.now_ms = self.now_ms.max(next_ms);
        self.alarm_ms = self.alarm_ms.filter(|&at_ms| at_ms > self.now_ms);
        if self.random.chance(self.faults.time_jumps) {
            self.now_ms += self.random.below(JUMP_MS_MAX) as u64;
        }
        self.play();
        Ok(())
    }

    fn next_completion(&mut self) -> Option<Completion> {
        loop {
            let completion = self.ready.pop_front()?;
            self.note_accepted(&completion);
            match completion {
                // What was under way when the slot was closed is not reported any more, as a kernel's cancel
                // does.
                Completion::Received { slot, input } => {
                    if self.slots[slot as usize].as_ref().is_some_and(|connection| !connection.closing) {
                        return Some(Completion::Received { slot, input });
                    }
                    self.release(input);
                }
                Completion::Closed { slot } => {
                    self.slots[slot as usize] = None;
                    return Some(completion);
                }
                _ => return Some(completion),
            }
        }
    }
}
