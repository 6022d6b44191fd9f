//! Credentials that wait to be checked, and whose turn it is.
//!
//! It owns the order and its bounds. A check is made to take long, so those who guess must not hold up those
//! who know. Rules take turns. Within a rule every other turn is that of the client that asked least, then of
//! its connection that asked least, of equals the last to come; the turns between are those of whoever waits
//! longest, so that nobody waits for ever. When a line is full, whoever asked most is put off, of equals who
//! waits longest. A check that is made or put off is one more ask; right credentials take the asks of their
//! client back, for many people may stand behind one address. It must never make a worker wait.

mod asks;

use std::cmp::Reverse;
use std::net::IpAddr;
use std::sync::{Condvar, Mutex, MutexGuard};

use staunch_engine::{Address, Departure};

use self::asks::Asks;
use crate::limits::{CHECKS_JOINED_MAX, CHECKS_PER_CLIENT_MAX, CHECKS_PER_RULE_MAX, CLIENT_PREFIX_IPV6};
use crate::rules::auth::Tag;

/// The asker of a check: the client, if it is known, and its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asker {
    client: Option<IpAddr>,
    connection: Address,
}

/// Why a check is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The client asks for too much.
    Client,
    /// All together do.
    Server,
}

/// What a thread is to do next.
#[derive(Debug)]
pub(crate) enum Turn<J> {
    /// Make a check, then [`Checks::finish`] it.
    Check(Tag, J),
    /// Tell those who wait that it will not be made.
    PutOff(J, Vec<Address>, Excess),
}

/// Checks that wait, and those under way. `J` is what a check needs.
#[derive(Debug)]
pub(crate) struct Checks<J> {
    state: Mutex<State<J>>,
    wished: Condvar,
}

#[derive(Debug)]
struct State<J> {
    /// A lane for each rule for which something waits, in the order of their turns.
    lanes: Vec<Lane<J>>,
    running: Vec<Running>,
    put_off: Vec<(J, Vec<Address>, Excess)>,
    clients: Asks<Option<IpAddr>>,
    connections: Asks<(u16, u32, u32)>,
    ended: bool,
}

#[derive(Debug)]
struct Lane<J> {
    rule: usize,
    /// In the order of coming.
    jobs: Vec<Job<J>>,
    /// The next turn is that of whoever waits longest.
    longest_next: bool,
}

#[derive(Debug)]
struct Job<J> {
    tag: Tag,
    job: J,
    client: Option<IpAddr>,
    /// How often the connection had asked when it asked for this.
    connection_asks: u32,
    waiters: Vec<Waiter>,
}

/// A check under way.
#[derive(Debug)]
struct Running {
    rule: usize,
    tag: Tag,
    client: Option<IpAddr>,
    waiters: Vec<Waiter>,
}

#[derive(Debug, Clone, Copy)]
struct Waiter {
    connection: Address,
    /// The peer sends no more: perhaps it does not read either.
    half_closed: bool,
}

impl Asker {
    /// An asker on this connection, whose client is told by its network.
    pub(crate) fn new(client: Option<IpAddr>, connection: Address) -> Self {
        Self { client: client.map(network_of), connection }
    }
}

/// What makes a client: an address, of IPv6 a network, for a subscriber has at least that.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_none() => {
            let network = address.to_bits() >> (128 - CLIENT_PREFIX_IPV6) << (128 - CLIENT_PREFIX_IPV6);
            IpAddr::V6(network.into())
        }
        address => address.to_canonical(),
    }
}

impl<J> Checks<J> {
    /// Nothing waits.
    pub(crate) fn new() -> Self {
        let state = State {
            lanes: Vec::new(),
            running: Vec::new(),
            put_off: Vec::new(),
            clients: Asks::default(),
            connections: Asks::default(),
            ended: false,
        };
        Self { state: Mutex::new(state), wished: Condvar::new() }
    }

    /// Asks for a check of these credentials by this rule (any number that is its own). The outcome goes to
    /// the asker's connection.
    ///
    /// # Errors
    /// There is too much to do, and the asker has asked most.
    pub(crate) fn ask(
        &self,
        rule: usize,
        tag: Tag,
        asker: Asker,
        job: impl FnOnce() -> J,
    ) -> Result<(), Excess> {
        let mut state = self.lock();
        state.clients.add(asker.client);
        state.connections.add(key_of(asker.connection));
        let asked = state.ask(rule, tag, asker, job);
        drop(state);
        self.wished.notify_one();
        asked
    }

    /// The peer of a connection that may wait here has left.
    pub(crate) fn leave(&self, connection: Address, departure: Departure) {
        let mut state = self.lock();
        for lane in &mut state.lanes {
            lane.jobs.retain_mut(|job| {
                leave(&mut job.waiters, connection, departure);
                !job.waiters.is_empty()
            });
        }
        state.lanes.retain(|lane| !lane.jobs.is_empty());
        for running in &mut state.running {
            leave(&mut running.waiters, connection, departure);
        }
    }

    /// What to do next; waits until there is something. `None` when it has ended.
    pub(crate) fn next(&self) -> Option<Turn<J>> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return None;
            }
            if let Some(turn) = state.take() {
                return Some(turn);
            }
            state = self.wished.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// A check was made, and the credentials were right or not: the connections that wait for its outcome.
    pub(crate) fn finish(&self, rule: usize, tag: Tag, right: bool) -> Vec<Address> {
        let mut state = self.lock();
        let place = state.running.iter().position(|running| running.is_of(rule, tag));
        let Some(running) = place.map(|place| state.running.swap_remove(place)) else { return Vec::new() };
        if right {
            state.clients.forget(running.client);
        }
        addresses(&running.waiters)
    }

    /// Lets the threads end. What waits is dropped.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.lanes.clear();
        state.put_off.clear();
        drop(state);
        self.wished.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<J> State<J> {
    fn ask(&mut self, rule: usize, tag: Tag, asker: Asker, job: impl FnOnce() -> J) -> Result<(), Excess> {
        let waiter = Waiter { connection: asker.connection, half_closed: false };
        if let Some(running) = self.running.iter_mut().find(|running| running.is_of(rule, tag)) {
            return join(&mut running.waiters, waiter);
        }
        let place = self.lanes.iter().position(|lane| lane.rule == rule).unwrap_or_else(|| {
            self.lanes.push(Lane { rule, jobs: Vec::new(), longest_next: false });
            self.lanes.len() - 1
        });
        let client = asker.client;
        let connection_asks = self.connections.of(key_of(asker.connection));
        let jobs = &mut self.lanes[place].jobs;
        if let Some(job) = jobs.iter_mut().find(|job| job.tag == tag) {
            if (self.clients.of(client), connection_asks) < job.asks(&self.clients) {
                (job.client, job.connection_asks) = (client, connection_asks);
            }
            return join(&mut job.waiters, waiter);
        }
        jobs.push(Job { tag, job: job(), client, connection_asks, waiters: vec![waiter] });
        let of_client = jobs.iter().filter(|job| job.client == client).count();
        let (excess, of_all) = match (of_client > CHECKS_PER_CLIENT_MAX, jobs.len() > CHECKS_PER_RULE_MAX) {
            (true, _) => (Excess::Client, false),
            (false, true) => (Excess::Server, true),
            (false, false) => return Ok(()),
        };
        let most =
            (0..jobs.len()).filter(|&place| of_all || jobs[place].client == client).max_by_key(|&place| {
                let job = &jobs[place];
                (job.is_abandoned(), job.asks(&self.clients), Reverse(place))
            });
        let Some(most) = most else { return Ok(()) };
        let job = jobs.remove(most);
        if most == jobs.len() {
            return Err(excess);
        }
        self.clients.add(job.client);
        self.put_off.push((job.job, addresses(&job.waiters), excess));
        Ok(())
    }

    fn take(&mut self) -> Option<Turn<J>> {
        if let Some((job, waiters, excess)) = self.put_off.pop() {
            return Some(Turn::PutOff(job, waiters, excess));
        }
        if self.lanes.is_empty() {
            return None;
        }
        let mut lane = self.lanes.remove(0);
        let jobs = &lane.jobs;
        let place = match lane.longest_next {
            true => (0..jobs.len()).min_by_key(|&place| (jobs[place].is_abandoned(), place)),
            false => (0..jobs.len()).min_by_key(|&place| {
                (jobs[place].is_abandoned(), jobs[place].asks(&self.clients), Reverse(place))
            }),
        }?;
        lane.longest_next = !lane.longest_next;
        let Job { tag, job, client, waiters, .. } = lane.jobs.remove(place);
        self.clients.add(client);
        for waiter in &waiters {
            self.connections.add(key_of(waiter.connection));
        }
        self.running.push(Running { rule: lane.rule, tag, client, waiters });
        if !lane.jobs.is_empty() {
            self.lanes.push(lane);
        }
        Some(Turn::Check(tag, job))
    }
}

impl Running {
    fn is_of(&self, rule: usize, tag: Tag) -> bool {
        (self.rule, self.tag) == (rule, tag)
    }
}

impl<J> Job<J> {
    fn asks(&self, clients: &Asks<Option<IpAddr>>) -> (u32, u32) {
        (clients.of(self.client), self.connection_asks)
    }

    fn is_abandoned(&self) -> bool {
        self.waiters.iter().all(|waiter| waiter.half_closed)
    }
}

fn join(waiters: &mut Vec<Waiter>, waiter: Waiter) -> Result<(), Excess> {
    if waiters.len() >= CHECKS_JOINED_MAX {
        return Err(Excess::Client);
    }
    waiters.push(waiter);
    Ok(())
}

fn leave(waiters: &mut Vec<Waiter>, connection: Address, departure: Departure) {
    match departure {
        Departure::Gone => waiters.retain(|waiter| waiter.connection != connection),
        Departure::SendsNoMore => {
            for waiter in waiters.iter_mut().filter(|waiter| waiter.connection == connection) {
                waiter.half_closed = true;
            }
        }
    }
}

fn addresses(waiters: &[Waiter]) -> Vec<Address> {
    waiters.iter().map(|waiter| waiter.connection).collect()
}

fn key_of(connection: Address) -> (u16, u32, u32) {
    (connection.worker, connection.slot, connection.generation)
}

#[cfg(test)]
#[path = "checks/tests.rs"]
mod tests;
