//! A network of datagrams in memory, driven by a seed: they are lost, doubled, delayed past each other, and
//! cut off by partitions. The same seed gives the same run.
//!
//! It owns what is under way. It must never ask the time: whoever drives it says how late it is.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{BatchSent, Datagram, DatagramLimits, Datagrams, Ecn, Readiness, Transmit, UdpPath};
use crate::simulated::Random;

/// The longest datagram, and how many one transmit may hold, as with UDP.
const DATAGRAM_BYTES_MAX: usize = 65_507;
const SEGMENTS_MAX: usize = 64;

const EMSGSIZE: i32 = 90;

/// What goes wrong, and how often: chances in a thousand, each tried for every datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkFaults {
    /// The datagram never arrives.
    pub loss: u32,
    /// The datagram arrives twice.
    pub doubling: u32,
    /// The datagram is late by up to `delay_ms_max`, so that later ones overtake it.
    pub reordering: u32,
    /// The most that adds to the way of 1 ms, in milliseconds.
    pub delay_ms_max: u32,
    /// Its ECT is changed to CE.
    pub congestion: u32,
}

/// A datagram that has arrived and is not taken yet.
#[derive(Debug, Clone)]
struct Arrived {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
    ecn: Option<Ecn>,
}

#[derive(Debug, Default)]
struct Mailbox {
    arrived: Vec<Arrived>,
    ready: Arc<AtomicBool>,
}

#[derive(Debug)]
struct State {
    random: Random,
    faults: NetworkFaults,
    now_ms: u64,
    /// By the time of arrival, then in order of sending.
    under_way: BTreeMap<(u64, u64), Arrived>,
    sent: u64,
    lost: u64,
    ends: HashMap<SocketAddr, Mailbox>,
    /// Ends of two different sides do not hear each other; those without a side hear all.
    sides: HashMap<SocketAddr, u32>,
}

/// The network. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Network {
    state: Rc<RefCell<State>>,
}

/// A simulated socket of a [`Network`], at an address of its own.
#[derive(Debug)]
pub struct SimulatedDatagrams {
    address: SocketAddr,
    network: Network,
    ready: Arc<AtomicBool>,
}

impl Network {
    /// A network without ends, at time 0.
    pub fn new(seed: u64, faults: NetworkFaults) -> Self {
        let state = State {
            random: Random::new(seed),
            faults,
            now_ms: 0,
            under_way: BTreeMap::new(),
            sent: 0,
            lost: 0,
            ends: HashMap::new(),
            sides: HashMap::new(),
        };
        Self { state: Rc::new(RefCell::new(state)) }
    }

    /// Adds a socket at an address.
    ///
    /// # Panics
    /// If the address has an end.
    pub fn end(&self, address: SocketAddr) -> SimulatedDatagrams {
        let mailbox = Mailbox::default();
        let ready = Arc::clone(&mailbox.ready);
        let before = self.state.borrow_mut().ends.insert(address, mailbox);
        assert!(before.is_none(), "{address} has an end");
        SimulatedDatagrams { address, network: self.clone(), ready }
    }

    /// Sets the time to `now_ms`: what has been under way until then arrives. Time does not go back.
    pub fn advance_to(&self, now_ms: u64) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.now_ms = state.now_ms.max(now_ms);
        let later = state.under_way.split_off(&(state.now_ms + 1, 0));
        for (_, arrived) in std::mem::replace(&mut state.under_way, later) {
            if let Some(mailbox) = state.ends.get_mut(&arrived.to) {
                mailbox.arrived.push(arrived);
                mailbox.ready.store(true, Ordering::SeqCst);
            }
        }
    }

    /// When the next datagram arrives.
    pub fn next_ms(&self) -> Option<u64> {
        self.state.borrow().under_way.first_key_value().map(|((at_ms, _), _)| *at_ms)
    }

    /// From now on the ends of these addresses are on this side: they hear only each other, and who is on no
    /// side. What is under way arrives.
    pub fn separate(&self, side: u32, addresses: &[SocketAddr]) {
        let sides = addresses.iter().map(|address| (*address, side));
        self.state.borrow_mut().sides.extend(sides);
    }

    /// All hear each other again.
    pub fn heal(&self) {
        self.state.borrow_mut().sides.clear();
    }

    /// How many datagrams were sent, and how many of them were lost, those at a partition included.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state.borrow();
        (state.sent, state.lost)
    }
}

impl State {
    fn send(&mut self, mut datagram: Arrived) {
        self.sent += 1;
        let sides = [datagram.from, datagram.to].map(|address| self.sides.get(&address));
        let apart = matches!(sides, [Some(one), Some(other)] if one != other);
        if self.random.chance(self.faults.loss) || apart {
            self.lost += 1;
            return;
        }
        if datagram.ecn.is_some() && self.random.chance(self.faults.congestion) {
            datagram.ecn = Some(Ecn::Ce);
        }
        let copies = if self.random.chance(self.faults.doubling) { 2 } else { 1 };
        for copy in 0..copies {
            let late = self.random.chance(self.faults.reordering);
            let delay_ms = if late { self.random.below(self.faults.delay_ms_max as usize + 1) } else { 0 };
            let order = (self.now_ms + 1 + delay_ms as u64, self.sent << 1 | copy);
            self.under_way.insert(order, datagram.clone());
        }
    }
}

impl Drop for SimulatedDatagrams {
    fn drop(&mut self) {
        self.network.state.borrow_mut().ends.remove(&self.address);
    }
}

impl Datagrams for SimulatedDatagrams {
    type Path = UdpPath;

    fn limits(&self) -> DatagramLimits {
        DatagramLimits { datagram_bytes_max: DATAGRAM_BYTES_MAX, segments_max: SEGMENTS_MAX, ecn: true }
    }

    fn readiness(&self) -> io::Result<Readiness> {
        Ok(Readiness::Flag(Arc::clone(&self.ready)))
    }

    fn receive_batch(
        &mut self,
        count_max: usize,
        take: &mut dyn FnMut(Datagram<'_, UdpPath>),
    ) -> io::Result<usize> {
        let mut state = self.network.state.borrow_mut();
        let Some(mailbox) = state.ends.get_mut(&self.address) else { return Ok(0) };
        let count = mailbox.arrived.len().min(count_max);
        let arrived: Vec<Arrived> = mailbox.arrived.drain(..count).collect();
        // The caller's `take` may send: the state must not be borrowed then.
        drop(state);
        for Arrived { from, to, mut bytes, ecn } in arrived {
            let path = UdpPath { peer: from, local: Some(to.ip()) };
            let segment_bytes = bytes.len();
            take(Datagram { path, bytes: &mut bytes, segment_bytes, ecn });
        }
        Ok(count)
    }

    fn send_batch(&mut self, batch: &[Transmit<'_, UdpPath>]) -> io::Result<BatchSent> {
        let mut state = self.network.state.borrow_mut();
        let mut sent = BatchSent { done: batch.len(), ..BatchSent::default() };
        for transmit in batch {
            let (from, to, ecn) = (self.address, transmit.path.peer, transmit.ecn);
            let segment_bytes = transmit.segment_bytes.unwrap_or(transmit.bytes.len()).max(1);
            if transmit.head.len() + segment_bytes.min(transmit.bytes.len()) > DATAGRAM_BYTES_MAX {
                (sent.refused, sent.errno) = (sent.refused + 1, EMSGSIZE);
                continue;
            }
            if transmit.bytes.is_empty() {
                state.send(Arrived { from, to, bytes: transmit.head.to_vec(), ecn });
            }
            for (index, segment) in transmit.bytes.chunks(segment_bytes).enumerate() {
                let head = if index == 0 { transmit.head } else { &[] };
                state.send(Arrived { from, to, bytes: [head, segment].concat(), ecn });
            }
        }
        Ok(sent)
    }
}
