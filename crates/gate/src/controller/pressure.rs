//! Whether the host itself is short: the rule of the paper, and memory.
//!
//! Neither tells how many connections can be served, so admission is paced: from what came in when it began
//! it falls as long as the pressure is high, and stays as long as it is between the two thresholds.

use super::history::History;
use super::settings::Settings;
use crate::observation::{Memory, Observation};

/// Less memory than this is about to be none; the second ends it.
const AVAILABLE: (f64, f64) = (0.03, 0.05);
/// At `tcp_mem[1]` the kernel itself begins to take buffers back; the second ends it.
const TCP_SHARE: (f64, f64) = (0.95, 0.85);
/// Admission falls by a factor e in this time: the processor's share is a mean over 100 ms, and must be
/// heard.
const FALL_NS: f64 = 500_000_000.0;
/// A tenth always comes in, or nobody would see that the pressure is over.
const PACE_LEAST: f64 = 0.1;
/// What came in before is a mean over this.
const BEFORE_NS: u64 = 500_000_000;

/// What the host is short of.
#[derive(Debug, Default)]
pub(crate) struct Pressure {
    /// The kernel takes the processor, by the rule of the paper.
    pub processor: bool,
    /// Memory ends.
    pub memory: bool,
    before_per_ns: f64,
    pace: f64,
}

impl Pressure {
    /// Takes a tick in.
    pub(crate) fn see(&mut self, o: &Observation, history: &History, settings: &Settings) {
        let was = self.processor || self.memory;
        let processor = processor(o, settings);
        let memory = o.memory.map_or(Level::Low, level_of_memory);
        self.processor = processor.after(self.processor);
        self.memory = memory.after(self.memory);
        if !was {
            let last = history.last(BEFORE_NS);
            (self.pace, self.before_per_ns) = (1.0, last.passed_all() as f64 / last.at_ns.max(1) as f64);
        }
        if processor == Level::High || memory == Level::High {
            let weight = (history.tick().at_ns as f64 / FALL_NS).min(1.0);
            self.pace = (self.pace * (1.0 - weight)).max(PACE_LEAST);
        }
    }

    /// SYN that may come in within `interval_ns`.
    pub(crate) fn budget(&self, interval_ns: f64) -> f64 {
        self.before_per_ns * self.pace * interval_ns
    }
}

/// Where a signal stands between its two thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Low,
    Between,
    High,
}

impl Level {
    fn after(self, before: bool) -> bool {
        match self {
            Level::Low => false,
            Level::Between => before,
            Level::High => true,
        }
    }
}

fn processor(o: &Observation, settings: &Settings) -> Level {
    let (Some(cpu), Some(sockets)) = (o.cpu, o.sockets) else { return Level::Low };
    if cpu.kernel_share > settings.cpu_high && sockets > settings.sockets_high {
        Level::High
    } else if cpu.kernel_share < settings.cpu_low || sockets < settings.sockets_low {
        Level::Low
    } else {
        Level::Between
    }
}

fn level_of_memory(memory: Memory) -> Level {
    if memory.available_share < AVAILABLE.0 || memory.tcp_share > TCP_SHARE.0 {
        Level::High
    } else if memory.available_share > AVAILABLE.1 && memory.tcp_share < TCP_SHARE.1 {
        Level::Low
    } else {
        Level::Between
    }
}
