//! What one reading of each sensor costs, for the table in docs/gate.md.

use staunch_netio::clock;

use super::listeners::Listeners;
use super::memory::HostMemory;
use super::pace::Closeness;
use super::processors::Processors;
use super::receivers::Receivers;
use super::sockets::Sockets;

/// Readings are averaged over so many.
const READINGS: u32 = 500;

/// What a reading takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Which sensor.
    pub sensor: &'static str,
    /// Nanoseconds of processor time; none when the sensor is not to be had here.
    pub ns: Option<f64>,
    /// How often it is read in a second while all come in.
    pub per_s: f64,
}

/// All that may be there.
pub(super) struct Parts<'a> {
    pub(super) listeners: Option<&'a mut Listeners>,
    pub(super) processors: Option<&'a mut Processors>,
    pub(super) receivers: Option<&'a mut Receivers>,
    pub(super) sockets: Option<&'a mut Sockets>,
    pub(super) memory: Option<&'a mut HostMemory>,
}

impl Parts<'_> {
    /// Reads each many times, and tells what one reading took.
    pub(super) fn costs(self) -> Vec<Cost> {
        let mut later_ns = clock::now_ns();
        // Each reading is made to be due.
        let mut later = move || {
            later_ns += 1_000_000_000;
            later_ns
        };
        let receivers = self.receivers;
        let receivers_per_s =
            1e9 / receivers.as_ref().map_or(1e9, |receivers| receivers.window_ns(Closeness::Calm) as f64);
        vec![
            cost("accept queues and drops, sock_diag", 20.0, self.listeners, |one| {
                Listeners::read(one);
            }),
            cost("ksoftirqd and napi/*, schedstat", receivers_per_s, receivers, |one| one.measured()),
            cost("processors, /proc/stat", 10.0, self.processors, |one| {
                one.read(later());
            }),
            cost("sockets, /proc/net/sockstat", 10.0, self.sockets, |one| {
                Sockets::read(one);
            }),
            cost("memory, /proc/meminfo", 10.0, self.memory, |one| {
                HostMemory::read(one, 0);
            }),
        ]
    }
}

fn cost<T>(sensor: &'static str, per_s: f64, one: Option<&mut T>, mut read: impl FnMut(&mut T)) -> Cost {
    let ns = one.map(|one| {
        let before_ns = clock::thread_busy_ns();
        for _ in 0..READINGS {
            read(one);
        }
        (clock::thread_busy_ns() - before_ns) as f64 / f64::from(READINGS)
    });
    Cost { sensor, ns, per_s }
}
