//! What the host says of its load: processors, memory, sockets, queues.
//!
//! It owns the reading of those figures: files of the kernel that are kept open, and one netlink socket. Each
//! has a time between two readings, so that all of them together cost a small part of a processor. It must
//! never judge them, and a figure that is not to be had is left out with a sentence that says what is lost.
//! Order: [`Sensors::open`] in the network namespace that is protected, [`Sensors::read`] each tick.

mod cost;
mod kept;
mod listeners;
mod memory;
mod pace;
mod processors;
mod receivers;
mod sockets;

use std::path::Path;

use crate::observation::{Cpu, Memory};

pub use cost::Cost;
pub use listeners::PortQueue;
pub use pace::Closeness;

use listeners::Listeners;
use memory::HostMemory;
use pace::{CALM_NS, Due, IDLE_NS, SLOW_NS};
use processors::Processors;
use receivers::Receivers;
use sockets::Sockets;

/// The figures of a moment, as far as they are to be had. They are those of the latest reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// What the listeners of each protected port say, in the order of ports.
    pub listeners: Option<Vec<PortQueue>>,
    /// The processor that spends most on the kernel.
    pub cpu: Option<Cpu>,
    /// What the busiest thread of reception takes of a processor.
    pub receive_share: Option<f64>,
    /// TCP sockets in use in this network namespace.
    pub sockets: Option<u64>,
    /// Memory of the host and of TCP.
    pub memory: Option<Memory>,
}

/// All of them.
pub struct Sensors {
    listeners: Option<Listeners>,
    processors: Option<Processors>,
    receivers: Option<Receivers>,
    sockets: Option<Sockets>,
    memory: Option<HostMemory>,
    calm: Due,
    slow: Due,
    seen: Seen,
}

impl Sensors {
    /// Opens what there is, for these ports, and says what is not there.
    pub fn open(ports: &[u16]) -> (Self, Vec<String>) {
        Self::open_beneath(Path::new("/proc"), ports)
    }

    fn open_beneath(proc: &Path, ports: &[u16]) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        let sensors = Self {
            listeners: kept(Listeners::open(ports), &mut notes),
            processors: kept(Processors::open(proc), &mut notes),
            receivers: kept(Receivers::open(proc), &mut notes),
            sockets: kept(Sockets::open(proc), &mut notes),
            memory: kept(HostMemory::open(proc), &mut notes),
            calm: Due::default(),
            slow: Due::default(),
            seen: Seen::default(),
        };
        (sensors, notes)
    }

    /// Reads what is due, and gives the latest of each.
    pub fn read(&mut self, now_ns: u64, closeness: Closeness) -> Seen {
        // What was thrown away is told once.
        self.seen.listeners.iter_mut().flatten().for_each(|listeners| listeners.drops = 0);
        let (calm_ns, slow_ns) =
            if closeness == Closeness::Idle { (IDLE_NS, IDLE_NS) } else { (CALM_NS, SLOW_NS) };
        if self.calm.is_due(now_ns, calm_ns) || closeness == Closeness::Close {
            self.seen.listeners = self.listeners.as_mut().and_then(Listeners::read);
        }
        if let Some(receivers) = &mut self.receivers {
            self.seen.receive_share = receivers.read(now_ns, closeness);
        }
        if self.slow.is_due(now_ns, slow_ns) {
            self.read_slow(now_ns);
        }
        self.seen.clone()
    }

    /// Reads each many times, and tells what one reading takes.
    pub fn costs(&mut self) -> Vec<Cost> {
        let parts = cost::Parts {
            listeners: self.listeners.as_mut(),
            processors: self.processors.as_mut(),
            receivers: self.receivers.as_mut(),
            sockets: self.sockets.as_mut(),
            memory: self.memory.as_mut(),
        };
        parts.costs()
    }

    fn read_slow(&mut self, now_ns: u64) {
        let seen = &mut self.seen;
        seen.cpu = self.processors.as_mut().and_then(|processors| processors.read(now_ns));
        let sockets = self.sockets.as_mut().and_then(Sockets::read);
        seen.sockets = sockets.as_ref().map(|sockets| sockets.in_use);
        let pages = sockets.map_or(0, |sockets| sockets.memory_pages);
        seen.memory = self.memory.as_mut().and_then(|memory| memory.read(pages));
    }
}

/// What was opened, or a note of why not.
fn kept<T>(opened: Result<T, String>, notes: &mut Vec<String>) -> Option<T> {
    opened.map_err(|note| notes.push(note)).ok()
}

#[cfg(test)]
mod tests;
